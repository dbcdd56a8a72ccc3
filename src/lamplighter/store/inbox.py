"""Inbox items: what needs a person, one open item for each fingerprint; and who has seen which."""

import json
from collections.abc import Iterable
from datetime import datetime

from lamplighter.domain.inbox.items import COUNTING, InboxItem, State
from lamplighter.store.engine import Db, Write, stamp
from lamplighter.store.tables import Table

ITEMS = Table(InboxItem)
_COLUMNS = ITEMS.listed()
NEW = (
    "id", "kind", "fingerprint", "subject", "facts", "state", "opened_at", "first_at", "last_at", "count", "last_run",
)  # fmt: skip
CHANGING = tuple(name for name in ITEMS.names if name not in {"id", "kind", "fingerprint", "subject", "opened_at"})
# the unique index inbox_open serves this: where there is an open item, nothing is written and no row is locked
OPEN = Write(
    f"""
    INSERT INTO inbox_items (city_id, {ITEMS.listed(*NEW)}) SELECT :city, {ITEMS.given(*NEW)} {{each}} WHERE true
    ON CONFLICT (city_id, fingerprint) WHERE state = 'open' DO NOTHING""",
    whole=ITEMS.whole(*NEW),
    must=False,
)
# the same, unless an item that was opened at that time or later was settled already
OPEN_LEFT_OUT = f"""
    INSERT INTO inbox_items (city_id, {ITEMS.listed(*NEW)}) SELECT :city, {ITEMS.given(*NEW)}
    WHERE NOT EXISTS (SELECT 1 FROM inbox_items AS known WHERE known.city_id = :city
        AND known.fingerprint = :fingerprint AND known.settled_at >= :since)
    ON CONFLICT (city_id, fingerprint) WHERE state = 'open' DO NOTHING"""
SAVE = f"UPDATE inbox_items SET {ITEMS.assigned(*CHANGING)} WHERE city_id = :city AND id = :id"
GET = f"SELECT {_COLUMNS} FROM inbox_items WHERE city_id = :city AND id = :id"
LOCK = GET + " {for_update}"
# the primary key serves this
NAMED = f"""
    SELECT {_COLUMNS} FROM inbox_items WHERE city_id = :city AND id >= :first AND id < :last ORDER BY id LIMIT 2"""
# the index inbox_open serves these
OF_FINGERPRINT = f"""
    SELECT {_COLUMNS} FROM inbox_items WHERE city_id = :city AND fingerprint = :fingerprint AND state = 'open'"""
OPEN_ONES = f"""
    SELECT {_COLUMNS} FROM inbox_items WHERE city_id = :city AND state = 'open' AND fingerprint > :after
    ORDER BY fingerprint LIMIT :limit"""
# the primary key serves this
PAGE = f"""
    SELECT {_COLUMNS} FROM inbox_items WHERE city_id = :city AND id < :before {{where}} ORDER BY id DESC LIMIT :limit"""
# the index inbox_of_subject serves this
SETTLE_OF_SUBJECT = """
    UPDATE inbox_items SET state = 'settled', settled_at = :now, settled_by = :by, settled_how = :how
    WHERE city_id = :city AND subject = :subject AND state = 'open' AND kind {any:kinds}"""
# the index inbox_of_fingerprint serves this
SETTLED_UNTIL = """
    SELECT max(settled_at) AS at FROM inbox_items WHERE city_id = :city AND fingerprint = :fingerprint"""
# the index runs_by_fingerprint serves this, then inbox_of_fingerprint
LEFT_OUT = """
    SELECT runs.fingerprint AS fingerprint, max(runs.ended_at) AS last FROM runs
    WHERE runs.city_id = :city AND runs.fingerprint > :after AND runs.fingerprint IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM inbox_items WHERE inbox_items.city_id = :city AND inbox_items.fingerprint = runs.fingerprint
        AND (inbox_items.state = 'open' OR inbox_items.settled_at >= runs.ended_at))
    GROUP BY runs.fingerprint ORDER BY runs.fingerprint LIMIT :limit"""
# the index inbox_to_tell serves these
TO_TELL = f"""
    SELECT {_COLUMNS} FROM inbox_items WHERE city_id = :city AND told <> state
    AND (told <> '{COUNTING}' OR state <> 'open') ORDER BY id LIMIT :limit {{skip_claimed}}"""
COUNTED = f"""
    SELECT {_COLUMNS} FROM inbox_items WHERE city_id = :city AND told <> state
    AND told = '{COUNTING}' AND id > :after ORDER BY id LIMIT :limit {{skip_claimed}}"""
# the index inbox_settled serves this
PRUNE = """
    DELETE FROM inbox_items WHERE city_id = :city AND id IN (
        SELECT id FROM inbox_items WHERE city_id = :city AND state = 'settled' AND settled_at < :before
        ORDER BY settled_at LIMIT :limit)"""
SEE = """
    INSERT INTO seen (city_id, item_id, person, at) VALUES (:city, :item, :person, :at)
    ON CONFLICT (city_id, item_id, person) DO UPDATE SET at = excluded.at"""
