"""Making a city: its files, its database, its row."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from lamplighter.adapters.files.city import CityPaths, lay_out, make_file
from lamplighter.adapters.files.layers import load_city
from lamplighter.app.membership import migrate_own
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity, host, locate
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.store.url import migrate, open_direct, parse_store_url


def create_city(
    root: Path, settings: Settings, *, name: str | None = None, demo: bool = False, new_database: bool = False
) -> tuple[list[Path], str]:
    """Make what is missing; returns that and the city's name. What exists is read, never written over.

    A city.toml that is there and wrong is refused before anything is made. Raises CopiedCity; and StoreLost for a city
    that was made before and whose database is gone, unless `new_database` says to go on.
    """
    clock = SystemClock()
    paths = CityPaths(root)
    made_before = paths.id_file.exists()
    if made_before:
        OpenCity(settings, paths, clock, IdSource(clock)).need_own()
    if paths.config.exists():
        load_city(root, env=settings.env)
    made = lay_out_demo(root) if demo else []
    made += lay_out(root, name=name, ids=IdSource(clock), host=host())
    city = load_city(root, env=settings.env).city
    place = parse_store_url(city.store.url, paths.runtime)
    if made_before and not new_database:
        migrate_own(place, paths.city_id())
    else:
        migrate(place)
    store = open_direct(place, paths.city_id())
    try:
        store.transact(lambda tx: tx.cities.ensure(city.name, clock.now()))
    finally:
        store.close()
    return made, city.name


def prepare_start(settings: Settings) -> CityPaths:
    """The city that is to be started; one that was only cloned is made ready first. Raises CopiedCity.

    Without its id a city that has a database is not taken for a new one: its rows would be lost from sight.
    """
    paths = locate(settings)
    if not paths.id_file.exists() and not (paths.runtime / "lamp.db").exists() and paths.config.is_file():
        create_city(paths.root, settings)
    clock = SystemClock()
    OpenCity(settings, paths, clock, IdSource(clock)).need_own()
    return paths


def lay_out_demo(root: Path) -> list[Path]:
    """The files of the demo city that are not there yet; returns those that were made."""
    letter = root / "letterbox" / "first-letter"
    made = list(_copy(files("lamplighter.app").joinpath("demo"), root))
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
