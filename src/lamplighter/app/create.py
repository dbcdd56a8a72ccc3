"""Making a city: its files, its database, its row."""

from pathlib import Path

from lamplighter.adapters.files.city import CityPaths, lay_out
from lamplighter.adapters.files.layers import load_city
from lamplighter.app.settings import Settings
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.store.place import migrate, open_direct, parse_place


def create_city(root: Path, settings: Settings, *, name: str | None = None) -> tuple[list[Path], str]:
    """Make what is missing; returns that and the city's name. What exists is read, never written over."""
    clock = SystemClock()
    paths = CityPaths(root)
    made = lay_out(root, name=name, ids=IdSource(clock))
    city = load_city(root, env=settings.env).city
    place = parse_place(city.store.url, paths.runtime)
    migrate(place)
    store = open_direct(place, paths.city_id())
    try:
        store.transact(lambda tx: tx.cities.ensure(city.name, clock.now()))
    finally:
        store.close()
    return made, city.name
