"""Triggers: what each remembers between firings, and which of them are to be looked at now.

A timed trigger is due at its time. An event trigger is due from the moment an event of its type was seen until it has
processed all waiting events. A trigger that waits for the end of a run is held and costs nothing until then.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.automations.state import TriggerState
from lamplighter.store.engine import Db, Row, instant, instant_or_none, stamp, stamp_or_none

BLOCKED = "blocked"
"""Stands in `held_by` instead of a run: the event trigger keeps its events until a pause or suspension ends."""

_COLUMNS = """
    triggers.automation_id, triggers.id, triggers.kind, triggers.position, triggers.armed, triggers.registered_at,
    triggers.next_due_at, triggers.last_fired_at, triggers.last_slot, triggers.event_key, triggers.event_cursor,
    triggers.held_by, triggers.last_skip, triggers.checked_at, triggers.check_result, triggers.zone"""
INSERT = """
    INSERT INTO triggers (city_id, automation_id, id, kind, position, armed, registered_at, next_due_at,
                          last_fired_at, last_slot, event_key, event_cursor, zone, held_by)
    VALUES (:city, :automation, :id, :kind, :position, :armed, :registered_at, :next_due_at, :last_fired_at,
            :last_slot, :event_key, :event_cursor, :zone, :held_by)
    ON CONFLICT (city_id, automation_id, id) DO UPDATE SET
        kind = excluded.kind, position = excluded.position, armed = excluded.armed,
        registered_at = excluded.registered_at, next_due_at = excluded.next_due_at,
        last_fired_at = excluded.last_fired_at, last_slot = excluded.last_slot, event_key = excluded.event_key,
        event_cursor = excluded.event_cursor, zone = excluded.zone, held_by = excluded.held_by"""
SAVE_STATE = """
    UPDATE triggers SET next_due_at = :next_due_at, last_fired_at = :last_fired_at, last_slot = :last_slot,
                        event_cursor = :event_cursor, held_by = :held_by, last_skip = :last_skip
    WHERE city_id = :city AND automation_id = :automation AND id = :id"""
OF = f"""
    SELECT {_COLUMNS} FROM triggers WHERE city_id = :city AND automation_id = :automation ORDER BY position"""
OF_SOME = f"""
    SELECT {_COLUMNS} FROM triggers WHERE city_id = :city AND automation_id {{any:automations}}
    ORDER BY automation_id, position"""
REMOVE = "DELETE FROM triggers WHERE city_id = :city AND automation_id = :automation AND id = :id"
# The index triggers_due serves this. The automation's row is locked too: every firing starts from it.
DUE = f"""
    SELECT {_COLUMNS} FROM triggers
    JOIN automations ON automations.city_id = triggers.city_id AND automations.id = triggers.automation_id
    WHERE triggers.city_id = :city AND triggers.armed = 1 AND triggers.held_by IS NULL
        AND triggers.next_due_at <= :now
    ORDER BY triggers.next_due_at LIMIT :limit {{skip_claimed}}"""
# the index triggers_due serves this
NEXT_DUE = """
    SELECT next_due_at FROM triggers
    WHERE city_id = :city AND armed = 1 AND held_by IS NULL AND next_due_at IS NOT NULL
    ORDER BY next_due_at LIMIT 1"""
# the index triggers_by_event serves this
MARK_DUE = """
    UPDATE triggers SET next_due_at = :now
    WHERE city_id = :city AND armed = 1 AND event_key {any:keys} AND next_due_at IS NULL"""
# the index triggers_checked serves this
CONDITIONS = f"""
    SELECT {_COLUMNS} FROM triggers WHERE city_id = :city AND kind = 'condition' AND armed = 1
    ORDER BY automation_id, id"""
ALL = f"SELECT {_COLUMNS} FROM triggers WHERE city_id = :city ORDER BY automation_id, id"
# the index triggers_of_hook serves this
OF_CONNECTION = f"""
    SELECT {_COLUMNS} FROM triggers WHERE city_id = :city AND kind = 'webhook' AND event_key = :key
    ORDER BY automation_id, id"""
CHECKED = """
    UPDATE triggers SET checked_at = :now, check_result = :result
    WHERE city_id = :city AND automation_id = :automation AND id = :id"""
RELEASE = """
    UPDATE triggers SET held_by = NULL
    WHERE city_id = :city AND automation_id {any:automations} AND held_by IS NOT NULL"""
ARM = "UPDATE triggers SET armed = :armed WHERE city_id = :city AND automation_id = :automation"
OF_OTHER_ZONE = f"""
    SELECT {_COLUMNS} FROM triggers WHERE city_id = :city AND zone IS NOT NULL AND zone <> :zone
    ORDER BY automation_id, id"""
RELEASE_BLOCKED = "UPDATE triggers SET held_by = NULL WHERE city_id = :city AND held_by = :mark"
# the index triggers_by_event serves this; the lowest cursor of the armed event triggers that are due or held
LOWEST_CURSOR = """
    SELECT min(event_cursor) AS lowest FROM triggers
    WHERE city_id = :city AND event_key IS NOT NULL AND armed = 1
        AND (next_due_at IS NOT NULL OR held_by IS NOT NULL)"""


@dataclass(frozen=True, slots=True)
class TriggerRow:
    """`held_by` is the run it waits for, or BLOCKED; `last_skip` is the trigger event that counts its latest skips."""

    automation: str
    id: str
    kind: str
    position: int
    armed: bool
    state: TriggerState
    event_key: str | None = None
    zone: str | None = None
    """The city's time zone, if the schedule uses that one; None for a schedule with a zone of its own."""
    held_by: str | None = None
    last_skip: str | None = None
    checked_at: datetime | None = None
    check_result: str | None = None


