"""Reads formulas from `<layer>/<name>.formula.toml`; a later layer's file replaces an earlier one of that name."""

from collections.abc import Sequence
from pathlib import Path

from lamplighter.adapters.files.toml import text_of
from lamplighter.domain.beads.formulas import Formula, FormulaInvalid, decode
from lamplighter.kit import toml_text
from lamplighter.kit.errors import NotFound
from lamplighter.kit.nearest import did_you_mean

ENDING = ".formula.toml"


def formula_files(layers: Sequence[Path]) -> dict[str, Path]:
    """The file of each formula by name, from the last layer that has one."""
    found: dict[str, Path] = {}
    for layer in layers:
        if layer.is_dir():
            for path in sorted(layer.glob("*" + ENDING)):
                found[path.name.removesuffix(ENDING)] = path
    return found


def read_formula(name: str, layers: Sequence[Path]) -> Formula:
    """Raises NotFound, or FormulaInvalid with every problem of the file."""
    files = formula_files(layers)
    if name not in files:
        where = ", ".join(str(layer) for layer in layers) or "no directory at all"
        raise NotFound(
            f"There is no formula `{name}`{did_you_mean(name, files)}", hint=f"Formulas are looked for in {where}."
        )
    return read_formula_file(files[name])


def read_formula_file(path: Path) -> Formula:
    try:
        tree = toml_text.parse(text_of(path.read_bytes()))
    except ValueError as error:
        raise FormulaInvalid(str(path), [f"is not TOML: {error}"]) from error
    except OSError as error:
        raise FormulaInvalid(str(path), [f"cannot be read: {error.strerror}"]) from error
    return decode(tree, str(path))
