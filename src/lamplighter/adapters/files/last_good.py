"""Keeps the texts of the last accepted configuration in `.gc/config.good`, and a note when a newer one is rejected.

`manifest.json` names the files with their digests; each text is a file of its own beside it, whose name begins with the
digest of its content and is therefore never written twice with different content. The manifest is replaced in one step,
so that a concurrent reader finds the old configuration or the new one, never a mixture.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lamplighter import __version__
from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.adapters.files.city import CityPaths
from lamplighter.kit import log
from lamplighter.kit.clock import Clock, rfc3339
from lamplighter.kit.errors import LampError
from lamplighter.kit.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.city.loaded import LoadedCity

DIRECTORY = "config.good"
MANIFEST = "manifest.json"
FORMAT = 1
TRIES = 5
LOCK_SECONDS = 5.0
_PAUSE_SECONDS = 0.02


class NoLastGood(LampError):
    """There is no configuration to fall back on; the message is empty if none was ever kept."""


@record
class LastGood:
    """The kept texts by path, the digest of all sources at that time, and when and by which program version."""

    texts: Mapping[Path, bytes]
    revision: str
    kept_at: str
    program: str


@record
class Rejected:
    """Why the daemon last rejected the files; `readable` if it could read them and refused them all the same."""

    reason: str
    readable: bool


@record
class ConfigFiles:
    """Keeps accepted configurations and notes rejected ones; a failure to write is logged, not raised."""

    paths: CityPaths
    clock: Clock

    def accepted(self, loaded: "LoadedCity") -> None:
        try:
            self.paths.rejected.unlink(missing_ok=True)
            keep(self.paths.root, loaded, self.clock)
        except OSError as error:
            _log_failure("config.not_kept", error)

    def rejected(self, reason: str, *, readable: bool) -> None:
        text = json.dumps({"reason": reason, "readable": readable, "at": rfc3339(self.clock.now())})
        try:
            write_atomically(self.paths.rejected, text.encode(), mode=0o600)
        except OSError as error:
            _log_failure("config.rejection_not_noted", error)


def keep(root: Path, loaded: "LoadedCity", clock: Clock) -> None:
    """Keep the texts of `loaded`; does nothing if they are kept already. Raises OSError."""
    directory = root / ".gc" / DIRECTORY
    directory.mkdir(mode=0o700, exist_ok=True)
    files = {_written(path, root): hashlib.sha256(content).hexdigest() for path, content in loaded.texts.items()}
    with _alone(directory):
        told = {"format": FORMAT, "program": __version__, "revision": loaded.revision, "files": files}
        if _is_kept(directory, told):
            return
        for path, content in loaded.texts.items():
            name = _written(path, root)
            if not _has_text(directory, name, files[name]):
                write_atomically(directory / _text_name(name, files[name]), content, mode=0o600)
        manifest = json.dumps(told | {"kept_at": rfc3339(clock.now())}, indent=1)
        write_atomically(directory / MANIFEST, manifest.encode(), mode=0o600)
        _remove_others(directory, {_text_name(path, digest) for path, digest in files.items()})


def last_good(root: Path) -> LastGood:
    """Raises NoLastGood, with the reason if something was kept that cannot be used."""
    directory = root / ".gc" / DIRECTORY
    reason = ""
    for _ in range(TRIES):  # a daemon may replace it after we read the manifest and before its texts
        manifest = _read_manifest(directory)
        try:
            texts = {
                _place(name, root): _read_text(directory, name, digest) for name, digest in manifest["files"].items()
            }
        except (OSError, ValueError) as error:
            reason = f"{directory} is damaged: {error}"
        else:
            return LastGood(texts, manifest["revision"], manifest["kept_at"], manifest["program"])
    raise NoLastGood(reason)


def rejected(file: Path) -> Rejected | None:
    """The daemon's last note; None when it accepted the files, or the note cannot be read."""
    try:
        note = json.loads(file.read_bytes())
        return Rejected(str(note["reason"]), bool(note["readable"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_manifest(directory: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((directory / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise NoLastGood("") from None
    except (OSError, ValueError, RecursionError) as error:
        raise NoLastGood(f"{directory / MANIFEST} cannot be read: {error}") from error
    found = manifest if isinstance(manifest, dict) else {}
    if isinstance(found.get("format"), int) and found["format"] > FORMAT:
        raise NoLastGood(f"{directory} was written by a newer program ({found.get('program')})")
    texts_of_words = all(isinstance(found.get(key), str) for key in ("program", "revision", "kept_at"))
    files = found.get("files")
    if not texts_of_words or not isinstance(files, dict) or not all(isinstance(one, str) for one in files.values()):
        raise NoLastGood(f"{directory / MANIFEST} is not what this program writes")
    return found


def _read_text(directory: Path, name: str, digest: str) -> bytes:
    """Raises OSError, and ValueError for content that is not what was kept."""
    path = directory / _text_name(name, digest)
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{path.name} was changed")
    return content


def _is_kept(directory: Path, told: Mapping[str, Any]) -> bool:
    try:
        manifest = _read_manifest(directory)
        same = all(manifest[key] == value for key, value in told.items())
    except NoLastGood:
        return False
    return same and all(_has_text(directory, name, digest) for name, digest in told["files"].items())


def _has_text(directory: Path, name: str, digest: str) -> bool:
    try:
        _read_text(directory, name, digest)
    except (OSError, ValueError):
        return False
    return True


def _remove_others(directory: Path, wanted: set[str]) -> None:
    for entry in directory.iterdir():
        if entry.name not in wanted and entry.name not in {MANIFEST, "lock"}:
            with contextlib.suppress(OSError):
                entry.unlink()


def _text_name(path: str, digest: str) -> str:
    """Ends in the file's own name, for people; the digest in front tells texts of the same name apart."""
    return f"{digest[:16]}-{Path(path).name[-100:]}"


def _written(path: Path, root: Path) -> str:
    """Relative to the city if inside it, so that a city that was moved finds its texts."""
    return os.fsencode(path.relative_to(root) if path.is_relative_to(root) else path).decode("utf-8", "surrogateescape")


def _place(name: str, root: Path) -> Path:
    return root / name


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Admit one writer at a time: another must not remove texts that this one is about to name. Raises OSError."""
    fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + LOCK_SECONDS
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_SECONDS)
        yield
    finally:
        os.close(fd)


def _log_failure(event: str, error: OSError) -> None:
    log.get().warning(event, error=str(error))
