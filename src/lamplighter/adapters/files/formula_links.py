"""Links formulas into `.beads/formulas` of the city and its rigs, where `bd` looks for them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lamplighter.adapters.files.formulas import ENDING, formula_files
from lamplighter.domain.city.model import City
from lamplighter.domain.city.paths import BEADS_DIR
from lamplighter.kit.errors import Unavailable


def link_formulas(city: City) -> None:
    """Link the formulas that are in force, where there is a `.beads` directory. Raises Unavailable.

    Links that are right are left alone; those to formulas that are gone or no longer in force are removed. Files and
    links to other places are never touched.
    """
    layers = city.layers
    places = [(city.root, layers.city), *((city.rig_path(rig), layers.of(rig.name)) for rig in city.rigs)]
    known = [*layers.city, *(layer for own in layers.rigs.values() for layer in own)]
    for directory, own in places:
        if (directory / BEADS_DIR).is_dir():
            try:
                _link(directory / BEADS_DIR / "formulas", formula_files(own), known)
            except OSError as error:
                raise Unavailable(
                    f"Formulas cannot be linked for bd: {error.filename}: {error.strerror}.",
                    hint=f"Check owner and mode of {directory / BEADS_DIR}.",
                ) from error


def _link(folder: Path, files: Mapping[str, Path], layers: Sequence[Path]) -> None:
    wanted = {name + ENDING: path.absolute() for name, path in files.items()}
    if not wanted and not folder.is_dir():
        return
    folder.mkdir(exist_ok=True)
    for link in [path for path in folder.glob("*" + ENDING) if path.is_symlink()]:
        if link.readlink() != wanted.get(link.name) and _is_ours(link, layers):
            link.unlink()
    for name, target in wanted.items():
        if not os.path.lexists(folder / name):
            (folder / name).symlink_to(target)


def _is_ours(link: Path, layers: Sequence[Path]) -> bool:
    """Whether the link leads into a layer of formulas, or nowhere."""
    target = Path(os.path.normpath(link.parent / link.readlink()))
    return target.parent in [layer.absolute() for layer in layers] or not link.exists()
