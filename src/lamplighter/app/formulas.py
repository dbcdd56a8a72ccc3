"""Formulas of a city as commands use them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lamplighter.adapters.files.formulas import formula_files, read_formula_file
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.beads.formulas import FormulaInvalid, plan
from lamplighter.domain.beads.model import Bead


def list_formulas(city: OpenCity, rig: str | None = None) -> list[dict[str, Any]]:
    """Every formula by name; an invalid one has its problem in place of its steps."""
    found = []
    for name, path in sorted(formula_files(city.formula_layers(rig)).items()):
        try:
            formula = read_formula_file(path)
        except FormulaInvalid as error:
            found.append({"name": name, "source": str(path), "problem": "; ".join(error.problems)})
        else:
            found.append(formula.as_json() | {"name": name, "step_count": len(formula.steps), "problem": None})
    return found


def cook(  # noqa: PLR0913  one keyword for each option of the command
    city: OpenCity,
    name: str,
    *,
    title: str | None,
    values: Mapping[str, str],
    parent: str | None = None,
    labels: Sequence[str] = (),
    rig: str | None = None,
) -> Bead:
    made = plan(city.formula(name, rig), title=title, values=values)
    made = replace(made, root=replace(made.root, parent=parent, labels=tuple(labels)))
    return city.beads.cook(made, rig=rig)
