"""`lamp backup` and `lamp restore`: a city in one file, and a city made from one."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lamplighter import __version__
from lamplighter.adapters.files import archive, edit
from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.city_id import original_of
from lamplighter.adapters.files.layers import load_city
from lamplighter.app import store_record
from lamplighter.app.agent_runs import ARTIFACTS
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity, host
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import Conflict, LampError, NotFound, Unavailable, UsageError
from lamplighter.services.keeping import BackupView
from lamplighter.store.copying import Progress, save_city
from lamplighter.store.engine import PROGRAM
from lamplighter.store.errors import StoreFull
from lamplighter.store.url import SqliteUrl, migrate, parse_store_url


def back_up(city: OpenCity, file: str | None, *, artifacts: bool) -> BackupView:
    """Raises Conflict for a file that is there, UsageError for artifacts elsewhere, StoreUnavailable, Unavailable."""
    paths, place, now = city.paths, city.place, city.clock.now()
    loaded = city.config.city
    target = _target(city, file)
    kept = _artifacts(city) if artifacts else None

    def tell(at: Progress) -> None:
        city.progress(
            f"saving the database: {at.done} of {at.of} {'' if at.table == 'pages' else 'rows of '}{at.table}"
        )

    rigs = frozenset(loaded.rig_path(rig).resolve() for rig in loaded.rigs)
    manifest = {
        "city": paths.city_id(), "name": loaded.name, "root": str(paths.root), "host": host(), "store": str(place),
        "made_at": rfc3339(now), "program": __version__, "schema": PROGRAM, "artifacts": artifacts,
    }  # fmt: skip
    try:
        with tempfile.TemporaryDirectory(prefix=archive.TEMPORARY, dir=target.parent) as folder:
            saved = SqliteUrl(Path(folder) / archive.DATABASE, paths.runtime)
            save_city(place, saved, paths.city_id(), tell=tell)
            files = archive.files_of(paths.root, paths.runtime, without=rigs, artifacts=kept)
            size = archive.write_archive(target, manifest, saved.path, files, city.progress)
    except StoreFull as error:  # the copy of the database that is made beside it first
        raise Unavailable(
            f"The backup {target} cannot be written: its disk is full.",
            hint="Free some space there, or name a file on another disk; nothing was left behind.",
        ) from error
    except OSError as error:
        raise Unavailable(
            f"The backup {target} cannot be written: {error.strerror or error}.",
            hint="Check the directory, its owner and mode, and the free space.",
        ) from error
    return BackupView(str(target), size, len(files.files), list(files.left_out), artifacts)


def _target(city: OpenCity, file: str | None) -> Path:
    stamp = city.clock.now().strftime("%Y%m%dT%H%M%SZ")
    name = file or f"{city.paths.root.name}-{stamp}{archive.ENDING}"
    here, root = city.settings.cwd.resolve(), city.paths.root.resolve()
    inside = file is None and here.is_relative_to(root)  # beside the city then: what removes it must not take this too
    found = (root.parent if inside else city.settings.cwd) / Path(name).expanduser()
    if found.is_dir():
        raise UsageError(f"{found} is a directory.", hint="Name a file in it.")
    if found.exists():
        raise Conflict(f"{found} is there already.", hint="Name another file.")
    if not found.parent.is_dir():
        raise NotFound(f"There is no directory {found.parent}.", hint="Make it, or name a file elsewhere.")
    return found.resolve()


def _artifacts(city: OpenCity) -> Path:
    url = city.config.city.artifacts.url
    if url and not url.startswith("file://") and ":" in url:
        raise UsageError(
            f"The artifacts of this city are in {url}, not in a directory.",
            hint="Back them up there; leave --artifacts out.",
        )
    return city.paths.root / url.removeprefix("file://") if url else city.paths.runtime / ARTIFACTS


@dataclass(frozen=True)
class Restored:
    """Where the city is now, from when its backup is, and what to know before it is started, a sentence each."""

    root: Path
    made_at: str
    notes: tuple[str, ...]


class NotEmpty(Conflict):
    def __init__(self, root: Path) -> None:
        super().__init__(f"{root} is there and not empty.", hint="A backup is restored into a directory of its own.")


def restore(file: Path, root: Path, settings: Settings, tell: archive.Tell) -> Restored:
    """Make a city from a backup; the directory has its name only when all is in it. Raises NotEmpty, NotABackup."""
    if not file.is_file():
        raise NotFound(f"There is no file {file}.", hint="Name a file that `lamp backup` made.")
    told = archive.read_manifest(file)
    if told["schema"] > PROGRAM:
        raise Conflict(
            f"{file} was made by a newer program ({told['program']}, schema {told['schema']}).",
            hint=f"Use that version to restore it; this one knows schema {PROGRAM}.",
        )
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise NotEmpty(root)
    making = root.with_name(f"{root.name}.restoring")
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        making.mkdir()
    except FileExistsError:
        raise Conflict(
            f"{making} is there: this backup is being restored, or that was interrupted.",
            hint="If it is not being restored, delete that directory and repeat.",
        ) from None
    except OSError as error:
        raise _cannot_be_made(root, error) from error
    try:
        notes = _made(file, making, settings, tell)
        making.replace(root)
    except OSError as error:
        shutil.rmtree(making, ignore_errors=True)
        raise _cannot_be_made(root, error) from error
    except LampError:
        shutil.rmtree(making, ignore_errors=True)
        raise
    paths = CityPaths(root)
    place = parse_store_url("", paths.runtime)
    store_record.write_record(paths, store_record.StoreRecord(store_record.url_of(place, root)))
    return Restored(root, told["made_at"], (*notes, *_notes(told, root)))


def _cannot_be_made(root: Path, error: OSError) -> Unavailable:
    why = f"{root} cannot be made: {error.strerror or error}."
    return Unavailable(why, hint="Check its owner and mode, and the free space.")


def _made(file: Path, making: Path, settings: Settings, tell: archive.Tell) -> list[str]:
    """Make the city in the empty directory `making`; returns what to know before it is started."""
    paths = CityPaths(making)
    paths.runtime.mkdir(mode=0o700)
    archive.extract(file, making, paths.runtime / archive.DATABASE, tell)
    paths.runtime.chmod(0o700)
    migrate(SqliteUrl(paths.runtime / archive.DATABASE, paths.runtime), make=False)
    return _own_store(paths, settings)


def _own_store(paths: CityPaths, settings: Settings) -> list[str]:
    """Let the restored city use the database that came with it, whatever it used before."""
    env = {name: value for name, value in settings.env.items() if name != "LAMP_STORE_URL"}
    notes = []
    if settings.env.get("LAMP_STORE_URL"):
        notes.append("LAMP_STORE_URL is set here and would have it use another database: unset it before you start it.")
    try:
        before = load_city(paths.root, env=env).city.store.url
        if not before:
            return notes
        edit.apply(edit.set_value(paths.config, ("store", "url"), ""))
        after = load_city(paths.root, env=env).city.store.url
    except LampError as error:
        return [*notes, f"Its configuration cannot be read: {error.message}"]
    if after:
        notes.append(f"[store] url is still `{after}`: set it to an empty text, so that it uses .gc/lamp.db.")
    else:
        notes.append("[store] url in its city.toml is empty now: what was saved is in its own .gc/lamp.db.")
    return notes


def _notes(told: dict[str, object], root: Path) -> list[str]:
    notes = []
    left = told.get("left_out")
    if isinstance(left, list) and left:
        notes.append(f"Not in the backup, as they are repositories or rigs: {', '.join(map(str, left))}.")
    original = original_of(root, host())
    if original is not None:
        notes.append(
            f"The city it was made from is still in {original.root}: this one can be read, and not be started, "
            f"before `lamp init --new-id {root}`."
        )
    return notes
