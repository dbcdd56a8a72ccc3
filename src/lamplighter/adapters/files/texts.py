"""Reads the texts of a configuration, from disk or as they were kept when it was last accepted."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


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


@dataclass
class DiskTexts:
    """The files on disk; `seen` holds the texts as read, so that exactly what was checked can be kept."""

    seen: dict[Path, bytes] = field(default_factory=dict)

    def read(self, path: Path) -> bytes:
        self.seen[path] = path.read_bytes()
        return self.seen[path]

    def is_file(self, path: Path) -> bool:
        return path.is_file()

    def is_directory(self, path: Path) -> bool:
        return path.is_dir()

    def partials(self, directory: Path) -> list[Path]:
        return sorted(directory.glob("*.md.tmpl"))


@dataclass(frozen=True)
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
        return sorted(file for file in self.files if file.parent == directory and file.name.endswith(".md.tmpl"))


def text_digest(texts: Texts, path: Path) -> str | None:
    """None for a file that does not exist or cannot be read."""
    try:
        return hashlib.sha256(texts.read(path)).hexdigest()
    except OSError:
        return None
