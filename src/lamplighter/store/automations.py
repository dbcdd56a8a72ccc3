"""Automations: one row per definition; those from files and those stored by other means are in one list."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime

from lamplighter.kit.records import record
from lamplighter.store.engine import Db, NotAsExpected, Write, stamp, stamp_or_none
from lamplighter.store.tables import Table


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
    quiet_since: datetime | None = None
    """When it was last told that it has gone quiet; no longer true once `quiet_at` is set again."""
    paused: bool = False
    """Its city is paused: read from the city's row, never written with the automation."""

    @property
    def armed(self) -> bool:
        """Whether its triggers are looked at. Those of a suspended one are, so that what they skip is recorded."""
        return self.enabled and not self.left_out and self.definition is not None


AUTOMATIONS = Table(AutomationRow)
KEPT = tuple(name for name in AUTOMATIONS.names if name != "paused")
CHANGING = tuple(name for name in KEPT if name not in {"id", "version", "created_at", "created_by"})
# Whether the city is paused is read with every row: each reader of an automation asks whether it may run.
_READ = f"""
    {AUTOMATIONS.listed(*KEPT)},
    (SELECT paused_at IS NOT NULL FROM cities WHERE id = automations.city_id) AS paused"""
INSERT = f"""
    INSERT INTO automations (city_id, {AUTOMATIONS.listed(*KEPT)}) VALUES (:city, {AUTOMATIONS.given(*KEPT)})
    ON CONFLICT (city_id, scoped_name) DO NOTHING"""
UPDATE = f"""
    UPDATE automations SET {AUTOMATIONS.assigned(*CHANGING)}, version = version + 1
    WHERE city_id = :city AND id = :id"""
GET = f"SELECT {_READ} FROM automations WHERE city_id = :city AND id = :id"
LOCK = GET + " {for_update}"
NAMED = f"SELECT {_READ} FROM automations WHERE city_id = :city AND scoped_name = :name"
IS_THERE = "SELECT 1 AS found FROM automations WHERE city_id = :city AND scoped_name = :name"
LOCK_NAMED = NAMED + " {for_update}"
# In order of ids: every process locks rows in this order.
SOME = f"SELECT {_READ} FROM automations WHERE city_id = :city AND id {{any:wanted}} ORDER BY id"
SOME_NAMED = f"SELECT {_READ} FROM automations WHERE city_id = :city AND scoped_name {{any:wanted}} ORDER BY id"
# reads all of them: only asked before a connection is deleted or shown
NAMING = f"SELECT {_READ} FROM automations WHERE city_id = :city AND definition LIKE :pattern ORDER BY id"
LIST = f"""
    SELECT {_READ} FROM automations WHERE city_id = :city AND scoped_name > :after
    ORDER BY scoped_name LIMIT :limit"""
LIST_OF_RIG = f"""
    SELECT {_READ} FROM automations WHERE city_id = :city AND scoped_name > :after AND rig = :rig
    ORDER BY scoped_name LIMIT :limit"""
# the index of scoped names serves this; the words are looked for in all of them
WITH_WORDS = """
    SELECT scoped_name, enabled FROM automations WHERE city_id = :city{words}
    ORDER BY scoped_name LIMIT :limit"""
OF_FILES = f"SELECT {_READ} FROM automations WHERE city_id = :city AND source = 'file' ORDER BY scoped_name"
DELETE = "DELETE FROM automations WHERE city_id = :city AND id = :id"
COUNT_FAILURE = Write(
    "UPDATE automations SET failures = :failures {each} WHERE city_id = :city AND id = :id",
    whole="failures",
    key="id",
    must=False,
)
SET_QUIET = "UPDATE automations SET quiet_at = :at, quiet_since = :since WHERE city_id = :city AND id = :id"
# the index automations_quiet serves this
QUIET = f"""
    SELECT {_READ} FROM automations WHERE city_id = :city AND quiet_at IS NOT NULL AND quiet_at <= :now
    ORDER BY quiet_at LIMIT :limit {{skip_claimed}}"""
# the index automations_noted serves this
NOTED = f"""
    SELECT {_READ} FROM automations WHERE city_id = :city AND id > :after
        AND (quiet_since IS NOT NULL OR disabled_reason <> '' OR problems <> '[]' OR source = 'agent')
    ORDER BY id LIMIT :limit"""


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


