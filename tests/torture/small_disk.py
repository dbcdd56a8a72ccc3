"""A small disk that can be filled and emptied, for a server to live on; only root can mount one."""

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHUNK = 1 << 16


class SmallDisk:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._filler = root / ".filler"

    def fill(self) -> int:
        """Use up every byte that is left; returns how many those were. Repeated, because the server frees some."""
        written = 0
        with self._filler.open("ab", buffering=0) as file:
            while True:
                try:
                    written += file.write(b"x" * CHUNK)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    return written

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)


@contextmanager
def small_disk(megabytes: int) -> Iterator[SmallDisk | None]:
    """None where none can be mounted: not as root, or in a container that forbids it."""
    with tempfile.TemporaryDirectory(prefix="lamp-disk-", dir="/tmp") as made:
        root = Path(made)
        if os.geteuid() != 0 or not _mounted(root, megabytes):
            yield None
            return
        try:
            root.chmod(0o755)
            yield SmallDisk(root)
        finally:
            subprocess.run(["umount", "--lazy", str(root)], check=True)


def _mounted(root: Path, megabytes: int) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(root)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
