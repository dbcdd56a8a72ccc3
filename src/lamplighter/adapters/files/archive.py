"""A backup as one file that only its owner can read: a tar with a manifest, the database, and the city's own files."""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamplighter.kit.errors import Conflict, UsageError

MANIFEST = "manifest.json"
DATABASE = "lamp.db"
FILES = "city/"
ENDING = ".lamp-backup.tar.gz"
FORMAT = 1
TEMPORARY = ".lamp-backup-"
"""How the names of directories begin in which the database is saved first."""
OF_RUNTIME = (".gitignore", "city-id", "formulas", "beads.json")
"""What of `.gc` is no state of processes and no secret, and is not in the database."""
ARTIFACTS = "artifacts"
BLOCK = 1 << 20
Tell = Callable[[str], None]


class NotABackup(UsageError):
    def __init__(self, file: Path, why: str) -> None:
        super().__init__(f"{file} is not a backup of a city: {why}.", hint="`lamp backup` makes them.")


@dataclass(frozen=True)
class CityFiles:
    """The files of a city that go into a backup, by their paths in it, and the directories that were left out."""

    files: Mapping[str, Path]
    left_out: tuple[str, ...]


def files_of(root: Path, runtime: Path, *, without: frozenset[Path], artifacts: Path | None) -> CityFiles:
    """All files below the city but those of `.gc`, of repositories and of the directories `without` (its rigs)."""
    found: dict[str, Path] = {}
    left: list[str] = []
    for folder, names, files in os.walk(root):
        here = Path(folder)
        names[:] = [name for name in names if not name.startswith(TEMPORARY)]
        for name in sorted(names):
            path = here / name
            if path.is_symlink():
                found[str(path.relative_to(root))] = path
            elif path != runtime and name != ".git" and (path.resolve() in without or (path / ".git").exists()):
                left.append(str(path.relative_to(root)))
        gone = {Path(root / one) for one in left}
        names[:] = [
            name for name in sorted(names) if name != ".git" and here / name != runtime and here / name not in gone
        ]
        found |= {
            str((here / name).relative_to(root)): here / name
            for name in sorted(files)
            if not name.endswith((ENDING, f"{ENDING}.partial")) and _is_kept(here / name)
        }
    own = [runtime / name for name in OF_RUNTIME] + ([artifacts] if artifacts is not None else [])
    for start in own:
        found |= {str(Path(runtime.name) / _below(path, runtime, artifacts)): path for path in _walked(start)}
    return CityFiles(found, tuple(left))


def _below(path: Path, runtime: Path, artifacts: Path | None) -> Path:
    if artifacts is not None and path.is_relative_to(artifacts):
        return Path(ARTIFACTS) / path.relative_to(artifacts)
    return path.relative_to(runtime)


def _walked(start: Path) -> Iterator[Path]:
    if start.is_dir() and not start.is_symlink():
        yield from (path for path in sorted(start.rglob("*")) if _is_kept(path))
    elif _is_kept(start):
        yield start


def _is_kept(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def write_archive(file: Path, manifest: Mapping[str, Any], database: Path, files: CityFiles, tell: Tell) -> int:
    """Write the backup under its final name only when it is complete; returns its size. Raises Conflict, OSError."""
    partial = file.with_name(f"{file.name}.partial")
    told = {**manifest, "format": FORMAT, "database_sha256": _digest(database), "left_out": list(files.left_out)}
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Conflict(
            f"{partial} is there: another backup to it is being made, or one was interrupted.",
            hint="If none is being made, delete it and repeat.",
        ) from None
    try:
        with os.fdopen(descriptor, "wb") as raw:
            with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=4) as archive:
                _add_text(archive, MANIFEST, json.dumps(told, indent=1))
                tell("writing the database")
                archive.add(database, DATABASE, filter=_plain)
                for count, (name, path) in enumerate(files.files.items(), 1):
                    tell(f"writing files of the city: {count} of {len(files.files)}")
                    _add(archive, FILES + name, path)
            raw.flush()
            os.fsync(raw.fileno())
        os.link(partial, file)  # unlike a rename, it never takes the place of another file
    except FileExistsError:
        raise Conflict(f"{file} is there already.", hint="Name another file.") from None
    finally:
        partial.unlink(missing_ok=True)
    return file.stat().st_size


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    try:
        archive.add(path, name, recursive=False, filter=_plain)
    except FileNotFoundError:
        return  # deleted since it was listed


def _add_text(archive: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(text.encode()), 0o600
    archive.addfile(entry, io.BytesIO(text.encode()))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the names of users, who may be others where it is restored."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def read_manifest(file: Path) -> dict[str, Any]:
    """Raises NotABackup, OSError."""
    try:
        with tarfile.open(file, "r:gz") as archive:
            return _manifest(file, archive)
    except (tarfile.TarError, EOFError, ValueError, KeyError) as error:
        raise NotABackup(file, str(error) or type(error).__name__) from error
    except OSError as error:
        if error.errno is None:  # gzip's own errors have none
            raise NotABackup(file, str(error)) from error
        raise


def _manifest(file: Path, archive: tarfile.TarFile) -> dict[str, Any]:
    entry = archive.next()
    text = None if entry is None or entry.name != MANIFEST else archive.extractfile(entry)
    if text is None:
        raise NotABackup(file, "it does not begin with a manifest")
    told: dict[str, Any] = json.loads(text.read())
    if told["format"] != FORMAT:
        raise NotABackup(file, f"it has format {told['format']}, and this program knows format {FORMAT}")
    return told


def extract(file: Path, into: Path, database: Path, tell: Tell) -> None:
    """Write the city's files below `into` and its database to `database`. Raises NotABackup, OSError."""
    told = read_manifest(file)
    try:
        with tarfile.open(file, "r:gz") as archive:
            for entry in archive:
                if entry.name == DATABASE:
                    tell("reading the database")
                    _write(archive, entry, database)
                elif entry.name.startswith(FILES):
                    tell(f"reading {entry.name.removeprefix(FILES)}")
                    _place(archive, entry, _inside(file, into, entry.name.removeprefix(FILES)))
    except (tarfile.TarError, EOFError) as error:
        raise NotABackup(file, f"it is damaged ({error})") from error
    except OSError as error:
        if error.errno is None:
            raise NotABackup(file, f"it is damaged ({error})") from error
        raise
    if not database.exists() or _digest(database) != told["database_sha256"]:
        raise NotABackup(file, "its database is not the one that was saved")


def _inside(file: Path, into: Path, name: str) -> Path:
    """The path of an entry; raises NotABackup if it would lie elsewhere, be it by a link that came before it."""
    to = into / name
    if not to.parent.resolve().is_relative_to(into.resolve()) or Path(name).name in ("", ".."):
        raise NotABackup(file, f"its entry {name!r} lies outside the city")
    return to


def _place(archive: tarfile.TarFile, entry: tarfile.TarInfo, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if entry.issym():
        to.symlink_to(entry.linkname)
    elif entry.isfile() or entry.islnk():
        _write(archive, entry, to, mode=entry.mode & 0o755)


def _write(archive: tarfile.TarFile, entry: tarfile.TarInfo, to: Path, *, mode: int = 0o600) -> None:
    content = archive.extractfile(entry)
    descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as out:
        while content is not None and (block := content.read(BLOCK)):
            out.write(block)


def _digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
