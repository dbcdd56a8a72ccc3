"""The output of programs for a page: colours as classes, everything else that terminals obey left out.

The result is plain text in pieces, which the template escapes: nothing that a program prints becomes markup.
"""

import re
from dataclasses import dataclass

MOST_LINES = 5000
"""Of longer output the last lines are shown."""
_ESCAPE = re.compile(
    r"\x1b\[(?P<codes>[0-9;:]*)m"  # colour and weight
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # any other control sequence
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # a title, a link, a device string
    r"|\x1b[ -/]*[0-~]?"  # other escapes
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # other controls, but tab, line feed and carriage return
    r"|[\u202a-\u202e\u2066-\u2069]",  # marks that turn the direction of text, which can hide what it says
    re.DOTALL,
)
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_FACES = {1: "b", 2: "dim", 3: "i", 4: "u", 7: "inv", 9: "st"}
_OFF = {22: {"b", "dim"}, 23: {"i"}, 24: {"u"}, 27: {"inv"}, 29: {"st"}}


@dataclass(frozen=True)
class Piece:
    text: str
    look: str
    """Names of classes, such as `fg-red b`."""


Line = tuple[Piece, ...]


@dataclass
class _Pen:
    foreground: str = ""
    background: str = ""
    faces: frozenset[str] = frozenset()

    @property
    def look(self) -> str:
        return " ".join(one for one in (self.foreground, self.background, *sorted(self.faces)) if one)

    def obey(self, codes: str) -> None:
        numbers = [int(one) if one.isdigit() and len(one) < 6 else 0 for one in re.split("[;:]", codes)]
        while numbers:
            self._one(numbers.pop(0), numbers)

    def _one(self, code: int, rest: list[int]) -> None:
        if code == 0:
            self.foreground, self.background, self.faces = "", "", frozenset()
        elif code in _FACES:
            self.faces |= {_FACES[code]}
        elif code in _OFF:
            self.faces -= _OFF[code]
        elif code in {38, 48}:
            self._extended(code, rest)
        elif code in {39, 49}:
            self._colour("" if code == 39 else None, "" if code == 49 else None)
        else:
            self._plain(code)

    def _plain(self, code: int) -> None:
        for first, kind, bright in ((30, "fg", ""), (90, "fg", "bright-"), (40, "bg", ""), (100, "bg", "bright-")):
            if first <= code < first + 8:
                name = f"{kind}-{bright}{_COLOURS[code - first]}"
                self._colour(name if kind == "fg" else None, name if kind == "bg" else None)

    def _extended(self, code: int, rest: list[int]) -> None:
        """Of 256 colours the first sixteen; others, which no theme can promise to be readable, are left out."""
        kind = rest.pop(0) if rest else 0
        taken = [rest.pop(0) for _ in range(min(len(rest), 1 if kind == 5 else 3 if kind == 2 else 0))]
        name = ""
        if kind == 5 and taken and taken[0] < 16:
            bright = "bright-" if taken[0] >= 8 else ""
            name = f"{'fg' if code == 38 else 'bg'}-{bright}{_COLOURS[taken[0] % 8]}"
        self._colour(name if code == 38 else None, name if code == 48 else None)

    def _colour(self, foreground: str | None, background: str | None) -> None:
        self.foreground = self.foreground if foreground is None else foreground
        self.background = self.background if background is None else background


def lines_of(output: str, *, most: int = MOST_LINES) -> tuple[list[Line], int]:
    """The last lines of the output, and how many lines were left out before them.

    Of a line that was written over (by a carriage return alone) the last state is shown.
    """
    pen, text = _Pen(), output.replace("\r\n", "\n")
    made = [_line(raw, pen) for raw in text.removesuffix("\n").split("\n")] if text else []
    left_out = max(0, len(made) - most)
    return made[left_out:], left_out


def _line(raw: str, pen: _Pen) -> Line:
    shown = raw.rstrip("\r").rpartition("\r")
    for found in _ESCAPE.finditer(shown[0]):  # colours set in the part that was written over stay in force
        if found["codes"] is not None:
            pen.obey(found["codes"])
    pieces: list[Piece] = []
    at, text = 0, shown[2]
    for found in _ESCAPE.finditer(text):
        _add(pieces, text[at : found.start()], pen.look)
        at = found.end()
        if found["codes"] is not None:
            pen.obey(found["codes"])
    _add(pieces, text[at:], pen.look)
    return tuple(pieces)


def _add(pieces: list[Piece], text: str, look: str) -> None:
    if not text:
        return
    if pieces and pieces[-1].look == look:
        text = pieces.pop().text + text
    pieces.append(Piece(text, look))


def plain(output: str) -> str:
    """The output as text alone."""
    return "\n".join("".join(piece.text for piece in line) for line in lines_of(output)[0])
