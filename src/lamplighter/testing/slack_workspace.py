"""A workspace of Slack on this machine: its messages and people, and the methods of the Web API that change them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lamplighter.testing import slack_streams as streams
from lamplighter.testing.slack_shapes import APP, BOT_ID, BOT_USER, SCOPES, TEAM
from lamplighter.testing.slack_streams import SlackError

MOST_TEXT = 40_000
MOST_BLOCKS = 50


@dataclass
class SlackWorkspace:
    """It keeps messages as Slack does; `url` is where it is served."""

    url: str = ""
    messages: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    ephemeral: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    streams: bool = False
    """Whether answers may be streamed; if not, that is refused as it is to an app of former times."""
    scopes: tuple[str, ...] = SCOPES
    sessions: dict[tuple[str, str], str] = field(default_factory=dict)
    """What is shown of the agent's work in a thread, by channel and thread."""
    _last: int = 0

    def texts(self, channel: str) -> list[str]:
        return [one["text"] for one in self.messages.get(channel, [])]

    def say(self, channel: str, user: str, text: str, *, thread: str | None = None) -> dict[str, Any]:
        """Somebody writes a message; returns it, as events tell of it."""
        said = {"type": "message", "user": user, "text": text, "ts": self.stamp(), "team": TEAM}
        if thread is not None:
            said["thread_ts"] = thread
        self.messages.setdefault(channel, []).append(said)
        return said | {"channel": channel}

    def streaming(self, channel: str) -> list[dict[str, Any]]:
        """The streams that are under way."""
        return [one for one in self.messages.get(channel, ()) if one.get("streaming_state") == streams.GOING]

    def end_streams(self, channel: str, *, by_user: str = "") -> dict[str, Any]:
        """Slack ends the streams under way, after a while or because somebody presses its Stop; what it then tells."""
        ended = self.streaming(channel)
        for one in ended:
            one["streaming_state"] = streams.BY_USER if by_user else streams.EXPIRED
        told = [one["ts"] for one in ended]
        thread = ended[0]["thread_ts"] if ended else ""
        return {"type": "agent_session_stopped", "channel": channel, "user": by_user, "thread_ts": thread,
                "streaming_message_ts": told, "event_ts": self.stamp()}  # fmt: skip

    def upload(self, name: str, data: bytes, *, kind: str = "image/png") -> dict[str, Any]:
        """Somebody gives it a file; returns it, as events tell of it."""
        key = f"F{len(self.files)}"
        self.files[key], self.kinds[key] = data, kind
        return {"id": key, "name": name, "mimetype": kind, "size": len(data),
                "url_private_download": f"{self.url}/files/{key}"}  # fmt: skip

    def stamp(self) -> str:
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"


def _auth_test(city: SlackWorkspace, _args: Mapping[str, Any]) -> dict[str, Any]:
    return {"url": f"{city.url}/", "team": "City", "user": "lamp", "team_id": TEAM, "user_id": BOT_USER,
            "bot_id": BOT_ID, "is_enterprise_install": False}  # fmt: skip


