"""`lamp store copy`: all rows of the city from one database to another, while nobody works on them."""

from dataclasses import dataclass

from lamplighter.adapters.files.lock import ControllerLock
from lamplighter.app import store_record
from lamplighter.app.store_record import StoreRecord
from lamplighter.app.wiring import OpenCity
from lamplighter.kit.errors import Conflict, UsageError
from lamplighter.store.copying import Copied, Tell, copy_city
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.url import Place, open_direct, open_proofs, parse_store_url


@dataclass(frozen=True)
class Moved:
    """What was copied from where to where; `in_use` if the city uses the target already."""

    source: str
    target: str
    copied: Copied
    in_use: bool


class ProcessesAtWork(Conflict):
    def __init__(self, where: str, names: list[str]) -> None:
        super().__init__(
            f"Processes of the city work on {where}: {', '.join(names[:5])}.",
            hint="Stop them (`lamp stop`, Ctrl-C in `lamp worker`), and repeat.",
        )


def copy_store(city: OpenCity, *, source: str | None, target: str | None, replace: bool, tell: Tell) -> Moved:
    """Copy the city's rows; either database is the city's own if it is not named.

    Raises UsageError, CopiedCity, ControllerRunning, ProcessesAtWork, and what `copy_city` raises.
    """
    if source is None and target is None:
        raise UsageError("A copy needs another database.", hint="Name it: `lamp store copy --to URL`.")
    city.need_own()
    places = [_named(city, one) for one in (source, target)]
    urls = [store_record.url_of(place, city.paths.root) for place in places]
    if urls[0] == urls[1]:
        raise UsageError(f"Both databases are {urls[0]}.", hint="Name another one: `--to URL`, or `--from URL`.")
    lock = ControllerLock(city.paths.lock)
    lock.take()
    try:
        for place in places:
            _need_idle(place, city.paths.city_id())
        copied = copy_city(places[0], places[1], city.paths.city_id(), replace=replace, tell=tell)
        in_use = urls[1] == store_record.url_of(city.place, city.paths.root)
        if in_use:
            store_record.write_record(city.paths, StoreRecord(urls[1]))
        return Moved(urls[0], urls[1], copied, in_use)
    finally:
        lock.release()


def forget_earlier(city: OpenCity) -> str | None:
    """Warn no more of a database that the city used before; returns its URL, None if there is none."""
    record = store_record.read_record(city.paths)
    if record is None or record.before is None:
        return None
    store_record.write_record(city.paths, StoreRecord(record.store))
    return record.before


def _named(city: OpenCity, url: str | None) -> Place:
    return city.place if url is None else parse_store_url(url, city.paths.runtime)


def _need_idle(place: Place, city: str) -> None:
    """Raises ProcessesAtWork. A database that cannot be read is left to the copy, which says what is wrong."""
    try:
        store = open_direct(place, city)
    except StoreUnavailable:
        return
    try:
        known = store.read(lambda tx: tx.owners.all())
    except StoreUnavailable:
        return
    finally:
        store.close()
    if not known:
        return
    proofs = open_proofs(place)
    try:
        living = proofs.living([owner.id for owner in known])
    finally:
        proofs.close()
    names = [f"{owner.kind} {owner.pid} on {owner.host}" for owner in known if owner.id in living]
    if names:
        raise ProcessesAtWork(str(place), names)
