"""The files in which people configure a city: read anew, and edited in place."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import Rig
from lamplighter.kit.errors import Kind, LampError
from lamplighter.kit.records import record


class NotEditable(LampError):
    """Raised instead of editing a city.toml that cannot be loaded."""

    kind = Kind.USAGE

    def __init__(self, error: LampError) -> None:
        super().__init__(
            f"Nothing was changed, because this command edits city.toml, which is broken:\n{error.message}",
            hint="Mend the file first; `lamp config check` looks at it. `lamp pause` and `lamp stop` work without it.",
        )


@record
class Edited:
    """`changed` is False if nothing had to change; `undo` puts the file back as it was."""

    changed: bool
    undo: Callable[[], None]


@record
class NewRig:
    path: Path
    name: str | None = None
    """The directory's name if left out."""
    prefix: str | None = None
    topology: str | None = None


@record
class AddedRig:
    rig: Rig
    edited: Edited


@record
class AutomationText:
    """The text of an automation.toml, and the line of its table; of one that is wrong the line where it is wrong."""

    text: str
    line: int | None


class CityFiles(Protocol):
    """Every method reads and writes files, and so may block for a while.

    An edit changes only what it must of the text that people wrote, and is taken back if the result is invalid. Edits
    raise NotEditable, and CopiedCity for a copy of another city.
    """

    def load(self, *, strict: bool = False) -> LoadedCity:
        """Load the files as they are now. Raises ConfigInvalid with every problem; `strict` counts notes as such."""
        ...

    def automation_text(self, path: str) -> AutomationText:
        """Raises NotFound where no file can be read there."""
        ...

    def suspend_city(self, *, suspended: bool) -> Edited: ...

    def suspend_rig(self, name: str, *, suspended: bool) -> Edited:
        """Raises NotFound."""
        ...

    def suspend_agent(self, name: str, *, suspended: bool) -> Edited:
        """`name` is the qualified name of a declared agent. Raises NotFound."""
        ...

    def add_rig(self, rig: NewRig) -> AddedRig:
        """Raises Conflict if the name or the directory is taken, ConfigInvalid if the prefix is."""
        ...
