"""What is posted in Slack: notices with their buttons, what became of them, and long texts in parts."""

from collections.abc import Mapping, Sequence
from typing import Any

from lamplighter.domain.slack.markdown import plain

EVENT_TYPE = "lamp_notice"
PREFIX = "lamp"
"""What the ids of our buttons begin with."""
LONGEST_SECTION = 2900
LONGEST_BUTTON = 75
LONGEST_PART = 3500
"""Slack shows at least so many characters of a message in one piece."""
MOST_CHOICES = 10
MOST_OPTIONS = 100
STOP, PLACE = "stop", "place"
"""The verbs of what belongs to a thread, not to an inbox item."""
_OF_RUNS = frozenset({"failed", "timed_out"})


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def notice(body: Mapping[str, Any], *, notice_id: str, city: str, link: str, buttons: bool) -> dict[str, Any]:
    """A notice as the arguments of `chat.postMessage`; its id is in the message's metadata.

    `link` is the address of the console's pages; empty for none. `buttons` says that presses reach the city.
    """
    text = _text(body, link)
    blocks = [section(text), {"type": "context", "elements": [{"type": "mrkdwn", "text": cut(plain(city), 200)}]}]
    if buttons:
        blocks += actions(body)
    payload = {"notice": notice_id}
    return {
        "text": cut(plain(str(body.get("sentence") or "")), LONGEST_SECTION), "blocks": blocks,
        "metadata": {"event_type": EVENT_TYPE, "event_payload": payload}, "unfurl_links": False, "unfurl_media": False,
    }  # fmt: skip


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": cut(text, LONGEST_SECTION) or "…"}}


def _text(body: Mapping[str, Any], link: str) -> str:
    said = cut(plain(str(body.get("sentence") or "")), 1500)
    lines = [said]
    if body.get("summary"):
        lines.append(cut(plain(str(body["summary"])), 800))
    if body.get("lines"):
        lines += [f"• {cut(plain(str(one)), 100)}" for one in list(body["lines"])[:10]]
    if body.get("fix"):
        lines.append(f"`{cut(plain(str(body['fix'])).replace('`', chr(39)), 300)}`")
    if link:
        path, what = (f"/runs/{body['run']}", "the run") if body.get("run") else ("/inbox", "the inbox")
        lines.append(f"<{link.rstrip('/')}{path}|Open {what}>")
    return "\n".join(lines)


def actions(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The blocks by which an open item is dealt with in place; none for anything else."""
    item = body.get("item")
    if not isinstance(item, str) or body.get("state") != "open":
        return []
    asked = body.get("question")
    if isinstance(asked, Mapping):
        return _of_question(item, asked)
    verbs = ("retry", "claim", "resolve") if body.get("kind") in _OF_RUNS else ("claim", "resolve")
    return [_row(item, [(verb, verb.capitalize(), verb) for verb in verbs])]


def _of_question(item: str, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    if asked.get("plan"):
        return [_row(item, [("approve", "Approve", "approve"), ("reject", "Reject", "reject"),
                            ("claim", "Claim", "claim")])]  # fmt: skip
    if not asked.get("answerable"):
        return [_row(item, [("claim", "Claim", "claim"), ("resolve", "Resolve", "resolve")])]
    choices = [str(one) for one in asked.get("choices") or () if str(one).strip()][:MOST_CHOICES]
    found = [(f"answer:{number}", choice, choice) for number, choice in enumerate(choices)]
    blocks = [_row(item, [*found, ("claim", "Claim", "claim")])]
    blocks.append(
        {
            "type": "input",
            "block_id": f"{PREFIX}:{item}:text",
            "dispatch_action": True,
            "label": {"type": "plain_text", "text": "Answer, and press Enter"},
            "element": {
                "type": "plain_text_input",
                "action_id": f"{PREFIX}:answer",
                "dispatch_action_config": {"trigger_actions_on": ["on_enter_pressed"]},
            },
        }
    )
    return blocks


def _row(item: str, buttons: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    elements = [
        {
            "type": "button", "action_id": f"{PREFIX}:{action}", "value": cut(value, 2000),
            "text": {"type": "plain_text", "text": cut(label, LONGEST_BUTTON)},
        }
        for action, label, value in buttons
    ]  # fmt: skip
    return {"type": "actions", "block_id": f"{PREFIX}:{item}", "elements": elements}


def at_work(text: str, doing: str, thread: str, *, buttons: bool) -> list[dict[str, Any]]:
    """A message of a turn as long as it is worked on: what was said, what is being done, and a way to end it."""
    blocks = [section(one) for one in parts(text, LONGEST_SECTION)]
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": f":hourglass_flowing_sand: {doing} …"}]})
    if buttons:
        row = _row(thread, [(STOP, "Stop", STOP)])
        row["elements"][0]["style"] = "danger"
        blocks.append(row)
    return blocks


def picker(text: str, thread: str, places: Mapping[str, str]) -> list[dict[str, Any]]:
    """A choice among places, each with what it is for."""
    options = [
        {
            "text": {"type": "plain_text", "text": cut(name, LONGEST_BUTTON)}, "value": name,
            **({"description": {"type": "plain_text", "text": cut(told, LONGEST_BUTTON)}} if told else {}),
        }
        for name, told in list(places.items())[:MOST_OPTIONS]
        if len(name) <= LONGEST_BUTTON
    ]  # fmt: skip
    menu = {
        "type": "static_select", "action_id": f"{PREFIX}:{PLACE}", "options": options,
        "placeholder": {"type": "plain_text", "text": "Where?"},
    }  # fmt: skip
    return [section(text), {"type": "actions", "block_id": f"{PREFIX}:{thread}", "elements": [menu]}]


def decided(blocks: Sequence[Mapping[str, Any]], told: str, *, keeps_buttons: bool) -> list[Mapping[str, Any]]:
    """The blocks of a message after somebody has acted there; `told` says who did what."""
    kept = [one for one in blocks if keeps_buttons or one.get("type") not in {"actions", "input"}]
    said = {"type": "context", "elements": [{"type": "mrkdwn", "text": cut(plain(told), 1000)}]}
    return [*kept[:48], said]


def parts(text: str, most: int = LONGEST_PART) -> list[str]:
    """The text in parts that fit a message, broken at line ends or spaces where there are any."""
    found, rest = [], text.strip()
    while len(rest) > most:
        at = max(rest.rfind("\n", most // 2, most), 0) or max(rest.rfind(" ", most // 2, most), 0) or most
        found.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return [*found, rest] if rest else found
