"""Whether a program stands at a permission prompt of its own, by what its screen or its output shows last."""

import re
from collections.abc import Iterable
from itertools import takewhile

from lamplighter.domain.sessions.presets.model import Asking
from lamplighter.kit.records import record

LINES_READ = 30
LONGEST = 400
_BEFORE = 6  # so many lines before the question say what it is about
_AFTER = 4  # and so many after it, before the options
_END = 3  # so many of the last lines of plain output may hold a question
_BORDERS = " \t│┃|▌╭╮╰╯─━┌┐└┘▏▕█"
_PROMPTS = re.compile(
    r"do you want to (?:proceed|make this edit|create|overwrite|allow|run|use|fetch)\b"  # Claude Code, Copilot, Gemini
    r"|would you like to (?:run the following command|make the following edits|grant|allow)"  # Codex
    r"|allow (?:codex to|execution of|command|this (?:tool|action|command))\b"  # Codex, Gemini, Qwen, goose
    r"|apply this change\?"  # Gemini, Qwen
    r"|permission required"  # opencode
    r"|goose would like to call"
    r"|waiting for (?:your )?(?:approval|confirmation|permission)\b",
    re.IGNORECASE,
)
_AT_END = re.compile(
    r"(?:\[y(?:es)?/n(?:o)?(?:/[^\]]*)?\]|\(y(?:es)?/n(?:o)?(?:/[^)]*)?\)|continue\?|proceed\?|approve\?|allow\?)\s*[:>]?\s*$",
    re.IGNORECASE,
)


_OPTION = re.compile(r"[❯›>●▶→*]|\d+[.)]\s|\[|esc\b", re.IGNORECASE)  # noqa: RUF001  the signs that programs draw


_NUMBERED = re.compile(r"(?:[❯›>●▶→*]\s*)?([1-9])[.)]\s+(\S.*)")  # noqa: RUF001  as above
_YES_OR_NO = re.compile(r"[\[(]y(?:es)?/n(?:o)?(?:/[^\])]*)?[\])]\s*[:>]?\s*$", re.IGNORECASE)


def asked_on(screen: str) -> str:
    """What the program on this screen asks to be allowed; empty if it does not stand at such a prompt."""
    return _told(_shown(screen))


def asked_while_drawing(screen: str, known: Iterable[Asking]) -> str:
    """The same for a program that goes on drawing: only a prompt that is known as its own counts, as the last there."""
    shown = _shown(screen)
    for one in known:
        if one.end in " ".join(shown[-_END:]) and any(one.question in line for line in shown):
            return _told(shown)
    return ""


@record
class Choice:
    """A way to answer: `keys` are pressed for it, by the names of keys or as text."""

    keys: tuple[str, ...]
    text: str


def choices_on(screen: str) -> tuple[Choice, ...]:
    """The choices that the program offers beside its question; none where it asks for nothing that is known.

    The numbers of a menu choose at once. A question for yes or no is answered by a letter and Enter.
    """
    lines = _shown(screen)
    at = [number for number, line in enumerate(lines) if _PROMPTS.search(line)]
    numbered = [found for line in lines[at[-1] :] if (found := _NUMBERED.match(line))] if at else []
    if numbered:
        return tuple(Choice((one[1],), one[2].strip()) for one in numbered)
    if lines and _YES_OR_NO.search(lines[-1]):
        return (Choice(("y", "Enter"), "Yes"), Choice(("n", "Enter"), "No"))
    return ()


def _shown(screen: str) -> list[str]:
    """The last lines with text, without the borders that are drawn around them."""
    lines = [bare for line in screen.splitlines()[-2 * LINES_READ :] if (bare := line.strip(_BORDERS).strip())]
    return lines[-LINES_READ:]


def asked_last(output: str) -> str:
    """The same for a program without a terminal, by the end of its output; empty if that is a stream of JSON."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines or lines[-1].startswith("{"):
        return ""
    return _told([line for line in lines[-_END:] if not line.startswith("{")])


def _told(lines: list[str]) -> str:
    at = [number for number, line in enumerate(lines) if _PROMPTS.search(line)]
    if not at and lines and _AT_END.search(lines[-1]):
        at = [len(lines) - 1]
    if not at:
        return ""
    after = list(takewhile(lambda line: not _OPTION.match(line), lines[at[-1] + 1 :]))[:_AFTER]
    text = " ".join(" ".join([*lines[max(at[-1] - _BEFORE, 0) : at[-1] + 1], *after]).split())
    return text if len(text) <= LONGEST else f"…{text[-LONGEST:]}"
