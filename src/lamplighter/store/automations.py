"""Automations: one row per definition; those from files and those stored by other means are in one list."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime

from lamplighter.kit.records import record
from lamplighter.store.engine.db import Db, Row, instant, instant_or_none, stamp, stamp_or_none
from lamplighter.store.engine.deferred import NotAsExpected, Write

_COLUMNS = """
    id, scoped_name, name, rig, source, path, definition, problems, version, enabled, left_out, suspended,
    disabled_reason, failures, armed_at, quiet_at, created_at, created_by, updated_at"""
# Whether the city is paused is read with every row: each reader of an automation asks whether it may run.
_READ = f"""
    {_COLUMNS}, (SELECT paused_at IS NOT NULL FROM cities WHERE id = automations.city_id) AS paused"""
INSERT = f"""
    INSERT INTO automations (city_id, {_COLUMNS})
    VALUES (:city, :id, :scoped_name, :name, :rig, :source, :path, :definition, :problems, :version, :enabled,
            :left_out, :suspended, :disabled_reason, :failures, :armed_at, :quiet_at, :created_at, :created_by,
            :updated_at)
    ON CONFLICT (city_id, scoped_name) DO NOTHING"""
UPDATE = """
    UPDATE automations SET name = :name, scoped_name = :scoped_name, rig = :rig, source = :source, path = :path,
        definition = :definition, problems = :problems, version = version + 1, enabled = :enabled,
        left_out = :left_out, suspended = :suspended, disabled_reason = :disabled_reason, failures = :failures,
        armed_at = :armed_at, quiet_at = :quiet_at, updated_at = :updated_at
    WHERE city_id = :city AND id = :id"""
GET = f"SELECT {_READ} FROM automations WHERE city_id = :city AND id = :id"
LOCK = GET + " {for_update}"
NAMED = f"SELECT {_READ} FROM automations WHERE city_id = :city AND scoped_name = :name"
LOCK_NAMED = NAMED + " {for_update}"
# In order of ids: every process locks rows in this order.
SOME = f"SELECT {_READ} FROM automations WHERE city_id = :city AND id {{any:wanted}} ORDER BY id"
SOME_NAMED = f"SELECT {_READ} FROM automations WHERE city_id = :city AND scoped_name {{any:wanted}} ORDER BY id"
LIST = f"""
    SELECT {_READ} FROM automations WHERE city_id = :city AND scoped_name > :after
    ORDER BY scoped_name LIMIT :limit"""
OF_FILES = f"SELECT {_READ} FROM automations WHERE city_id = :city AND source = 'file' ORDER BY scoped_name"
DELETE = "DELETE FROM automations WHERE city_id = :city AND id = :id"
COUNT_FAILURE = Write(
    "UPDATE automations SET failures = :failures {each} WHERE city_id = :city AND id = :id",
    whole="failures",
    key="id",
    must=False,
)
SET_QUIET = "UPDATE automations SET quiet_at = :at WHERE city_id = :city AND id = :id"
# the index automations_quiet serves this
QUIET = f"""
    SELECT {_READ} FROM automations WHERE city_id = :city AND quiet_at IS NOT NULL AND quiet_at <= :now
    ORDER BY quiet_at LIMIT :limit {{skip_claimed}}"""


@record
class AutomationRow:
    """`definition` is JSON text, None for a file that could not be read as a definition; `problems` says why.

    `disabled_reason` says why it was switched off in the store rather than in its definition; `quiet_at` is when its
    silence is to be reported.
    """

    id: str
    scoped_name: str
    name: str
    rig: str | None
    source: str
    path: str | None
    definition: str | None
    problems: tuple[str, ...]
    version: int
    enabled: bool
    left_out: bool
    suspended: bool
    disabled_reason: str
    failures: int
    armed_at: datetime
    quiet_at: datetime | None
    created_at: datetime
    created_by: str
    updated_at: datetime
    paused: bool = False
    """Its city is paused: read from the city's row, never written with the automation."""

    @property
    def armed(self) -> bool:
        """Whether its triggers are looked at. Those of a suspended one are, so that what they skip is recorded."""
        return self.enabled and not self.left_out and self.definition is not None


Stays = Callable[[AutomationRow], bool]
MOST_REMEMBERED = 10_000


