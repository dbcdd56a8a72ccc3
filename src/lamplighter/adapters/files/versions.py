"""Which version of an agent program is installed, found at little cost and remembered for as long as it is the same."""

import json
import re
import shutil
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

from lamplighter.adapters.processes.child import Call, Output, run_child_here
from lamplighter.kit.errors import LampError

_LIMIT = timedelta(seconds=5)
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?[\w.+-]*")
_LEVELS = 4


def version_of(program: str, env: Mapping[str, str]) -> str:
    """The version of the program on that environment's PATH; empty if it does not tell."""
    found = shutil.which(program, path=env.get("PATH"))
    if found is None or program.startswith("/"):
        return ""
    try:
        real = Path(found).resolve(strict=True)
        stat = real.stat()
    except OSError:
        return ""
    return _of_file(str(real), stat.st_mtime_ns, stat.st_size, env.get("PATH", ""), env.get("HOME", ""))


@lru_cache(maxsize=64)
def _of_file(real: str, _changed: int, _size: int, path: str, home: str) -> str:
    """A package names its version in a file; any other program is asked, once for each file."""
    named = _of_package(Path(real))
    if named:
        return named
    try:
        call = Call([real, "--version"], None, {"PATH": path, "HOME": home}, _LIMIT, output=Output.END)
        ended = run_child_here(call)
    except LampError:
        return ""
    found = _VERSION.search(ended.output.decode(errors="replace")) if ended.exit_code == 0 else None
    return found[0] if found else ""


def _of_package(real: Path) -> str:
    for folder in list(real.parents)[:_LEVELS]:
        try:
            package = json.loads((folder / "package.json").read_bytes())
        except (OSError, ValueError):
            continue
        version = package.get("version") if isinstance(package, dict) else None
        if isinstance(version, str):
            return version
    return ""
