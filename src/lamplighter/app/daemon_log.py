"""Where a process of the city logs: on standard error, which for one in the background is a file that must not grow."""

import sys
from typing import TextIO, cast

from lamplighter.adapters.files.log_file import LogFile, same_file
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import locate

STANDARD = (1, 2)


def log_stream(settings: Settings) -> TextIO:
    """A log that is put aside when it is long, where standard error is the city's own log file."""
    path = locate(settings).log
    descriptors = tuple(one for one in STANDARD if same_file(one, path))
    return cast("TextIO", LogFile(path, descriptors)) if 2 in descriptors else sys.stderr
