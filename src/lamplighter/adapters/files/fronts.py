"""Writes the fronts for `gc` and `bd`: small scripts in a directory for the PATH of sessions and commands."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lamplighter.kit import log

NAMES = ("gc", "bd")
MODULE = "lamplighter.cli.fronts"


def write_fronts(directory: Path, names: Sequence[str]) -> bool:
    """Write the fronts with these names, and remove the others; False, and a line in the log, if that is impossible."""
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        for name in NAMES:
            _write(directory / name, name) if name in names else (directory / name).unlink(missing_ok=True)
    except OSError as error:
        log.get().warning("fronts.not_written", error=str(error))
        return False
    return True


def _write(path: Path, name: str) -> None:
    # -P: a file in the working directory must not be taken for a module of ours
    text = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m {MODULE} {name} "$@"\n'
    if path.is_file() and path.read_text(encoding="utf-8") == text and os.access(path, os.X_OK):
        return
    fresh = path.with_name(f".{name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o755)
    fresh.replace(path)
