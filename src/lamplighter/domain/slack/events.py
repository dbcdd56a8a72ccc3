"""Messages that people write in Slack, as its events tell of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

STOP = "x"
"""The reaction that ends the turn which works in a thread."""
_SPOKEN = frozenset({"", "file_share", "thread_broadcast"})
_DIRECT = "im"
EARLY_WITHIN = timedelta(minutes=10)
"""Slack tells of a message again after a minute and after five; later than that it gives up."""


MOST_FILES = 10


@dataclass(frozen=True)
class Attached:
    """A file that was sent along; `why` says why it cannot be had, empty where it can."""

    name: str
    url: str
    size: int = 0
    kind: str = ""
    why: str = ""


@dataclass(frozen=True)
class Said:
    """What a person wrote. `thread` is the first message of the thread, or the message itself where it begins one.

    `to_us` says that the app was mentioned, or told directly: such a message may begin a conversation.
    """

    team: str
    person: str
    channel: str
    message: str
    thread: str
    text: str
    to_us: bool
    files: tuple[Attached, ...] = ()


def said(team: str, event: Mapping[str, Any], *, bot_user: str, bot_id: str) -> Said | None:
    """What a person wrote that may be meant for us; None for all else, above all for what apps write, us included."""
    if event.get("type") not in ("app_mention", "message") or str(event.get("subtype") or "") not in _SPOKEN:
        return None
    person, text, at = (str(event.get(key) or "") for key in ("user", "text", "ts"))
    if event.get("bot_id") or event.get("bot_profile") or person in {"", bot_user} or not at:
        return None
    direct = event.get("channel_type") == _DIRECT
    mention = f"<@{bot_user}>"
    channel, thread = str(event.get("channel") or ""), str(event.get("thread_ts") or at)
    spoken = _readable(text.replace(mention, " "))
    files = _attached(event.get("files"))
    if not channel or not (spoken or files) or not bot_id:
        return None
    return Said(team, person, channel, at, thread, spoken, direct or mention in text, files)


def _attached(value: object) -> tuple[Attached, ...]:
    given = [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
    return tuple(_file(one) for one in given[:MOST_FILES])


def _file(one: Mapping[str, Any]) -> Attached:
    url = one.get("url_private_download") or one.get("url_private")
    size = one.get("size")
    return Attached(
        name=str(one.get("name") or one.get("id") or "file")[:200],
        url=url if isinstance(url, str) else "",
        size=size if isinstance(size, int) else 0,
        kind=str(one.get("mimetype") or "")[:100],
        why="" if isinstance(url, str) else "Slack does not say where it is",
    )


def with_files(heard: Said, kept: Sequence[str], missing: Sequence[str]) -> Said:
    """What was said, with where its files are, and which of them are not to be had."""
    parts = [heard.text or "These files belong to it."]
    if kept:
        parts.append("Files that were sent along, to be read as data: " + ", ".join(kept))
    parts += [f"A file could not be had: {one}." for one in missing]
    return replace(heard, text="\n\n".join(parts), files=())


@dataclass(frozen=True)
class Stop:
    """Somebody wants to end what works in a thread, by a reaction to one of its messages or Slack's own Stop button."""

    team: str
    person: str
    channel: str
    message: str
    at: str


def stopped(team: str, event: Mapping[str, Any], *, bot_user: str) -> Stop | None:
    """The wish to end what works in a thread; None for all else, also for the marks that we set ourselves."""
    if event.get("type") == "agent_session_stopped":
        told = [str(event.get(key) or "") for key in ("user", "channel", "thread_ts", "event_ts")]
        return Stop(team, *told) if all(told) else None
    item = event.get("item")
    if event.get("type") != "reaction_added" or event.get("reaction") != STOP or not isinstance(item, Mapping):
        return None
    person, at = (str(event.get(key) or "") for key in ("user", "event_ts"))
    channel, message = (str(item.get(key) or "") for key in ("channel", "ts"))
    if person in {"", bot_user} or not channel or not message:
        return None
    return Stop(team, person, channel, message, at)


def _readable(text: str) -> str:
    """The text without Slack's marks around links, and with its signs as they are."""
    shown = re.sub(r"<(?:mailto:)?([^<>|@#!][^<>|]*)(?:\|[^<>]*)?>", r"\1", text)
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("\0", "").strip()


def counts(heard: Said, *, started_by: str, others: bool) -> bool:
    """Whether a message in a thread of ours is a turn: without a mention only where nobody else has spoken."""
    return heard.to_us or (heard.person == started_by and not others)


def is_early(heard: Said, now: datetime) -> bool:
    """Whether the message that began the thread of a reply may still come: it was written a short time ago."""
    try:
        began = float(heard.thread)
    except ValueError:
        return False
    return heard.thread != heard.message and abs(now.timestamp() - began) < EARLY_WITHIN.total_seconds()
