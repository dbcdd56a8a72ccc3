"""The file `.gc/store.json`: which database the city uses, and the one it used before, while its rows are still there.

A changed `[store] url` leads to a database without the city's history: what to do about it is told until it is done.
"""

import json
from pathlib import Path

from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.adapters.files.city import CityPaths
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.records import record
from lamplighter.store.engine import peek
from lamplighter.store.summary import Summary
from lamplighter.store.url import Place, SqliteUrl, parse_store_url

FILE = "store.json"


@record
class StoreRecord:
    """Databases by their URLs, without passwords; paths inside the city are relative to it."""

    store: str
    before: str | None = None


class EarlierStore(Unavailable):
    """The new database is a file that does not exist yet, and the city's rows are in another database."""

    def __init__(self, place: Place, before: str) -> None:
        super().__init__(
            f"There is no database at {place} yet; the city's history is in {before}, which it used before.",
            hint=f"`lamp store copy --from {before}` brings it here. `lamp init --new-database` begins without it.",
        )


class NotBegun(Unavailable):
    """The city was never started on its new database, and its rows are in another one."""

    def __init__(self, place: Place, before: str) -> None:
        super().__init__(
            f"The database {place} has no row of this city yet; its history is in {before}, which it used before.",
            hint=f"`lamp store copy --from {before} --replace` brings it over; `lamp up` begins without it.",
        )


def read_record(paths: CityPaths) -> StoreRecord | None:
    """None if no daemon has written one, or it cannot be read: it only serves to warn."""
    try:
        told = json.loads((paths.runtime / FILE).read_text(encoding="utf-8"))
        return StoreRecord(str(told["store"]), None if told.get("before") is None else str(told["before"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_record(paths: CityPaths, record: StoreRecord) -> None:
    if read_record(paths) != record:
        text = json.dumps({"store": record.store, "before": record.before})
        write_atomically(paths.runtime / FILE, f"{text}\n".encode(), mode=0o600)


def url_of(place: Place, root: Path) -> str:
    """The URL that names the place, without its password."""
    if not isinstance(place, SqliteUrl):
        return str(place)
    path = place.path.resolve()
    return f"sqlite:{path.relative_to(root.resolve()) if path.is_relative_to(root.resolve()) else path}"


def earlier(paths: CityPaths, place: Place) -> str | None:
    """The URL of the database that the city used before `place`; None if it is the same, or nothing is known."""
    here, record = url_of(place, paths.root), read_record(paths)
    if record is None:
        usual = parse_store_url("", paths.runtime)
        before = None if not isinstance(usual, SqliteUrl) or not usual.path.exists() else url_of(usual, paths.root)
    else:
        before = record.before if record.store == here else record.store
    return None if before == here or before is None or not _has_history(paths, before) else before


def warning(paths: CityPaths) -> str | None:
    """What to tell a person as long as the city's history is in another database; None if there is nothing to tell."""
    record = read_record(paths)
    if record is None or record.before is None or not _has_history(paths, record.before):
        return None
    return (
        f"{record.store} was empty when [store] url was changed to it: the city's history is still in {record.before}. "
        f"`lamp stop`, then `lamp store copy --from {record.before} --replace` brings it over; "
        "`lamp store forget` goes on without it."
    )


def begun(paths: CityPaths, place: Place, *, empty: bool) -> str | None:
    """Record at a start which database is used; `empty` if it knew nothing of the city. Returns what to tell of it."""
    before = earlier(paths, place)
    record = read_record(paths)
    kept = record is not None and record.store == url_of(place, paths.root)
    write_record(paths, StoreRecord(url_of(place, paths.root), before if empty or kept else None))
    return warning(paths)


def _has_history(paths: CityPaths, url: str) -> bool:
    """Whether that database has runs, beads or stored automations of the city; True also if it cannot be looked at."""
    place = parse_store_url(url, paths.runtime)
    if not isinstance(place, SqliteUrl):
        return True
    if not place.path.exists():
        return False
    city = paths.city_id()
    return peek(place.path, lambda db: Summary(db, city).has_history()) is not False
