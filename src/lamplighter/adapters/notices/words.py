"""A notice in plain words, for destinations that show text to people."""

from lamplighter.domain.inbox.items import URGENT
from lamplighter.ports.messenger import Message

LONGEST_TITLE = 120
_OCCASIONS = {"recovered": "over", "succeeded": "succeeded", "digest": "digest", "test": "trial", "session": "session"}


def title(message: Message) -> str:
    """One line: the city, the occasion, and the beginning of the sentence."""
    occasion = _OCCASIONS.get(message.what)
    about = f"[{message.city}] {f'{occasion}: ' if occasion else ''}{message.body.get('sentence') or message.what}"
    line = " ".join(_plain(about).split())
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…"


def text(message: Message) -> str:
    """The sentence, the lines of a digest, the command that mends it, and the link."""
    parts = [_plain(message.body.get("sentence"))]
    lines = message.body.get("lines")
    if isinstance(lines, list):
        parts.append("\n".join(f"- {_plain(one)}" for one in lines))
    if message.body.get("summary"):
        parts.append(_plain(message.body["summary"]))
    if message.body.get("fix"):
        parts.append(f"To mend it: {_plain(message.body['fix'])}")
    if message.link:
        parts.append(message.link)
    return "\n\n".join(part for part in parts if part)


def is_urgent(message: Message) -> bool:
    return message.body.get("kind") in {one.value for one in URGENT}


def _plain(value: object) -> str:
    """Without characters that no text of a message may hold."""
    cleaned = "".join(one if one.isprintable() or one in "\n\t" else " " for one in str(value or ""))
    return cleaned.encode("utf-8", "replace").decode()
