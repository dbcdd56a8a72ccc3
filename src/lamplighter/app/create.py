"""Creates a city: its files, its database and its row."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from lamplighter.adapters.files.city import CityPaths, check_name, lay_out, make_file
from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.lock import ControllerRunning, controller_pid
from lamplighter.adapters.files.secrets import ensure_owner_token
from lamplighter.app import store_record
from lamplighter.app.membership import migrate_own, need_no_copy
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity, host, locate
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.store.url import SqliteUrl, migrate, open_direct, parse_store_url

DEMO_NAME = 'name = "demo"'
"""The line of the demo's city.toml in which another name is put."""


def create_city(
    root: Path, settings: Settings, *, name: str | None = None, demo: bool = False, new_database: bool = False
) -> tuple[list[Path], str]:
    """Create what is missing; returns the created files and the city's name. Existing files are never overwritten.

    An existing city.toml is validated before anything is created. Raises ConfigInvalid, CopiedCity; UsageError for a
    name that no city can have or that is not the one in an existing city.toml; StoreLost if the
    city was created before and its database is gone, unless `new_database` allows a new one.
    """
    clock = SystemClock()
    paths = CityPaths(root)
    made_before = paths.id_file.exists()
    if made_before:
        OpenCity(settings, paths, clock, IdSource(clock)).need_own()
    if paths.config.exists():
        own = load_city(root, env=settings.env).city.name
        if name is not None and name != own:
            raise UsageError(
                f"The city in {root} is named `{own}`, and `init` changes no file that is there.",
                hint="Leave `--name` out, or change `name` under [workspace] in its city.toml.",
            )
    made = lay_out_demo(root, name) if demo else []
    made += lay_out(root, name=name, ids=IdSource(clock), host=host())
    city = load_city(root, env=settings.env).city
    place = parse_store_url(city.store.url, paths.runtime)
    if made_before and not new_database:
        migrate_own(place, paths.city_id())
    elif made_before and isinstance(place, SqliteUrl):
        made += _new_database(paths, place)
    else:
        migrate(place)
    store = open_direct(place, paths.city_id())
    try:
        store.transact(lambda tx: tx.cities.ensure(city.name, clock.now()))
    finally:
        store.close()
    if not made_before or new_database:
        store_record.write_record(paths, store_record.StoreRecord(store_record.url_of(place, root)))
    made += ensure_owner_token(paths.runtime)
    return made, city.name


def _new_database(paths: CityPaths, place: SqliteUrl) -> list[Path]:
    """An empty database where the city's own is lost; returns what was made.

    Raises ControllerRunning, because files must not change under a daemon, and StoreSaved while a copy of what was lost
    lies there: whoever wants to begin anew puts it elsewhere first.
    """
    pid = controller_pid(paths.lock)
    if pid is not None:
        raise ControllerRunning(str(pid or ""))
    need_no_copy(place)
    lost = not place.path.exists() or place.path.stat().st_size == 0
    migrate(place)
    return [place.path] if lost else []


def prepare_start(settings: Settings) -> CityPaths:
    """Locate the city to start; create what is missing in one that was only cloned, and the owner's token in any.

    Raises CopiedCity, NotFound.

    A city without an id but with a database is not treated as new: under a new id its rows would not be found again.
    """
    paths = locate(settings)
    if not paths.id_file.exists() and not (paths.runtime / "lamp.db").exists() and paths.config.is_file():
        create_city(paths.root, settings)
    clock = SystemClock()
    OpenCity(settings, paths, clock, IdSource(clock)).need_own()
    ensure_owner_token(paths.runtime)
    return paths


def lay_out_demo(root: Path, name: str | None = None) -> list[Path]:
    """Create those files of the demo city that do not exist yet; returns the created ones.

    Raises UsageError for a name that no city can have.
    """
    if name is not None:
        check_name(name)
    letter = root / "letterbox" / "first-letter"
    demo = files("lamplighter.app").joinpath("demo")
    made = []
    if name is not None:
        text = demo.joinpath("city.toml").read_text(encoding="utf-8")
        root.mkdir(parents=True, exist_ok=True)
        made += make_file(root / "city.toml", text.replace(DEMO_NAME, f'name = "{name}"', 1))
    made += _copy(demo, root)
    if made:
        letter.parent.mkdir(exist_ok=True)
        made += make_file(letter, "Dear city, put your letters here and they will be read.\n")
    return made


def _copy(source: Traversable, target: Path) -> Iterator[Path]:
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        if entry.is_dir():
            yield from _copy(entry, target / entry.name)
        else:
            yield from make_file(target / entry.name, entry.read_text(encoding="utf-8"))
