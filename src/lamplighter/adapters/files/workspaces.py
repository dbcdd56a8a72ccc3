"""Lays out worktrees: copies of files, links to directories that all worktrees of a rig share, free ports."""

import filecmp
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamplighter.adapters.files.toml import load
from lamplighter.domain.city.repository import FILE, decoded
from lamplighter.domain.city.tree import ConfigInvalid, Findings, Origin, Problem
from lamplighter.ports.workspaces import Laying


@dataclass(frozen=True)
class LocalWorkspaceFiles:
    """`caches` is the directory below which each rig has its shared directories."""

    caches: Path

    def lay(self, laying: Laying) -> list[str]:
        left = []
        for name in laying.copy:
            source, target = laying.source / name, laying.target / name
            if not source.exists():
                left.append(f"{name}: there is none in {laying.source}")
            elif target.is_file() and not _is_copy(source, target):
                left.append(f"{name}: the worktree has one of its own")
            elif not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                if source.is_dir():
                    shutil.copytree(source, target, symlinks=True)
                else:
                    shutil.copy2(source, target)
        for name in laying.cache:
            target, shared = laying.target / name, self._shared(laying, name)
            shared.mkdir(parents=True, exist_ok=True)
            if target.is_symlink() and target.readlink() == shared:
                continue
            if target.exists() or target.is_symlink():
                left.append(f"{name}: the worktree has one of its own")
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(shared, target_is_directory=True)
        return left

    def clear(self, laying: Laying) -> None:
        for name in laying.cache:
            target = laying.target / name
            if target.is_symlink() and target.readlink() == self._shared(laying, name):
                target.unlink()
        for name in laying.copy:
            source, target = laying.source / name, laying.target / name
            if _is_copy(source, target):
                target.unlink()

    def declared(self, directory: Path) -> Mapping[str, Any] | None:
        path = directory / FILE
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise ConfigInvalid([Problem(FILE, "", "is not a plain file; only that is read")])
        if not path.exists():
            return None
        document = load(path, FILE)
        if isinstance(document, Problem):
            raise ConfigInvalid([document])
        found = Findings()
        decoded(document.tree, Origin("repository", FILE, directory, document.lines), found)
        if found.problems:
            raise ConfigInvalid(found.problems)
        return document.tree

    def are_free(self, base: int, count: int) -> bool:
        return all(_is_free(port) for port in range(base, base + count))

    def _shared(self, laying: Laying, name: str) -> Path:
        return self.caches / laying.rig / name


def _is_copy(source: Path, target: Path) -> bool:
    """Whether it was laid there and is unchanged: a copy has the time of its source, another file one of its own."""
    if not (source.is_file() and target.is_file()) or target.is_symlink():
        return False
    same_time = source.stat().st_mtime_ns == target.stat().st_mtime_ns
    return same_time and filecmp.cmp(source, target, shallow=False)


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
