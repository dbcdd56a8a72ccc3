"""Stores artifacts as files in a directory; each is written to a temporary file and renamed into place."""

import asyncio
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lamplighter.domain.runs.artifacts import checked_key, checked_prefix
from lamplighter.ports.artifacts import ArtifactsUnavailable, ArtifactUnknown

_UNFINISHED = ".new-"


class LocalArtifacts:
    """Reads and writes no file outside `root`, whatever a key says and whatever links lie below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def put(self, key: str, content: bytes, *, content_type: str) -> None:
        del content_type  # a directory stores no content type; the key's suffix implies it
        await asyncio.to_thread(self._put, checked_key(key), content)

    async def get(self, key: str) -> bytes:
        return await asyncio.to_thread(self._get, checked_key(key))

    async def keys(self, prefix: str) -> Sequence[str]:
        return await asyncio.to_thread(self._keys, checked_prefix(prefix))

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self._delete, checked_key(key))

    def _put(self, key: str, content: bytes) -> None:
        with self._told():
            path = self._inside(self._path(key))  # before a directory is made, and after it
            path.parent.mkdir(parents=True, exist_ok=True)
            self._inside(path)
            handle, name = tempfile.mkstemp(prefix=_UNFINISHED, dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fchmod(file.fileno(), 0o640)
                    os.fsync(file.fileno())
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            _sync(path.parent)

    def _get(self, key: str) -> bytes:
        with self._told():
            path = self._inside(self._path(key))
            if not path.is_file():
                raise ArtifactUnknown(key)
            return path.read_bytes()

    def _keys(self, prefix: str) -> list[str]:
        with self._told():
            below = self._inside(self._root / prefix)
            files = (path for path in below.rglob("*") if path.is_file() and not path.name.startswith(_UNFINISHED))
            return sorted(str(path.relative_to(self._root)) for path in files)

    def _delete(self, key: str) -> None:
        with self._told():
            path = self._inside(self._path(key))
            path.unlink(missing_ok=True)
            for folder in path.parents:
                if folder == self._root or not _gone_if_empty(folder):
                    return

    def _path(self, key: str) -> Path:
        return self._root / key

    def _inside(self, path: Path) -> Path:
        """Return `path`. Raises ArtifactsUnavailable when a link in it leads out of the directory."""
        root, found = self._root.resolve(), path.resolve()
        if found != root and root not in found.parents:
            raise ArtifactsUnavailable(f"{path} leads out of {root}.", hint="Remove the link that does it.")
        return path

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename or self._root
            raise ArtifactsUnavailable(
                f"{where}: {error.strerror or error}.", hint="Check its disk and mode."
            ) from error


def _gone_if_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def _sync(folder: Path) -> None:
    """Sync the directory: a rename is durable only once its directory is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
