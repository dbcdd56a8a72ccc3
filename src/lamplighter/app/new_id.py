"""`lamp init --new-id`: a copied city becomes a city of its own."""

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.city_id import city_id_text, set_aside
from lamplighter.adapters.files.lock import ControllerLock
from lamplighter.adapters.files.secret_box import KeyedBox
from lamplighter.adapters.files.secrets import KEY_FILE, OWNER_FILE, ensure_owner_token
from lamplighter.app.local_host import LocalHost, on_host
from lamplighter.app.operations import DirectOperations
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity, host
from lamplighter.domain.automations.model import TriggerKind
from lamplighter.domain.secrets import SecretLocked
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import Conflict, LampError
from lamplighter.kit.ids import IdSource
from lamplighter.services import fresh_start
from lamplighter.services.automations.queries import LIST, ListAutomations
from lamplighter.services.secrets import reseal
from lamplighter.store.cities import organization_of
from lamplighter.store.engine import rekey_sqlite
from lamplighter.store.url import Place, SqliteUrl, migrate, open_direct

NEXT_ID = "city-id.next"
AT_ONCE = 100
MOST_LISTED = 10_000
OF_THE_ORIGINAL = (
    "sessions", "sessions-tmux", "commands", "owners", "wake", "worktrees", "node-id", "api.json", "worker-api.json",
    "daemon.pid", "controller.sock", "tmux.sock", "config.rejected",
)  # fmt: skip


@dataclass(frozen=True)
class Renewed:
    """The new id, the old one, how many runs were ended, and where the original's session records were moved."""

    id: str
    before: str
    runs_ended: int
    aside: Path
    rows_kept: bool
    """False if the database is outside the city and the rows stay the original's: this city then starts without any."""
    fires: tuple[str, ...] = ()
    """The automations that fire by themselves in it: they do so in the original too."""


def give_new_id(root: Path, settings: Settings) -> Renewed:
    """Give the city a new id. May be repeated after an interruption.

    Raises ControllerRunning, and Conflict while agents or runs of this city (not of its original) live.
    """
    paths = CityPaths(root)
    paths.city_id()  # raises before a lock file is created in a directory that is no city
    lock = ControllerLock(paths.lock)
    lock.take()
    try:
        clock = SystemClock()
        done = _renewed(OpenCity(settings, paths, clock, IdSource(clock)))
        return replace(done, fires=_firing(OpenCity(settings, paths, clock, IdSource(clock))))
    finally:
        lock.release()


def _renewed(city: OpenCity) -> Renewed:
    _need_nobody_alive(city)
    paths, place = city.paths, city.place
    old, new = paths.city_id(), _next_id(city)
    aside = set_aside(paths.runtime, OF_THE_ORIGINAL, f"of-{old}")
    for name in (KEY_FILE, OWNER_FILE):  # the original's; a key is made when first needed
        (paths.runtime / name).unlink(missing_ok=True)
    own_rows = _lies_inside(place, paths.root)
    migrate(place)
    if own_rows and isinstance(place, SqliteUrl):
        rekey_sqlite(place.path, old, new, organization_of(new))
    _take_over_secrets(city, new, old)
    ended = _settle(city, new, old)
    write_atomically(paths.id_file, city_id_text(new, paths.root, host()).encode(), mode=0o600)
    ensure_owner_token(paths.runtime)
    (paths.runtime / NEXT_ID).unlink()
    return Renewed(new, old, ended, aside, own_rows)


def _firing(city: OpenCity) -> tuple[str, ...]:
    """The automations that are on and have a trigger; none where the configuration cannot be read, which fires none."""
    try:
        rows = DirectOperations(city).do(LIST, ListAutomations(limit=MOST_LISTED))
    except LampError:
        return ()
    finally:
        city.close()
    return tuple(
        one.scoped_name
        for one in rows
        if one.enabled and not (one.suspended or one.skipped or one.problems)
        and any(trigger.kind != TriggerKind.MANUAL for trigger in one.triggers)
    )  # fmt: skip


def _take_over_secrets(city: OpenCity, new: str, old: str) -> None:
    """Seal for the new id what was sealed for the old one; a secret that cannot be opened is left as it is."""
    box = KeyedBox(city.paths.runtime, city.settings.env, new)
    store = open_direct(city.place, new)
    try:
        for row in store.read(lambda tx: tx.secrets.all()):
            with contextlib.suppress(SecretLocked):
                sealed = box.taken_over(row.name, row.sealed, old)
                if sealed is not None:
                    store.transact(reseal, row, sealed)
    finally:
        store.close()


def _settle(city: OpenCity, new: str, old: str) -> int:
    """End all runs and sessions under way and record the event `city.new_id`; returns how many runs were ended."""
    store, name = open_direct(city.place, new), city.config.city.name
    try:
        ctx = city.context()
        store.transact(lambda tx: tx.cities.ensure(name, ctx.now))
        store.transact(fresh_start.forget_processes, ctx)
        under_way = store.read(fresh_start.open_runs)
        for start in range(0, len(under_way), AT_ONCE):
            store.transact(fresh_start.end_runs, under_way[start : start + AT_ONCE], ctx=ctx)
        store.transact(fresh_start.end_open_sessions, ctx)
        fact = ctx.event("city.new_id", subject=name, payload={"id": new, "before": old})
        store.transact(lambda tx: tx.events.append(fact))
        return len(under_way)
    finally:
        store.close()


def _need_nobody_alive(city: OpenCity) -> None:
    """Raises Conflict if the city is not a copy and has living sessions: under a new id it could not find them again.

    A copy has no sessions of its own.
    """
    if city.original is not None:
        return
    living = on_host(city, _living)
    if living:
        raise Conflict(
            f"{len(living)} agents or runs of this city still live: {', '.join(sorted(living)[:5])}.",
            hint="`lamp stop` ends them; then give it a new id.",
        )


async def _living(host: LocalHost) -> list[str]:
    seen = [await provider.seen() for provider in host.all_sessions]
    return [name for each in seen for name, one in each.items() if one.alive]


def _next_id(city: OpenCity) -> str:
    """The new id, kept in a file: a second attempt after an interruption uses the same id."""
    file = city.paths.runtime / NEXT_ID
    if not file.exists():
        write_atomically(file, f"{city.ids.make('cty')}\n".encode(), mode=0o600)
    return file.read_text(encoding="ascii").strip()


def _lies_inside(place: Place, root: Path) -> bool:
    """Whether the database file is inside the city, so that its rows were copied with the directory."""
    return isinstance(place, SqliteUrl) and place.path.resolve().is_relative_to(root.resolve())
