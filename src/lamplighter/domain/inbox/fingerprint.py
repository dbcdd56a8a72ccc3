"""What makes two failures the same: their automation, state and reason, and the last line of their error.

In that line whatever differs from one time to the next (numbers, ids, paths, times) is replaced by a word for its kind.
"""

import re
from functools import lru_cache

from lamplighter.kit.canonical import fingerprint

LONGEST_LINE = 300
_LETTERS = 32

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b.")
_DATE = r"\d{4}[-/]\d{2}[-/]\d{2}"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_DAY = r"(?:\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* +\d{1,2},? +(?:\d{4} +)?)?"
# In this order: a time is also made of numbers, an address also of parts of a path.
_REPLACED = [
    (re.compile(rf"{_DATE}(?:[T ]{_CLOCK})?(?:\s?(?:Z|UTC|[+-]\d{{2}}:?\d{{2}}))?"), "<time>"),
    (re.compile(rf"{_DAY}(?<![\w.]){_CLOCK}(?:\s?(?:Z|UTC|[AP]M))?(?![\w:])"), "<time>"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b([a-z][a-z0-9+.-]*://[^\s/'\"<>)]+)/[^\s'\"<>)]*"), r"\1<path>"),
    (re.compile(r"(?<![\w</])(?!//)(?:[A-Za-z]:\\|~/|\.{1,2}/|/)[^\s'\"<>:,;()]+(?:/|\b)"), "<path>"),
    (re.compile(r"(?<![\w/<])[\w.-]+/[\w./-]+"), "<path>"),
    (re.compile(r"\b(?:0x[0-9a-fA-F]+|[a-z]{2,5}_[0-9a-z]{20,})\b"), "<id>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"), "<id>"),
    (re.compile(r"\b(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9_-]{16,}\b"), "<id>"),
    (re.compile(r"\d+(?:[.,]\d+)*"), "<n>"),
]  # fmt: skip


def last_line(text: str) -> str:
    """The last line that says something; empty if there is none."""
    lines = [line for line in _ESCAPES.sub("", text[-8 * LONGEST_LINE :]).splitlines() if line.strip()]
    return " ".join(lines[-1].split())[:LONGEST_LINE] if lines else ""


def settled_line(line: str) -> str:
    """The line with words in the place of numbers, ids, paths and times."""
    for pattern, word in _REPLACED:
        line = pattern.sub(word, line)
    return line


def of_failure(automation: str, state: str, reason: str, error: str) -> str:
    """The same for every run that failed in the same way."""
    return _of_failure(automation, state, reason, last_line(error))


@lru_cache(maxsize=1024)
def _of_failure(automation: str, state: str, reason: str, line: str) -> str:
    """Kept, because what fails often fails in the same words."""
    return f"run:{fingerprint([automation, state, reason, settled_line(line)])[:_LETTERS]}"


def of_question(run: str) -> str:
    """A run that asks for a person stands for itself alone."""
    return f"run:{run}"


def of_outbox(kind: str, error: str) -> str:
    return f"outbox:{fingerprint([kind, settled_line(last_line(error))])[:_LETTERS]}"
