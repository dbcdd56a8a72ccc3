"""Streams of a Slack on this machine: begun, added to, ended, and refused for the reasons that Slack names."""

from collections.abc import Mapping
from typing import Any

from lamplighter.testing.slack_shapes import BOT_ID, TEAM

MOST_MARKDOWN, MOST_FIELD, MOST_TASKS = 12_000, 256, 50
STATUSES = frozenset({"pending", "in_progress", "complete", "error"})
SESSIONS = frozenset({"active", "processing", "suspended", "closed"})
GOING, OVER, EXPIRED, BY_USER = "in_progress", "completed", "errored", "stopped"
_FIELDS = {
    "markdown_text": {"type", "text"}, "plan_update": {"type", "title"},
    "task_update": {"type", "id", "title", "status", "details", "output", "sources"}, "blocks": {"type", "blocks"},
}  # fmt: skip


class SlackError(Exception):
    """`ok: false` with this error."""


def check_start(args: Mapping[str, Any], user_of: Mapping[str, Any]) -> None:
    """Both recipients are asked for everywhere, as Slack does of bots, whatever its reference says of direct messages.

    Raises SlackError.
    """
    if not args.get("thread_ts"):
        raise SlackError("invalid_arguments")
    for key in ("recipient_team_id", "recipient_user_id"):
        if not args.get(key):
            raise SlackError(f"missing_{key}")
    if args["recipient_team_id"] != TEAM:
        raise SlackError("team_not_found")
    if user_of and args["recipient_user_id"] not in user_of:
        raise SlackError("user_not_found")
    if args.get("task_display_mode", "timeline") not in {"timeline", "plan", "dense"}:
        raise SlackError("invalid_arguments")


def going(message: Mapping[str, Any]) -> None:
    """Raises SlackError for a message that is no stream under way."""
    if message.get("bot_id") != BOT_ID:
        raise SlackError("message_not_owned_by_app")
    if message.get("streaming_state") == BY_USER:
        raise SlackError("stopped_by_user")
    if message.get("streaming_state") != GOING:
        raise SlackError("message_not_in_streaming_state")


def add(message: dict[str, Any], args: Mapping[str, Any]) -> None:
    """What came is added to the message. Raises SlackError, and adds nothing then."""
    chunks = _chunks(args)
    if chunks and message["streams"] not in {"", _way(args)}:
        raise SlackError("streaming_mode_mismatch")
    for one in chunks:
        _check(one)
    tasks = {one["task_id"] for one in message["blocks"][0]["tasks"]} | {one["id"] for one in chunks if "id" in one}
    if len(tasks) > MOST_TASKS:
        raise SlackError("invalid_chunks")
    if chunks:
        message["streams"] = _way(args)
    for one in chunks:
        _add(message, one)


def _way(args: Mapping[str, Any]) -> str:
    return "chunks" if args.get("chunks") else "text"


def _chunks(args: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = list(args.get("chunks") or ())
    if args.get("markdown_text"):
        found.append({"type": "markdown_text", "text": args["markdown_text"]})
    return found


def _check(one: Mapping[str, Any]) -> None:
    kind = str(one.get("type"))
    if not set(one) <= _FIELDS.get(kind, set()):
        raise SlackError("invalid_chunks")
    if kind == "markdown_text" and not 0 < len(one["text"]) <= MOST_MARKDOWN:
        raise SlackError("msg_too_long" if one["text"] else "no_text")
    sound = {
        "plan_update": lambda: 0 < len(one["title"]) <= MOST_FIELD,
        "task_update": lambda: (
            one["status"] in STATUSES and all(0 < len(one[key]) <= MOST_FIELD for key in ("id", "title"))
        ),
    }
    if kind in sound and not sound[kind]():
        raise SlackError("invalid_chunks")


def _add(message: dict[str, Any], one: Mapping[str, Any]) -> None:
    plan = message["blocks"][0]
    match one["type"]:
        case "markdown_text":
            message["text"] += one["text"]
        case "plan_update":
            plan["title"] = one["title"]
        case "task_update":
            card = next((each for each in plan["tasks"] if each["task_id"] == one["id"]), None)
            if card is None:
                card = {"type": "task_card", "task_id": one["id"]}
                plan["tasks"].append(card)
            card |= {key: one[key] for key in ("title", "status")}
