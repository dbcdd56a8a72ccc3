"""The formulas of a city's layers, as operations read them."""

from collections.abc import Sequence
from pathlib import Path

from lamplighter.adapters.files.formulas import formula_files, read_formula, read_formula_file
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.beads.formulas import Formula, FormulaInvalid
from lamplighter.kit.errors import NotFound
from lamplighter.kit.records import record
from lamplighter.ports.formulas import FormulaFile


@record
class FormulasOfCity:
    city: OpenCity

    def every(self, rig: str | None) -> Sequence[FormulaFile]:
        found = sorted(formula_files(self._layers(rig)).items())
        files = []
        for name, path in found:
            try:
                read: Formula | FormulaInvalid = read_formula_file(path)
            except FormulaInvalid as error:
                read = error
            files.append(FormulaFile(name, str(path), read))
        return files

    def read(self, name: str, rig: str | None) -> Formula:
        return read_formula(name, self._layers(rig))

    def _layers(self, rig: str | None) -> Sequence[Path]:
        """Raises NotFound for an unknown rig."""
        if rig and self.city.config.city.rig(rig) is None:
            raise NotFound(f"There is no rig `{rig}`.", hint="`lamp rig list` shows those there are.")
        return self.city.formula_layers(rig)
