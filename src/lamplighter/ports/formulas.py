"""The city's formulas: files in its layers, of which a rig may have more than the city."""

from collections.abc import Sequence
from typing import Protocol

from lamplighter.domain.beads.formulas import Formula, FormulaInvalid
from lamplighter.kit.records import record


@record
class FormulaFile:
    """`name` is that of the file; `formula` is what it says, or what is wrong with it."""

    name: str
    source: str
    formula: Formula | FormulaInvalid


class FormulaFiles(Protocol):
    """Calls read files."""

    def every(self, rig: str | None) -> Sequence[FormulaFile]:
        """Every formula as the rig sees them, or as the city does for None; by name."""
        ...

    def read(self, name: str, rig: str | None) -> Formula:
        """Raises NotFound, FormulaInvalid."""
        ...