SEEN = "SELECT item_id FROM seen WHERE city_id = :city AND person = :person AND item_id {any:items}"

_new = ITEMS.writer(*NEW)
_saved = ITEMS.writer("id", *CHANGING)


class Inbox:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city
        self._opened: set[str] = set()

    def open(self, item: InboxItem) -> None:
        """Insert the item; nothing where an open one of its fingerprint is there. No row is read, locked or changed."""
        self._opened.add(item.fingerprint)
        self._db.write(OPEN, self._city, _new(item))

    def has_opened(self, fingerprint: str) -> bool:
        """Whether this transaction has seen to it that there is an open item of the fingerprint."""
        return fingerprint in self._opened

    def open_left_out(self, item: InboxItem, *, since: datetime) -> bool:
        """As `open`, unless an item of its fingerprint was settled at `since` or later; False if nothing was opened."""
        params = _new(item) | {"city": self._city, "since": stamp(since)}
        return self._db.execute(OPEN_LEFT_OUT, params) == 1

    def save(self, item: InboxItem) -> None:
        """Write all that can change of an item whose row the caller has locked."""
        self._opened.discard(item.fingerprint)
        self._db.execute(SAVE, _saved(item) | {"city": self._city})

    def get(self, item: str) -> InboxItem | None:
        return self._one(GET, {"id": item})

    def lock(self, item: str) -> InboxItem | None:
        return self._one(LOCK, {"id": item})

    def named(self, prefix: str) -> list[InboxItem]:
        """At most two items whose id begins so."""
        return self._many(NAMED, {"first": prefix, "last": f"{prefix}~"})

    def lock_open(self, fingerprint: str) -> InboxItem | None:
        """The open item of the fingerprint, locked."""
        return self._one(OF_FINGERPRINT + " {for_update}", {"fingerprint": fingerprint})

    def open_of(self, fingerprint: str) -> InboxItem | None:
        return self._one(OF_FINGERPRINT, {"fingerprint": fingerprint})

    def open_ones(self, *, after: str = "", limit: int = 500) -> list[InboxItem]:
        """In order of their fingerprints, from `after` on."""
        return self._many(OPEN_ONES, {"after": after, "limit": limit})

    def page(self, *, state: State | None = None, before: str | None = None, limit: int = 50) -> list[InboxItem]:
        """Newest first; `before` is the last id of the previous page."""
        where, params = "", {"before": before or "~", "limit": limit}
        if state is not None:
            where, params = "AND state = :state", params | {"state": state.value}
        return self._many(PAGE.replace("{where}", where), params)

    def settle_of_subject(self, subject: str, kinds: Iterable[str], *, by: str, how: str, now: datetime) -> int:
        """Settle the open items of these kinds about `subject`; returns how many."""
        self._opened.clear()
        params = {"subject": subject, "kinds": json.dumps(sorted(kinds)), "by": by, "how": how, "now": stamp(now)}
        return self._db.execute(SETTLE_OF_SUBJECT, params | {"city": self._city})

    def settled_until(self, fingerprint: str) -> int | None:
        """When an item of the fingerprint was last settled: what came until then is no longer its matter."""
        row = self._db.row(SETTLED_UNTIL, {"city": self._city, "fingerprint": fingerprint})
        return None if row is None else row["at"]

    def left_out(self, *, after: str, limit: int) -> list[str]:
        """Fingerprints of runs that no item stands for, in order, from `after` on."""
        rows = self._db.rows(LEFT_OUT, {"city": self._city, "after": after, "limit": limit})
        return [row["fingerprint"] for row in rows]

    def to_tell(self, *, limit: int) -> list[InboxItem]:
        """Items whose state nobody has been told of, locked."""
        return self._many(TO_TELL, {"limit": limit})

    def counting(self, *, after: str, limit: int) -> list[InboxItem]:
        """Items that are told of once they have happened more often, by id from `after` on, locked.

        One that was settled meanwhile may be among them.
        """
        return self._many(COUNTED, {"after": after, "limit": limit})

    def prune(self, *, before: datetime, limit: int) -> int:
        return self._db.execute(PRUNE, {"city": self._city, "before": stamp(before), "limit": limit})

    def see(self, item: str, person: str, now: datetime) -> None:
        """May be repeated."""
        self._db.execute(SEE, {"city": self._city, "item": item, "person": person, "at": stamp(now)})

    def seen(self, items: Iterable[str], person: str) -> set[str]:
        """Which of these items the person has seen."""
        rows = self._db.rows(SEEN, {"city": self._city, "person": person, "items": json.dumps(sorted(items))})
        return {row["item_id"] for row in rows}

    def _one(self, sql: str, params: dict[str, object]) -> InboxItem | None:
        row = self._db.row(sql, params | {"city": self._city})
        return None if row is None else ITEMS.read(row)

    def _many(self, sql: str, params: dict[str, object]) -> list[InboxItem]:
        return [ITEMS.read(row) for row in self._db.rows(sql, params | {"city": self._city})]
