"""Reports when the content of a city's files changes, and ignores other files written beside them."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

from watchfiles import Change, awatch

from lamplighter.adapters.files import inotify
from lamplighter.adapters.files.digest import counts, file_digest, files_under
from lamplighter.domain.city.loaded import Sources
from lamplighter.kit import descriptors, log
from lamplighter.kit.inotify import available
from lamplighter.kit.limits import TimeLimit

QUIET = timedelta(milliseconds=200)
_LONGEST_GATHERING = timedelta(seconds=2)
_MILLISECOND = timedelta(milliseconds=1)
_AGAIN = timedelta(seconds=1)

Signature = tuple[int, int, int]


@dataclass
class Watch:
    """`changes()` yields the files that changed, in batches, once they have been quiet for a moment.

    `refresh` replaces the sources while it runs. `ready` is set once all sources are watched; `refresh` clears it.
    """

    sources: Sources
    quiet: timedelta = QUIET
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    _restart: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: bool = False
    _polling: bool = False
    _known: dict[Path, tuple[Signature, str]] = field(default_factory=dict)

    def refresh(self, sources: Sources) -> None:
        """Watch these sources from now on; the known content of files is kept for comparison."""
        if sources != self.sources:
            self.sources = sources
            self.ready.clear()
            self._restart.set()

    def close(self) -> None:
        """End `changes()`."""
        self._closed = True
        self._restart.set()

    async def changes(self) -> AsyncIterator[frozenset[Path]]:
        self._known, _ = await asyncio.to_thread(_look, self.sources, {})
        while not self._closed:
            self._restart.clear()
            async for changed in self._round(self.sources, watched_directories(self.sources)):
                if changed:
                    yield changed

    async def _round(self, sources: Sources, directories: frozenset[Path]) -> AsyncIterator[frozenset[Path]]:
        """Watch one set of directories until the sources need another set."""
        batches = self._batches(sources, directories)
        try:
            waiting = asyncio.ensure_future(anext(batches, None))
            while not self._restart.is_set():
                # The watcher starts when its first batch is requested; earlier changes are found by comparing.
                await asyncio.sleep(0)
                changed = await self._compare(sources)
                yield changed
                if watched_directories(sources) != directories:
                    return
                self.ready.set()
                if await waiting is None:
                    return
                waiting = asyncio.ensure_future(anext(batches, None))
        finally:
            self._restart.set()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting
            await batches.aclose()

    async def _batches(self, sources: Sources, directories: frozenset[Path]) -> AsyncGenerator[bool, None]:
        """Yields once for each batch of events that may concern the sources."""
        fit = _Filter(sources)
        try:
            async with contextlib.aclosing(self._stirs(fit, directories)) as stirs:
                async for _ in stirs:
                    yield True
        except (FileNotFoundError, NotADirectoryError):
            return  # a directory vanished between listing and watching; the next round lists again
        except OSError as error:
            if descriptors.is_shortage(error):
                await self._pause()  # descriptors will be free again, so do not switch to polling for good
                return
            if self._polling:
                raise
            log.get().warning("watch.polling", reason=str(error))
            self._polling = True

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with TimeLimit(_AGAIN.total_seconds()):
                await self._restart.wait()

    def _stirs(self, fit: "_Filter", directories: frozenset[Path]) -> AsyncGenerator[object, None]:
        if available() and not self._polling:
            return inotify.stirs(
                directories, fit.lets_pass, quiet=self.quiet, most=_LONGEST_GATHERING, stop=self._restart
            )
        return awatch(
            *directories,
            watch_filter=fit,
            debounce=int(_LONGEST_GATHERING / _MILLISECOND),
            step=int(self.quiet / _MILLISECOND),
            stop_event=self._restart,
            recursive=False,
            force_polling=self._polling,
            # It does not report what changed before its first look, so we compare again at every timeout.
            rust_timeout=int(_LONGEST_GATHERING / _MILLISECOND),
            yield_on_timeout=True,
        )

    async def _compare(self, sources: Sources) -> frozenset[Path]:
        self._known, changed = await asyncio.to_thread(_look, sources, self._known)
        return changed


def watched_directories(sources: Sources) -> frozenset[Path]:
    """The directories to watch, not recursively: those of files, and source directories with all below them; instead of
    a missing one, the nearest existing directory above it.
    """
    found: set[Path] = set()
    for directory in sources.directories:
        found.update(Path(base) for base, _, _ in os.walk(directory))
    for path in (*(file.parent for file in sources.files), *sources.directories):
        found.add(next(place for place in (path, *path.parents) if place.is_dir()))
    return frozenset(found)


class _Filter:
    """Passes a path that is a source, contains one, or lies below a source directory."""

    def __init__(self, sources: Sources) -> None:
        self._roots = {str(path) for path in sources.directories}
        self._exact = {str(path) for path in sources.files} | self._roots
        self._above = {str(parent) for path in (*sources.files, *sources.directories) for parent in path.parents}
        self.lets_pass = lru_cache(maxsize=256)(self._lets_pass)  # a busy database names the same file all the time

    def __call__(self, _change: Change, path: str) -> bool:
        return self.lets_pass(path)

    def _lets_pass(self, path: str) -> bool:
        if not counts(Path(path).name):
            return False
        if path in self._exact or path in self._above:
            return True
        return any(str(parent) in self._roots for parent in Path(path).parents)


def _look(
    sources: Sources, known: dict[Path, tuple[Signature, str]]
) -> tuple[dict[Path, tuple[Signature, str]], frozenset[Path]]:
    """The current content of the sources, and the files that differ from `known`; reads only files touched since."""
    now: dict[Path, tuple[Signature, str]] = {}
    for path in _every(sources):
        signature = _signature(path)
        if signature is None:
            continue
        before = known.get(path)
        if before is not None and before[0] == signature:
            now[path] = before
        elif (digest := file_digest(path)) is not None:
            now[path] = (signature, digest)
    changed = {path for path in now.keys() | known.keys() if _digest(now, path) != _digest(known, path)}
    return now, frozenset(changed)


def _digest(known: dict[Path, tuple[Signature, str]], path: Path) -> str | None:
    entry = known.get(path)
    return None if entry is None else entry[1]


def _every(sources: Sources) -> Iterable[Path]:
    seen = dict.fromkeys(sources.files)
    for directory in sources.directories:
        seen.update(dict.fromkeys(files_under(directory)))
    return seen


def _signature(path: Path) -> Signature | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
