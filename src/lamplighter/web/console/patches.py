"""A patch as a page shows it: by file, with counts, each line by its kind."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_LINES = 4000
"""Of a longer patch the first lines are shown."""


class Line(NamedTuple):
    """`kind` is `add`, `del`, `hunk` or `same`; `number` that of the line in the file as it is now, or as it was for
    one that was removed.
    """

    kind: str
    text: str
    number: int | None = None


@dataclass
class ChangedFile:
    name: str
    added: int = 0
    removed: int = 0
    lines: list[Line] = field(default_factory=list)


def files_of(patch: str, *, most: int = MOST_LINES) -> tuple[Sequence[ChangedFile], int]:
    """The files of a patch that git wrote, and how many lines were left out after `most`. Counts are of all lines."""
    files: list[ChangedFile] = []
    shown = left_out = 0
    in_header = False
    numbers = {"del": 0, "add": 0}
    for line in patch.splitlines():
        if line.startswith("diff --git "):
            files.append(ChangedFile(line.rpartition(" b/")[2] or line))
            in_header = True
            continue
        if not files:
            continue
        if line.startswith("@@"):
            in_header = False
        kind = "hunk" if in_header or line.startswith("@@") else _KINDS.get(line[:1], "same")
        number = _counted(numbers, kind, line)
        files[-1].added += kind == "add"
        files[-1].removed += kind == "del"
        if in_header and not line.startswith(_TOLD):
            continue
        if shown < most:
            files[-1].lines.append(Line(kind, line, number))
            shown += 1
        else:
            left_out += 1
    return files, left_out


def _counted(numbers: dict[str, int], kind: str, line: str) -> int | None:
    """The number of the line; `numbers` has those that come next, before and after the change."""
    if kind == "hunk":
        begins = _HUNK.match(line)
        if begins is not None:
            numbers.update({"del": int(begins[1]), "add": int(begins[2])})
        return None
    found = numbers["del" if kind == "del" else "add"]
    for side in ("del", "add") if kind == "same" else (kind,):
        numbers[side] += 1
    return found


_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})")
_KINDS = {"+": "add", "-": "del"}
_TOLD = ("new file", "deleted file", "rename ", "old mode", "new mode", "Binary ")
"""What of a file's header is shown."""
