"""What stands in the way of a city's bead store, as far as it shows without calling it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from lamplighter.adapters.processes.program import script_path
from lamplighter.domain.city.model import City
from lamplighter.domain.city.paths import BEADS_DIR
from lamplighter.kit.records import record


@record
class BeadStoreTrouble:
    detail: str
    advice: str


def trouble(city: City, provider: str, path: str | None) -> Iterator[BeadStoreTrouble]:
    """`provider` is the one in force, `path` the PATH to look for programs along."""
    if provider == "bd":
        if shutil.which("bd", path=path) is None:
            detail = "`bd` is not on the PATH: beads cannot be read or made, and pools that count beads do not grow."
            yield BeadStoreTrouble(detail, 'Install bd, or set [beads] provider = "store" in city.toml.')
        for name, directory in [("The city", city.root), *((f"Rig {r.name}", city.rig_path(r)) for r in city.rigs)]:
            if directory.is_dir() and not (directory / BEADS_DIR).is_dir():
                detail = f"{name} has no {BEADS_DIR} directory in {directory}."
                yield BeadStoreTrouble(detail, f"Run `bd init` in {directory}.")
    elif provider.startswith("exec:"):
        script = Path(script_path(provider.removeprefix("exec:"), city.root, path))
        if not script.is_file():
            yield BeadStoreTrouble(f"The bead store's script {script} is not there.", "Check [beads] provider.")
        elif not os.access(script, os.X_OK):
            yield BeadStoreTrouble(f"The bead store's script {script} may not be executed.", f"chmod +x {script}")
