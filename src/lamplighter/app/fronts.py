"""Which fronts of Gas City's programs sessions and commands get, by `[session] gc_fronts`."""

import os
import shutil
from collections.abc import Mapping

from lamplighter.adapters.files.fronts import NAMES, write_fronts
from lamplighter.adapters.processes.program import Limits, Program
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.model import City
from lamplighter.kit.errors import LampError

DIRECTORY = "fronts"
ANSWERS_WITHIN = 5.0


def with_fronts(opened: OpenCity, city: City) -> Mapping[str, str]:
    """The environment of this process with the directory of the fronts first on its PATH."""
    env, wanted = opened.settings.env, city.session.gc_fronts
    if wanted == "never":
        return env
    # `bd` as the city's bead store is called by `lamp bead`: a front that called `lamp bead` would call itself
    names = [name for name in NAMES if name != "bd" or city.beads.provider != "bd"]
    if wanted == "missing":
        names = [name for name in names if not _is_there(name, opened)]
    directory = opened.paths.runtime / DIRECTORY
    if not write_fronts(directory, names) or not names:
        return env
    return {**env, "PATH": os.pathsep.join([str(directory), env.get("PATH", os.defpath)])}


def _is_there(name: str, opened: OpenCity) -> bool:
    """Whether Gas City's program is installed; other programs have the name `gc` too, and print no version."""
    path = shutil.which(name, path=opened.settings.env.get("PATH"))
    if path is None or name != "gc":
        return path is not None
    program = Program(path, opened.paths.root, opened.settings.env, limits=Limits(call_seconds=ANSWERS_WITHIN))
    try:
        answer = program.call(["version"])
    except LampError:
        return False
    return answer.exit_code == 0 and bool(answer.output.strip())
