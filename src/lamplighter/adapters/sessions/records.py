"""Keeps a directory per session on disk: its record, its metadata, and the files of its provider."""

import contextlib
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lamplighter.adapters.processes.makers import at_work, mark_of
from lamplighter.domain.sessions.meta import ENV_CITY_ID, ENV_SESSION, ENV_SESSION_ID
from lamplighter.domain.sessions.model import NOTHING, SessionName, SessionSpec, session_name
from lamplighter.kit import descriptors, json_text
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.records import record
from lamplighter.ports.sessions import ProviderUnavailable, SessionAlive, SessionUnknown

_RECORD = "record.json"
_META = "meta.json"
_MOST_TRIES = 20
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
"""What a rename to a name that another process took meanwhile fails with."""
_Stamp = tuple[int, int, int]


@record
class Record:
    """One start of a session, as it was requested."""

    name: SessionName
    city: str
    session_id: str
    started_at: datetime
    work_dir: str
    takes_input: bool
    process_names: tuple[str, ...]

    def env(self) -> dict[str, str]:
        return {ENV_SESSION_ID: self.session_id, ENV_SESSION: self.name, ENV_CITY_ID: self.city}


class Records:
    """The sessions of one city and provider, a directory each; a directory appears complete or not at all."""

    def __init__(self, root: Path, city: str) -> None:
        self.root = root
        self._place = os.fspath(root)
        self._city = city
        self._records: dict[SessionName, tuple[_Stamp, Record]] = {}
        self._metas: dict[SessionName, tuple[_Stamp, Mapping[str, str]]] = {}
        self._aside: list[Path] = []

    def home(self, name: SessionName) -> Path:
        return self.root / session_name(name)

    def create(self, spec: SessionSpec, session_id: str, now: datetime, furnish: Callable[[Path], None]) -> Record:
        """Replace whatever has that name by a new record; `furnish` adds the provider's files before it appears.

        The old directory is only renamed, and deleted by `clear_away`, so that a start need not wait for that.
        """
        try:
            record, fresh = self._furnished(spec, session_id, now, furnish)
            self._set_aside(spec.name)
            fresh.rename(self.home(spec.name))
        except OSError as error:
            raise self._unusable("written", error) from error
        return record

    @contextlib.contextmanager
    def making(
        self,
        spec: SessionSpec,
        session_id: str,
        now: datetime,
        furnish: Callable[[Path], None],
        replaceable: Callable[[Record], bool],
    ) -> Iterator[Record]:
        """Like `create`, for a start that another process may try too: one at a time, until the block has launched it.

        A process that others take for dead may still be about to start what they took over from it. So each waits for
        the other here, and a record that is not `replaceable` by then is left as it is: raises SessionAlive.
        """
        for _ in range(_MOST_TRIES):
            with self._held(spec.name) as there:
                if there:
                    found = self.read(spec.name)
                    if found is not None and not replaceable(found):
                        raise SessionAlive(spec.name)
                    self._set_aside(spec.name)
            with contextlib.ExitStack() as stack:
                try:
                    record, fresh = self._furnished(spec, session_id, now, furnish)
                    stack.enter_context(_lock_of(fresh))
                except OSError as error:
                    raise self._unusable("written", error) from error
                try:
                    fresh.rename(self.home(spec.name))
                except OSError as error:
                    _discard(fresh)
                    if error.errno in _TAKEN:
                        continue
                    raise self._unusable("written", error) from error
                yield record
                return
        raise ProviderUnavailable(f"{self.home(spec.name)} is made anew by others again and again.", hint="Try again.")

    def _furnished(
        self, spec: SessionSpec, session_id: str, now: datetime, furnish: Callable[[Path], None]
    ) -> tuple[Record, Path]:
        """A record with its directory, which does not have the session's name yet. Raises OSError, and leaves none."""
        record = Record(
            spec.name, self._city, session_id, now, spec.work_dir, spec.takes_input, tuple(spec.process_names)
        )
        fresh = self.root / f".new-{mark_of(os.getpid())}-{session_id}"
        try:
            self.root.mkdir(mode=0o700, exist_ok=True)  # without its parent: a moved `.gc` is not made anew
            fresh.mkdir(mode=0o700)
            _put(fresh / _RECORD, asdict(record) | {"started_at": now.timestamp()})
            _put(fresh / _META, dict(spec.meta))
            furnish(fresh)
        except OSError:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        return record, fresh

    @contextlib.contextmanager
    def _held(self, name: SessionName) -> Iterator[bool]:
        """Hold the directory of that name once no other process makes it; False if there is none."""
        home = self.home(name)
        for _ in range(_MOST_TRIES):
            with contextlib.ExitStack() as stack:
                try:
                    fd = stack.enter_context(_lock_of(home))
                    same = os.path.samestat(os.fstat(fd), home.stat())
                except (FileNotFoundError, NotADirectoryError):
                    yield home.exists()  # what is no directory is replaced
                    return
                except OSError as error:
                    raise self._unusable("read", error) from error
                if same:  # else it was replaced while this waited
                    yield True
                    return
        raise ProviderUnavailable(f"{home} is made anew by others again and again.", hint="Try again.")

    def read(self, name: SessionName) -> Record | None:
        """None when there is no record, it is another city's, or the file is damaged."""
        path = f"{self._place}/{session_name(name)}/{_RECORD}"  # a hot path: joining paths costs as much as the stat
        known = self._records.get(name)
        stamp = _stamp(path)
        if stamp is None:
            self._records.pop(name, None)
            return None
        if known is None or known[0] != stamp:
            record = _decode(_load(path))
            if record is None or record.name != name or record.city != self._city:
                return None
            known = self._records[name] = (stamp, record)
        return known[1]

    def all(self) -> Iterator[Record]:
        try:
            names = sorted(os.listdir(self._place))  # noqa: PTH208  a hot path: plain names are half the cost
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unusable("read", error) from error
        for name in names:
            if not name.startswith(".") and (record := self.read(SessionName(name))) is not None:
                yield record

    def remove(self, name: SessionName) -> None:
        """Rename the directory away, then delete it, so that a kill in between leaves no partial session."""
        self._set_aside(name)
        self.clear_away()

    def clear_away(self) -> None:
        while self._aside:
            with contextlib.suppress(IndexError):  # another thread took it
                _discard(self._aside.pop())

    def _set_aside(self, name: SessionName) -> None:
        gone = self.root / f".old-{mark_of(os.getpid())}-{os.urandom(6).hex()}"
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            self.home(name).rename(gone)
            self._aside.append(gone)
        self._records.pop(name, None)
        self._metas.pop(name, None)

    def sweep(self) -> None:
        """Remove directories that a killed process left half made or half removed, not those of a living process.

        Raises Unavailable when the directory of all sessions cannot be read.
        """
        try:
            names = os.listdir(self._place)  # noqa: PTH208  plain names are half the cost of paths
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unusable("read", error) from error
        for name in names:
            if name.startswith((".new-", ".old-")) and not at_work(name.split("-")[1]):
                _discard(self.root / name)

    def _unusable(self, how: str, error: OSError) -> Unavailable:
        if descriptors.is_shortage(error):
            return descriptors.OutOfDescriptors()
        return ProviderUnavailable(
            f"{self.root} cannot be {how}: {error.strerror}.",
            hint="Sessions keep their outputs there; mend or remove it.",
        )

    def meta(self, name: SessionName) -> Mapping[str, str]:
        path = f"{self._place}/{session_name(name)}/{_META}"
        stamp, known = _stamp(path), self._metas.get(name)
        if stamp is None:  # the session is gone
            return NOTHING
        if known is None or known[0] != stamp:
            found = _load(path) or {}
            meta = {str(key): str(value) for key, value in found.items()} or NOTHING
            known = self._metas[name] = (stamp, meta)
        return known[1]

    def change_meta(self, name: SessionName, change: Callable[[dict[str, str]], object]) -> None:
        """Change it under a lock, because agents write their metadata from other processes. Raises SessionUnknown."""
        if self.read(name) is None:
            raise SessionUnknown(name)
        with locked(self.home(name), "meta"):
            kept = dict(self.meta(name))
            change(kept)
            _replace(self.home(name) / _META, kept)