def _post(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    _check(args)
    channel = _channel(city, args)
    if "thread_ts" in args and not any(one["ts"] == args["thread_ts"] for one in city.messages[channel]):
        raise SlackError("thread_not_found")
    said = {"type": "message", "user": BOT_USER, "bot_id": BOT_ID, "app_id": APP, "team": TEAM,
            "text": args.get("text", ""), "ts": city.stamp()}  # fmt: skip
    said |= {key: args[key] for key in ("thread_ts", "blocks", "metadata") if key in args}
    city.messages[channel].append(said)
    return {"channel": channel, "ts": said["ts"], "message": said}


def _update(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    _check(args)
    found = _message(city, args, "ts")
    if found.get("bot_id") != BOT_ID:
        raise SlackError("cant_update_message")
    if found.get("streaming_state") == streams.GOING:
        raise SlackError("streaming_state_conflict")
    found |= {key: args[key] for key in ("text", "blocks", "metadata") if key in args}
    found["edited"] = {"user": BOT_USER, "ts": city.stamp()}
    return {"channel": args["channel"], "ts": args["ts"], "text": found["text"], "message": found}


def _delete(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    found = _message(city, args, "ts")
    if found.get("bot_id") != BOT_ID or found.get("streaming_state") == streams.GOING:
        raise SlackError("cant_delete_message")
    city.messages[str(args["channel"])].remove(found)
    return {"channel": args["channel"], "ts": args["ts"]}


def _start_stream(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    if not city.streams:
        raise SlackError("unknown_method")
    channel = _channel(city, args)
    streams.check_start(args, city.users)
    if not any(one["ts"] == args["thread_ts"] for one in city.messages[channel]):
        raise SlackError("invalid_thread_ts")
    said: dict[str, Any] = {
        "type": "message", "user": BOT_USER, "bot_id": BOT_ID, "app_id": APP, "team": TEAM, "text": "", "streams": "",
        "thread_ts": args["thread_ts"], "streaming_state": streams.GOING, "ts": city.stamp(),
        "blocks": [{"type": "plan", "title": "Thinking", "tasks": []}],
    }  # fmt: skip
    streams.add(said, args)
    city.messages[channel].append(said)
    return {"channel": channel, "ts": said["ts"]}


def _append_stream(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    found = _message(city, args, "ts")
    streams.going(found)
    if not args.get("chunks") and not args.get("markdown_text"):
        raise SlackError("no_text")
    streams.add(found, args)
    return {"channel": args["channel"], "ts": args["ts"]}


def _stop_stream(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    found = _message(city, args, "ts")
    streams.going(found)
    if not _sound(args.get("blocks", [])):
        raise SlackError("invalid_blocks")
    streams.add(found, args)
    if args.get("session_status"):
        _set_status(city, {"channel_id": args["channel"], "thread_ts": found["thread_ts"],
                           "status": args["session_status"]})  # fmt: skip
    found["streaming_state"] = streams.OVER
    found["blocks"] += args.get("blocks", [])
    found |= {key: args[key] for key in ("metadata",) if key in args}
    return {"channel": args["channel"], "ts": args["ts"], "message": found}


def _set_status(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    if "assistant:write" not in city.scopes:
        raise SlackError("missing_scope")
    if args.get("status") not in streams.SESSIONS or not args.get("thread_ts"):
        raise SlackError("invalid_arguments")
    if len(str(args.get("title", ""))) > 200:
        raise SlackError("invalid_arguments")
    channel = _channel(city, {"channel": args.get("channel_id")})
    city.sessions[channel, args["thread_ts"]] = args["status"]
    return {"status": args["status"]}


def _ephemeral(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    _check(args)
    _channel(city, args)
    city.ephemeral.append(dict(args))
    return {"message_ts": city.stamp()}


def _history(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    """The newest first, without what was written in threads; of messages with metadata only the event type is told
    unless all of it is asked for."""
    found = [one for one in city.messages[_channel(city, args)] if one.get("thread_ts", one["ts"]) == one["ts"]]
    return _page(found[::-1], args)


def _replies(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    first = _message(city, args, "ts")
    channel = city.messages[args["channel"]]
    return _page([first, *(one for one in channel if one.get("thread_ts") == first["ts"])], args)


def _page(found: list[dict[str, Any]], args: Mapping[str, Any]) -> dict[str, Any]:
    oldest, latest = float(args.get("oldest") or 0), float(args.get("latest") or 9e12)
    limit = int(args.get("limit") or 100)
    kept = [one for one in found if oldest < float(one["ts"]) < latest]
    if args.get("cursor"):
        kept = kept[1 + [one["ts"] for one in kept].index(args["cursor"]) :]
    if str(args.get("include_all_metadata", "")).lower() not in {"1", "true"}:
        kept = [{key: value for key, value in one.items() if key != "metadata"} for one in kept]
    more = len(kept) > limit
    after = kept[limit - 1]["ts"] if more else ""
    return {"messages": kept[:limit], "has_more": more, "response_metadata": {"next_cursor": after}}


def _react(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    names: list[str] = _message(city, args, "timestamp").setdefault("reactions", [])
    if args["name"] in names:
        raise SlackError("already_reacted")
    names.append(args["name"])
    return {}


def _unreact(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    names: list[str] = _message(city, args, "timestamp").get("reactions", [])
    if args["name"] not in names:
        raise SlackError("no_reaction")
    names.remove(args["name"])
    return {}


def _user(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    if args.get("user") not in city.users:
        raise SlackError("user_not_found")
    return {"user": {"id": args["user"], "team_id": TEAM, **city.users[args["user"]]}}


def _open_dm(city: SlackWorkspace, args: Mapping[str, Any]) -> dict[str, Any]:
    channel = f"D{str(args['users'])[1:]}"
    city.messages.setdefault(channel, [])
    return {"channel": {"id": channel}}


def _open_socket(city: SlackWorkspace, _args: Mapping[str, Any]) -> dict[str, Any]:
    return {"url": f"{city.url.replace('http', 'ws', 1)}/link/?ticket=1&app_id={APP}"}


METHODS: Mapping[str, Callable[[SlackWorkspace, Mapping[str, Any]], dict[str, Any]]] = {
    "auth.test": _auth_test, "chat.postMessage": _post, "chat.update": _update,
    "chat.delete": _delete, "chat.postEphemeral": _ephemeral,
    "conversations.history": _history, "conversations.replies": _replies, "conversations.open": _open_dm,
    "reactions.add": _react, "reactions.remove": _unreact, "users.info": _user,
    "apps.connections.open": _open_socket, "agents.sessions.setStatus": _set_status,
    "chat.startStream": _start_stream, "chat.appendStream": _append_stream, "chat.stopStream": _stop_stream,
}  # fmt: skip


def _check(args: Mapping[str, Any]) -> None:
    if not args.get("text") and not args.get("blocks"):
        raise SlackError("no_text")
    if len(args.get("text", "")) > MOST_TEXT:
        raise SlackError("msg_too_long")
    if not _sound(args.get("blocks", [])):
        raise SlackError("invalid_blocks")


def _sound(blocks: list[Mapping[str, Any]]) -> bool:
    """Whether the blocks keep to the limits that Slack's reference names."""
    if len(blocks) > MOST_BLOCKS:
        return False
    for block in blocks:
        text = block.get("text", {}).get("text", "") if isinstance(block.get("text"), Mapping) else ""
        elements = block.get("elements", [])
        if block.get("type") == "section" and not 0 < len(text) <= 3000:
            return False
        if block.get("type") == "actions" and not 0 < len(elements) <= 25:
            return False
        if not all(map(_sound_element, elements)):
            return False
        actions = [one.get("action_id") for one in elements]
        if len(actions) != len(set(actions)) or len(block.get("block_id", "")) > 255:
            return False
    return True


def _sound_element(one: Mapping[str, Any]) -> bool:
    match one.get("type"):
        case "button":
            return (
                0 < len(one["text"]["text"]) <= 75
                and len(one.get("value", "")) <= 2000
                and len(one.get("action_id", "")) <= 255
            )
        case "static_select":
            options = one.get("options", [])
            return 0 < len(options) <= 100 and all(0 < len(each["text"]["text"]) <= 75 for each in options)
    return True


def _channel(city: SlackWorkspace, args: Mapping[str, Any]) -> str:
    channel = str(args.get("channel", ""))
    if channel not in city.messages:
        raise SlackError("channel_not_found")
    return channel


def _message(city: SlackWorkspace, args: Mapping[str, Any], key: str) -> dict[str, Any]:
    for one in city.messages[_channel(city, args)]:
        if one["ts"] == args.get(key):
            return one
    raise SlackError("message_not_found")