_written = AUTOMATIONS.writer(*KEPT)

Stays = Callable[[AutomationRow], bool]


class Automations:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

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

    def is_there(self, scoped_name: str) -> bool:
        return self._db.row(IS_THERE, {"city": self._city, "name": scoped_name}) is not None

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

    def naming(self, connection: str) -> list[AutomationRow]:
        """Those whose definition has this text in it, which may be the name of something else."""
        return self._many(NAMING, {"pattern": f'%"{connection}"%'})

    def page(self, *, after: str = "", limit: int = 500, rig: str | None = None) -> list[AutomationRow]:
        """In order of their scoped names; with `rig`, only those of that rig."""
        if rig is not None:
            return self._many(LIST_OF_RIG, {"after": after, "limit": limit, "rig": rig})
        return self._many(LIST, {"after": after, "limit": limit})

    def with_words(self, words: Iterable[str], *, limit: int) -> list[tuple[str, bool]]:
        """Scoped names that have every word in them, whatever the case, and whether each is enabled."""
        patterns = {f"word{at}": f"%{_escaped(word.lower())}%" for at, word in enumerate(words)}
        where = "".join(f" AND LOWER(scoped_name) LIKE :{name} ESCAPE '!'" for name in patterns)
        params = {"city": self._city, "limit": limit, **patterns}
        found = self._db.rows(WITH_WORDS.replace("{words}", where), params)
        return [(row["scoped_name"], bool(row["enabled"])) for row in found]

    def of_files(self) -> list[AutomationRow]:
        return self._many(OF_FILES, {})

    def delete(self, automation: str) -> bool:
        return self._db.execute(DELETE, {"city": self._city, "id": automation}) == 1

    def count_failures(self, automation: str, failures: int) -> None:
        self._db.write(COUNT_FAILURE, self._city, {"id": automation, "failures": failures})

    def set_quiet(self, automation: str, at: datetime | None, *, since: datetime | None = None) -> None:
        """When its silence is to be told; or with `since`, that it was told just now."""
        params = {"city": self._city, "id": automation, "at": stamp_or_none(at), "since": stamp_or_none(since)}
        self._db.execute(SET_QUIET, params)

    def noted(self, *, after: str = "", limit: int = 500) -> list[AutomationRow]:
        """Those that may need a person: gone quiet, disabled for a reason, broken, or made by an agent."""
        return self._many(NOTED, {"after": after, "limit": limit})

    def quiet(self, now: datetime, *, limit: int) -> list[AutomationRow]:
        """Those whose silence is to be reported now, locked."""
        return self._many(QUIET, {"now": stamp(now), "limit": limit})

    def _one(self, sql: str, params: dict[str, object]) -> AutomationRow | None:
        row = self._db.row(sql, params | {"city": self._city})
        return None if row is None else AUTOMATIONS.read(row)

    def _many(self, sql: str, params: dict[str, object]) -> list[AutomationRow]:
        return [AUTOMATIONS.read(row) for row in self._db.rows(sql, params | {"city": self._city})]

    def _locked(self, one: str, some: str, wanted: Iterable[str], stays: Stays | None) -> list[AutomationRow]:
        asked = sorted(set(wanted))
        params: dict[str, object]
        if len(asked) == 1:  # its own statement is cheaper
            sql, params = one, {"id": asked[0], "name": asked[0]}
        else:
            sql, params = some, {"wanted": json.dumps(asked)}
        if stays is None or not self._db.dialect.locks_rows:
            return self._many(sql + " {for_update}", params)
        hints = [self._db.hints.get((stays, self._city, name)) for name in asked]
        shared = all(hints) if None not in hints else all(map(stays, self._many(sql, params)))
        rows = self._many(sql + (" {for_share}" if shared else " {for_update}"), params)
        changing = {name for row in rows if not stays(row) for name in (row.id, row.scoped_name)}
        self._db.hints.keep({(stays, self._city, name): name not in changing for name in asked})
        if shared and changing:  # not upgraded to exclusive: two holders that both try would deadlock
            raise NotAsExpected(sql)
        return rows

    def _params(self, row: AutomationRow) -> dict[str, object]:
        return {"city": self._city, **_written(row)}
