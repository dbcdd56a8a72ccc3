"""Chooses where a process of the city logs: standard error, rotated if that is the log file of a background daemon."""

import sys
from typing import TextIO, cast

from lamplighter.adapters.files.log_file import LogFile, same_file
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import locate

STANDARD = (1, 2)


def log_stream(settings: Settings) -> TextIO:
    """A rotating log if standard error is the city's own log file, else standard error."""
    path = locate(settings).log
    descriptors = tuple(one for one in STANDARD if same_file(one, path))
    return cast("TextIO", LogFile(path, descriptors)) if 2 in descriptors else sys.stderr