def hook_key(connection: str) -> str:
    return f"hook:{connection}"


class Triggers:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def put(self, row: TriggerRow) -> None:
        """Insert it or replace its definition, state and hold; `last_skip` and its last check stay as they were."""
        params = self._key(row) | _state(row.state)
        params |= {
            "kind": row.kind,
            "position": row.position,
            "armed": int(row.armed),
            "event_key": row.event_key,
            "zone": row.zone,
            "held_by": row.held_by,
        }
        self._db.execute(INSERT, params | {"registered_at": stamp(row.state.registered_at)})

    def save_state(self, row: TriggerRow) -> None:
        held = {"held_by": row.held_by, "last_skip": row.last_skip}
        self._db.execute(SAVE_STATE, self._key(row) | _state(row.state) | held)

    def of(self, automation: str) -> list[TriggerRow]:
        return self._many(OF, {"automation": automation})

    def of_some(self, automations: Iterable[str]) -> dict[str, list[TriggerRow]]:
        found: dict[str, list[TriggerRow]] = {}
        for row in self._many(OF_SOME, {"automations": json.dumps(sorted(set(automations)))}):
            found.setdefault(row.automation, []).append(row)
        return found

    def remove(self, row: TriggerRow) -> None:
        self._db.execute(REMOVE, self._key(row))

    def due(self, now: datetime, *, limit: int) -> list[TriggerRow]:
        """The longest due first, locked with their automations; those locked by another process are left out."""
        return self._many(DUE, {"now": stamp(now), "limit": limit})

    def next_due_at(self) -> datetime | None:
        row = self._db.row(NEXT_DUE, {"city": self._city})
        return None if row is None else instant(row["next_due_at"])

    def mark_due(self, event_keys: Iterable[str], now: datetime) -> int:
        """Mark the event triggers of these keys as due; returns how many were not marked already."""
        params = {"city": self._city, "keys": json.dumps(sorted(event_keys)), "now": stamp(now)}
        return self._db.execute(MARK_DUE, params)

    def of_connection(self, connection: str) -> list[TriggerRow]:
        """The triggers that wait for its deliveries, also those that are off."""
        return self._many(OF_CONNECTION, {"key": hook_key(connection)})

    def conditions(self) -> list[TriggerRow]:
        return self._many(CONDITIONS, {})

    def all(self) -> list[TriggerRow]:
        return self._many(ALL, {})

    def checked(self, row: TriggerRow, result: str, now: datetime) -> None:
        self._db.execute(CHECKED, self._key(row) | {"result": result, "now": stamp(now)})

    def release(self, automations: Iterable[str]) -> int:
        """Release all held triggers of these automations, because a run has ended; BLOCKED ones are released too."""
        return self._db.execute(RELEASE, {"city": self._city, "automations": json.dumps(sorted(automations))})

    def disarm(self, automation: str) -> None:
        """Stop looking at its triggers; to arm them, register them again."""
        self._db.execute(ARM, {"city": self._city, "automation": automation, "armed": 0})

    def of_other_zone(self, zone: str) -> list[TriggerRow]:
        """Schedules that use the city's time zone and were registered while that was another one."""
        return self._many(OF_OTHER_ZONE, {"zone": zone})

    def release_blocked(self) -> int:
        """Release the triggers that waited for a pause or a suspension to end; they are looked at again."""
        return self._db.execute(RELEASE_BLOCKED, {"city": self._city, "mark": BLOCKED})

    def lowest_cursor(self) -> int | None:
        """The lowest cursor of the armed event triggers that are due or held: events above it are still to be read."""
        row = self._db.row(LOWEST_CURSOR, {"city": self._city})
        return None if row is None else row["lowest"]

    def _key(self, row: TriggerRow) -> dict[str, object]:
        return {"city": self._city, "automation": row.automation, "id": row.id}

    def _many(self, sql: str, params: dict[str, object]) -> list[TriggerRow]:
        return [_trigger(row) for row in self._db.rows(sql, params | {"city": self._city})]


def _state(state: TriggerState) -> dict[str, object]:
    return {
        "next_due_at": stamp_or_none(state.next_due_at),
        "last_fired_at": stamp_or_none(state.last_fired_at),
        "last_slot": state.last_slot,
        "event_cursor": state.event_cursor,
    }


def _trigger(row: Row) -> TriggerRow:
    return TriggerRow(
        automation=row["automation_id"],
        id=row["id"],
        kind=row["kind"],
        position=row["position"],
        armed=bool(row["armed"]),
        state=TriggerState(
            registered_at=instant(row["registered_at"]),
            next_due_at=instant_or_none(row["next_due_at"]),
            last_fired_at=instant_or_none(row["last_fired_at"]),
            last_slot=row["last_slot"],
            event_cursor=row["event_cursor"],
        ),
        event_key=row["event_key"],
        zone=row["zone"],
        held_by=row["held_by"],
        last_skip=row["last_skip"],
        checked_at=instant_or_none(row["checked_at"]),
        check_result=row["check_result"],
    )
