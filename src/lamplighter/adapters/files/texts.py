"""Reads the texts of a configuration, from disk or as they were kept when it was last accepted."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lamplighter.adapters.files.questions import PARTIAL, Answers, ask
from lamplighter.kit.records import record


class Texts(Protocol):
    """Where the loader gets the content of the files that a configuration names."""

    def read(self, path: Path) -> bytes:
        """Raises OSError."""
        ...

    def is_file(self, path: Path) -> bool: ...

    def is_directory(self, path: Path) -> bool: ...

    def partials(self, directory: Path) -> list[Path]:
        """The files in the directory that hold partials of prompts, sorted."""
        ...

    def resolved(self, path: Path) -> Path:
        """The path without symbolic links."""
        ...


@dataclass
class DiskTexts:
    """The files on disk; `seen` holds the texts as read, so that exactly what was checked can be kept.

    `answers` holds all that was asked of the disk, so that a later process can tell whether anything has changed.
    """

    seen: dict[Path, bytes] = field(default_factory=dict)
    answers: Answers = field(default_factory=dict)

    def read(self, path: Path) -> bytes:
        content: bytes | None = ask(self.answers, "read", path)
        self.seen[path] = path.read_bytes() if content is None else content  # reading again raises the error
        return self.seen[path]

    def is_file(self, path: Path) -> bool:
        return bool(ask(self.answers, "is_file", path))

    def is_directory(self, path: Path) -> bool:
        return bool(ask(self.answers, "is_directory", path))

    def partials(self, directory: Path) -> list[Path]:
        return [directory / name for name in ask(self.answers, "partials", directory)]

    def resolved(self, path: Path) -> Path:
        return Path(ask(self.answers, "resolved", path))


@record
class KeptTexts:
    """Files kept at an earlier time; the disk is not read."""

    files: Mapping[Path, bytes]

    def read(self, path: Path) -> bytes:
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(f"{path} was not kept") from None

    def is_file(self, path: Path) -> bool:
        return path in self.files

    def is_directory(self, path: Path) -> bool:
        return any(path in file.parents for file in self.files)

    def partials(self, directory: Path) -> list[Path]:
        return sorted(file for file in self.files if file.parent == directory and file.name.endswith(PARTIAL))

    def resolved(self, path: Path) -> Path:
        return path.resolve()  # the texts were kept under their resolved paths


def text_digest(texts: Texts, path: Path) -> str | None:
    """None for a file that does not exist or cannot be read."""
    try:
        return hashlib.sha256(texts.read(path)).hexdigest()
    except OSError:
        return None