@contextlib.contextmanager
def locked(home: Path, what: str) -> Iterator[None]:
    """Hold a lock of this session against all other processes of the city."""
    fd = os.open(home / f".{what}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def _lock_of(directory: Path) -> Iterator[int]:
    """Hold the directory itself, under whatever name, against all other processes; the end of a process lets it go."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    finally:
        os.close(fd)


def _discard(path: Path) -> None:
    """Delete a directory, or whatever else had its name."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _replace(path: Path, value: Mapping[str, Any]) -> None:
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    _put(fresh, value)
    fresh.replace(path)


def _put(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def _load(path: str) -> dict[str, Any] | None:
    try:
        found = json_text.parse(Path(path).read_text(encoding="utf-8"))
    except ValueError:
        return None
    except OSError as error:
        if descriptors.is_shortage(error):
            raise descriptors.OutOfDescriptors from error  # the file may exist, but cannot be read now
        return None
    return found if isinstance(found, dict) else None


def _decode(found: dict[str, Any] | None) -> Record | None:
    try:
        found = found or {}
        return Record(
            name=session_name(found["name"]),
            city=str(found["city"]),
            session_id=str(found["session_id"]),
            started_at=datetime.fromtimestamp(float(found["started_at"]), UTC),
            work_dir=str(found["work_dir"]),
            takes_input=bool(found["takes_input"]),
            process_names=tuple(str(name) for name in found["process_names"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _stamp(path: str) -> _Stamp | None:
    try:
        stat = os.stat(path)  # noqa: PTH116  a hot path
    except OSError:
        return None
    return (stat.st_ino, stat.st_mtime_ns, stat.st_size)
