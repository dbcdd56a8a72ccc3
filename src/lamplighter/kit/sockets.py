"""Short paths for Unix sockets: the kernel takes paths of about 100 bytes, and a city's may be longer."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = 90


@contextmanager
def reachable(directory: Path) -> Iterator[str]:
    """A name for `directory` that is short enough to bind or connect below it while the context lasts."""
    if len(os.fsencode(directory)) < LONGEST - 30 or not os.path.isdir("/proc/self/fd"):  # noqa: PTH112  a hot path
        yield str(directory)
        return
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)
