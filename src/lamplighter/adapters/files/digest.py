"""Digests of files and directories, which depend on names and content only, not on times or listing order."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_IGNORED_DIRECTORIES = frozenset({".git", "__pycache__", "node_modules"})


def counts(name: str) -> bool:
    """Whether a file of this name matters; temporary and backup files do not."""
    return not (name.endswith(("~", ".swp", ".swx", ".new", ".pyc")) or name.startswith(".#") or name == "4913")


def files_under(directory: Path) -> Iterator[Path]:
    """Every file that matters below a directory, in a fixed order; none when it does not exist."""
    for base, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if name not in _IGNORED_DIRECTORIES)
        for name in sorted(names):
            if counts(name):
                yield Path(base, name)


def file_digest(path: Path) -> str | None:
    """None for a file that does not exist or cannot be read, and for what is no file: to open a pipe would wait."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() if stat.S_ISREG(os.fstat(number).st_mode) else None
    except OSError:
        return None


def digest_of(paths: Iterable[Path], root: Path) -> str:
    """One digest of many files, by path and content; paths inside `root` count relative to it, others in full."""
    total = hashlib.sha256()
    for path in sorted(set(paths)):
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
        total.update(f"{name}\0{file_digest(path) or ''}\0".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def directory_digest(directory: Path) -> str:
    return digest_of(files_under(directory), directory)
