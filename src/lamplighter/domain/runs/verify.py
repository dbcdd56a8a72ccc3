"""Verifying a claim of success: what a round's verdict means for its run, and what the program is told next."""

from dataclasses import dataclass

LONGEST_QUOTE = 4000
"""How many characters of a command's output a program is told; the whole tail is in a file."""
LONGEST_COMMAND = 100
LONGEST_LAST_LINE = 200


@dataclass(frozen=True)
class Passed:
    """The run has succeeded, and that is verified."""


@dataclass(frozen=True)
class Again:
    """The program goes on, in the next round."""

    round: int


@dataclass(frozen=True)
class GivenUp:
    """The run has failed: it claimed a success that it could not show."""


Judged = Passed | Again | GivenUp


def judged(number: int, *, rounds: int, passed: bool) -> Judged:
    """`number` is the round of the claim, from 1; `rounds` is how often the program may go on after a red one."""
    if passed:
        return Passed()
    return Again(number + 1) if number <= rounds else GivenUp()


@dataclass(frozen=True)
class Checked:
    """How the command that verifies ended; `exit_code` is None where it did not end by itself."""

    exit_code: int | None
    output: str = ""
    why: str = ""
    """Why it did not end by itself, or could not be started."""

    @property
    def passed(self) -> bool:
        return self.exit_code == 0 and not self.why

    @property
    def told(self) -> str:
        return self.why or f"it ended with exit code {self.exit_code}"


def refused(command: str, checked: Checked) -> str:
    """Why a success was not verified: `` `make test` ended with exit code 1: 2 failed ``."""
    lines = command.strip().splitlines()
    named = lines[0][:LONGEST_COMMAND] if lines else ""
    cut = "…" if named != command.strip() else ""
    why = f": {checked.why}" if checked.why else f" ended with exit code {checked.exit_code}"
    said = [line.strip() for line in checked.output.splitlines() if line.strip()]
    last = f": {said[-1][:LONGEST_LAST_LINE]}" if said else ""
    return f"the check `{named}{cut}`{why}{last}"


def message(command: str, checked: Checked) -> str:
    """What the program is told after a round that was not verified."""
    said = checked.output.strip()
    cut = said[-LONGEST_QUOTE:]
    lines = [
        f"You reported success, but that could not be verified by `{command}`: {checked.told}.",
        "Mend what is wrong, and report the end of the run again.",
    ]
    if cut:
        lines += ["The end of what it printed:" if len(cut) < len(said) else "It printed:", "", cut]
    return "\n".join(lines)