class Automations:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city
        self._stayed: dict[tuple[Stays, str], bool] = {}

    def insert(self, row: AutomationRow) -> bool:
        """False when the scoped name is taken."""
        return self._db.execute(INSERT, self._params(row)) == 1

    def save(self, row: AutomationRow) -> None:
        self._db.execute(UPDATE, self._params(row))

    def get(self, automation: str) -> AutomationRow | None:
        return self._one(GET, {"id": automation})

    def lock(self, automation: str) -> AutomationRow | None:
        return self._one(LOCK, {"id": automation})

    def named(self, scoped_name: str) -> AutomationRow | None:
        return self._one(NAMED, {"name": scoped_name})

    def lock_named(self, scoped_name: str) -> AutomationRow | None:
        return self._one(LOCK_NAMED, {"name": scoped_name})

    def some(self, ids: Iterable[str]) -> dict[str, AutomationRow]:
        return {row.id: row for row in self._many(SOME, {"wanted": json.dumps(sorted(set(ids)))})}

    def lock_some(self, ids: Iterable[str], *, stays: Stays | None = None) -> dict[str, AutomationRow]:
        """Lock these rows; the lock is shared if `stays` says of each row that the caller will not change it.

        Raises NotAsExpected if a row that was locked as shared is to be changed after all.
        """
        return {row.id: row for row in self._locked(GET, SOME, ids, stays)}

    def lock_some_named(self, names: Iterable[str], *, stays: Stays | None = None) -> dict[str, AutomationRow]:
        """As `lock_some`."""
        return {row.scoped_name: row for row in self._locked(NAMED, SOME_NAMED, names, stays)}

    def page(self, *, after: str = "", limit: int = 500) -> list[AutomationRow]:
        """In order of their scoped names."""
        return self._many(LIST, {"after": after, "limit": limit})

    def of_files(self) -> list[AutomationRow]:
        return self._many(OF_FILES, {})

    def delete(self, automation: str) -> bool:
        return self._db.execute(DELETE, {"city": self._city, "id": automation}) == 1

    def count_failures(self, automation: str, failures: int) -> None:
        self._db.write(COUNT_FAILURE, self._city, {"id": automation, "failures": failures})

    def set_quiet(self, automation: str, at: datetime | None) -> None:
        self._db.execute(SET_QUIET, {"city": self._city, "id": automation, "at": stamp_or_none(at)})

    def quiet(self, now: datetime, *, limit: int) -> list[AutomationRow]:
        """Those whose silence is to be reported now, locked."""
        return self._many(QUIET, {"now": stamp(now), "limit": limit})

    def _one(self, sql: str, params: dict[str, object]) -> AutomationRow | None:
        row = self._db.row(sql, params | {"city": self._city})
        return None if row is None else _automation(row)

    def _many(self, sql: str, params: dict[str, object]) -> list[AutomationRow]:
        return [_automation(row) for row in self._db.rows(sql, params | {"city": self._city})]

    def _locked(self, one: str, some: str, wanted: Iterable[str], stays: Stays | None) -> list[AutomationRow]:
        asked = sorted(set(wanted))
        params: dict[str, object]
        if len(asked) == 1:  # its own statement is cheaper
            sql, params = one, {"id": asked[0], "name": asked[0]}
        else:
            sql, params = some, {"wanted": json.dumps(asked)}
        if stays is None or not self._db.dialect.locks_rows:
            return self._many(sql + " {for_update}", params)
        known = [self._stayed.get((stays, name)) for name in asked]
        shared = all(known) if None not in known else all(map(stays, self._many(sql, params)))
        rows = self._many(sql + (" {for_share}" if shared else " {for_update}"), params)
        as_it_was = self._remember(stays, asked, rows)
        if shared and not as_it_was:  # not upgraded to exclusive: two holders that both try would deadlock
            raise NotAsExpected(sql)
        return rows

    def _remember(self, stays: Stays, asked: Iterable[str], rows: Iterable[AutomationRow]) -> bool:
        """Whether all of them stay unchanged; each answer is kept as a hint for the next call that locks the row."""
        if len(self._stayed) > MOST_REMEMBERED:
            self._stayed.clear()
        found = dict.fromkeys(asked, True)  # a row that does not exist counts as unchanged
        found |= {name: False for row in rows if not stays(row) for name in (row.id, row.scoped_name)}
        self._stayed |= {(stays, name): found[name] for name in asked}
        return all(found.values())

    def _params(self, row: AutomationRow) -> dict[str, object]:
        return {
            "city": self._city,
            "id": row.id,
            "scoped_name": row.scoped_name,
            "name": row.name,
            "rig": row.rig,
            "source": row.source,
            "path": row.path,
            "definition": row.definition,
            "problems": json.dumps(list(row.problems)),
            "version": row.version,
            "enabled": int(row.enabled),
            "left_out": int(row.left_out),
            "suspended": int(row.suspended),
            "disabled_reason": row.disabled_reason,
            "failures": row.failures,
            "armed_at": stamp(row.armed_at),
            "quiet_at": stamp_or_none(row.quiet_at),
            "created_at": stamp(row.created_at),
            "created_by": row.created_by,
            "updated_at": stamp(row.updated_at),
        }


def _automation(row: Row) -> AutomationRow:
    return AutomationRow(
        id=row["id"],
        scoped_name=row["scoped_name"],
        name=row["name"],
        rig=row["rig"],
        source=row["source"],
        path=row["path"],
        definition=row["definition"],
        problems=tuple(json.loads(row["problems"])),
        version=row["version"],
        enabled=bool(row["enabled"]),
        left_out=bool(row["left_out"]),
        suspended=bool(row["suspended"]),
        disabled_reason=row["disabled_reason"],
        failures=row["failures"],
        armed_at=instant(row["armed_at"]),
        quiet_at=instant_or_none(row["quiet_at"]),
        created_at=instant(row["created_at"]),
        created_by=row["created_by"],
        updated_at=instant(row["updated_at"]),
        paused=bool(row["paused"]),
    )
