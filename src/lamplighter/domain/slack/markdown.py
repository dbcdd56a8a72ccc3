"""Markdown, as agents write it, in the marks that Slack shows."""

import re
from urllib.parse import urlsplit

_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]+`)", re.DOTALL)
_FENCE = re.compile(r"\A```[\w+-]*\n")
_LINK = re.compile(r"!?\[([^\[\]\n]{1,300})\]\((https?://[^\s()<>|]{1,2000})\)")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_BOLD = re.compile(r"(?<![\w*])(\*\*|__)(?=\S)([^\n]+?)(?<=\S)\1(?![\w*])")
_STRUCK = re.compile(r"~~(?=\S)([^\n~]+?)(?<=\S)~~")
_ITEM = re.compile(r"^(\s*)[-*+]\s+", re.MULTILINE)
_MENTION = re.compile(r"<(?=[@!#]|[^<>\s|]*\|)")
"""What Slack would take for a mention, or for a link in marks of its own."""


def plain(text: str) -> str:
    """The text with what Slack would read as marks, links or mentions made harmless."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def harmless(text: str) -> str:
    """Markdown for a stream, which Slack shows by itself: in it, too, nothing can mention anybody."""
    parts = _CODE.split(text)
    return "".join(
        _MENTION.sub("<\N{WORD JOINER}", part if number % 2 else _LINK.sub(_honest, part))
        for number, part in enumerate(parts)
    )


def shown(text: str) -> str:
    """Headings, emphasis, lists and links as Slack shows them; code as it is. Nothing in it can mention anybody."""
    parts = _CODE.split(text)
    return "".join(
        _FENCE.sub("```\n", plain(part)) if number % 2 else _prose(part) for number, part in enumerate(parts)
    )


def _prose(text: str) -> str:
    found = plain(text)
    found = _ITEM.sub(r"\1• ", found)
    found = _HEADING.sub(lambda one: f"*{one[1].replace('**', '')}*", found)
    found = _BOLD.sub(r"*\2*", found)
    found = _STRUCK.sub(r"~\1~", found)
    return _LINK.sub(_link, found)


def _link(found: "re.Match[str]") -> str:
    return f"{found[1]} ({found[2]})" if _misleads(found) else f"<{found[2]}|{found[1]}>"


def _honest(found: "re.Match[str]") -> str:
    return f"{found[1]} ({found[2]})" if _misleads(found) else found[0]


def _misleads(found: "re.Match[str]") -> bool:
    """Whether the text of a link is an address itself, and leads somewhere else."""
    seems = re.match(r"(?:https?://)?([\w.-]+\.[a-z]{2,})(?:/|$)", found[1])
    return seems is not None and seems[1] != (urlsplit(found[2]).hostname or "")
