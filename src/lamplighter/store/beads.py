"""Beads: rows in and out. Rules about them live in the services that call these methods."""

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from lamplighter.domain.beads.model import NOT_READY, Bead, BeadFilter, BeadStatus, NewBead
from lamplighter.domain.runs import tracking
from lamplighter.domain.runs.model import RunState
from lamplighter.store.engine import Db, Row, Write, instant, instant_or_none, stamp, stamp_or_none

INSERT = """
    INSERT INTO beads (city_id, id, title, type, status, assignee, sender, parent_id, root_id, ref, description,
                       metadata, ephemeral, run_id, created_at, updated_at, closed_at)
    VALUES (:city, :id, :title, :type, :status, :assignee, :sender, :parent, :root, :ref, :description,
            :metadata, :ephemeral, :run, :created, :updated, :closed)
    ON CONFLICT (city_id, id) DO NOTHING"""
# As INSERT, with only the columns that differ between tracking beads.
TRACK = Write(
    """
    INSERT INTO beads (city_id, id, title, type, status, sender, root_id, metadata, run_id, created_at, updated_at)
    SELECT :city, :id, :title, 'run', 'open', :sender, :id, :metadata, :run, :now, :now {each}
    WHERE true ON CONFLICT (city_id, id) DO NOTHING""",
    whole="now",
    json="metadata",
    first=True,
)
_COLUMNS = """
    SELECT id, title, type, status, assignee, sender, parent_id, root_id, ref, description, metadata, ephemeral, run_id,
           created_at, updated_at, closed_at FROM beads"""
GET = _COLUMNS + " WHERE city_id = :city AND id = :id"
LOCK = GET + " {for_update}"
# the primary key serves the first; the second reads its index, only where a person types the end of an id
BEGINNING = "SELECT id FROM beads WHERE city_id = :city AND id >= :low AND id < :high ORDER BY id LIMIT :limit"
ENDING = "SELECT id FROM beads WHERE city_id = :city AND id LIKE :pattern ORDER BY id LIMIT :limit"
ROOT_OF = "SELECT root_id FROM beads WHERE city_id = :city AND id = :id"
UPDATE = """
    UPDATE beads SET title = :title, type = :type, status = :status, assignee = :assignee, parent_id = :parent,
                     description = :description, metadata = :metadata, updated_at = :updated, closed_at = :closed
    WHERE city_id = :city AND id = :id"""
MOVE_SUBTREE = """
    WITH RECURSIVE below (id) AS (
        SELECT id FROM beads WHERE city_id = :city AND id = :id
        UNION SELECT beads.id FROM beads JOIN below ON beads.parent_id = below.id WHERE beads.city_id = :city)
    UPDATE beads SET root_id = :root WHERE city_id = :city AND id IN (SELECT id FROM below)"""
# the index beads_by_parent serves this
CHILDREN = _COLUMNS + " WHERE city_id = :city AND parent_id = :parent ORDER BY created_at, id"
OPEN_CHILD = """
    SELECT id FROM beads WHERE city_id = :city AND parent_id = :parent AND status <> 'closed' LIMIT 1"""
# Each filter has its own statement and index: beads_by_age, beads_by_status (which leaves out closed beads on
# PostgreSQL: those are found by age), bead_labels_by_label
LIST = _COLUMNS + " WHERE city_id = :city {where} ORDER BY created_at DESC, id DESC LIMIT :limit"
# index: beads_by_status, then the primary keys of bead_needs and beads
READY = (
    _COLUMNS
    + """ WHERE city_id = :city AND status = 'open' {where}
    AND NOT EXISTS (
        SELECT 1 FROM bead_needs AS n JOIN beads AS need ON need.city_id = n.city_id AND need.id = n.needs_id
        WHERE n.city_id = beads.city_id AND n.bead_id = beads.id AND need.status <> 'closed')
    ORDER BY created_at, id LIMIT :limit"""
)
UNMET = """
    SELECT need.id FROM bead_needs AS n JOIN beads AS need ON need.city_id = n.city_id AND need.id = n.needs_id
    WHERE n.city_id = :city AND n.bead_id = :id AND need.status <> 'closed' ORDER BY need.id"""
WAITS_FOR = """
    WITH RECURSIVE wanted (id) AS (
        SELECT needs_id FROM bead_needs WHERE city_id = :city AND bead_id = :start
        UNION SELECT n.needs_id FROM bead_needs AS n JOIN wanted ON n.bead_id = wanted.id WHERE n.city_id = :city)
    SELECT 1 AS found FROM wanted WHERE id = :goal LIMIT 1"""
# A bead that was deleted meanwhile gets no label. It is looked up row by row: a join would read all beads for a few.
ADD_LABEL = Write(
    """
    INSERT INTO bead_labels (city_id, bead_id, label) SELECT :city, :id, :label {each}
    WHERE (SELECT 1 FROM beads WHERE city_id = :city AND id = :id) = 1 ON CONFLICT DO NOTHING""",
    must=False,
)
CLOSE = Write(
    """
    UPDATE beads SET status = 'closed', updated_at = :now, closed_at = :now {each}
    WHERE city_id = :city AND id = :id AND closed_at IS NULL""",
    whole="now",
    key="id",
    must=False,
)
REMOVE_LABEL = "DELETE FROM bead_labels WHERE city_id = :city AND bead_id = :id AND label = :label"
ADD_NEED = """
    INSERT INTO bead_needs (city_id, bead_id, needs_id) VALUES (:city, :id, :need) ON CONFLICT DO NOTHING"""
REMOVE_NEED = "DELETE FROM bead_needs WHERE city_id = :city AND bead_id = :id AND needs_id = :need"
# The facts that give a run's tracking bead its labels; other beads, too, may name the run in which they were made.
TRACKED = "SELECT bead_id, automation, action, state FROM runs WHERE city_id = :city AND id {any:runs}"
LABELS_OF = """
    SELECT bead_id, label FROM bead_labels WHERE city_id = :city AND bead_id {any:ids} ORDER BY bead_id, label"""
NEEDS_OF = """
    SELECT bead_id, needs_id FROM bead_needs WHERE city_id = :city AND bead_id {any:ids} ORDER BY bead_id, needs_id"""
# the index beads_to_collect serves this; a bead that is being reopened at this moment is skipped
COLLECTABLE = """
    SELECT id FROM beads WHERE city_id = :city AND ephemeral = 1 AND closed_at IS NOT NULL AND closed_at < :before
    ORDER BY closed_at LIMIT :limit {skip_claimed}"""
DELETE_TREES = """
    WITH RECURSIVE below (id) AS (
        SELECT id FROM beads WHERE city_id = :city AND id {any:tops}
        UNION SELECT beads.id FROM beads JOIN below ON beads.parent_id = below.id WHERE beads.city_id = :city)
    DELETE FROM beads WHERE city_id = :city AND id IN (SELECT id FROM below)"""
# the index beads_by_status serves this
AT_WORK = """
    SELECT DISTINCT assignee FROM beads
    WHERE city_id = :city AND status = 'in_progress' AND assignee IS NOT NULL"""
# the indexes beads_by_assignee and bead_labels_by_label serve these
HELD = "SELECT id FROM beads WHERE city_id = :city AND assignee = :assignee AND status = 'in_progress' ORDER BY id"
WAITING = """
    SELECT count(*) AS count FROM bead_labels AS l JOIN beads AS b ON b.city_id = l.city_id AND b.id = l.bead_id
    WHERE l.city_id = :city AND l.label = :label AND b.status <> 'closed'"""


class Beads:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def insert(self, bead_id: str, new: NewBead, *, root: str, run: str | None, now: datetime) -> bool:
        """False when the id is taken."""
        return self.insert_whole(_new(bead_id, new, root=root, run=run, now=now))

    def track(self, bead_id: str, title: str, *, sender: str, run: str, now: datetime) -> bool:
        """Insert a tracking bead under an id long enough not to be taken.

        If it is taken: False on SQLite; on PostgreSQL the transaction function is run again.
        """
        return self._db.write(
            TRACK,
            self._city,
            {
                "id": bead_id,
                "title": title,
                "sender": sender,
                "metadata": {"run": run},
                "run": run,
                "now": stamp(now),
            },
        )

    def close(self, bead: str, now: datetime) -> None:
        """Close a tracking bead without reading it; does nothing for a bead that is closed or deleted."""
        self._db.write(CLOSE, self._city, {"id": bead, "now": stamp(now)})

    def insert_whole(self, bead: Bead) -> bool:
        """Insert a bead as it is, except for labels and needs; False when the id is taken."""
        return self._db.execute(INSERT, self._whole(bead)) == 1

    def _whole(self, bead: Bead) -> dict[str, Any]:
        return self._columns(bead) | {
            "sender": bead.sender,
            "root": bead.root,
            "ref": bead.ref,
            "ephemeral": int(bead.ephemeral),
            "run": bead.run,
            "created": stamp(bead.created_at),
        }

    def get(self, bead: str) -> Bead | None:
        return self._one(GET, bead)

    def like(self, text: str, *, limit: int) -> list[str]:
        """Ids that begin with the text, or whose part after the prefix does not differ from it."""
        if not re.fullmatch(r"[0-9a-z-]+", text):
            return []
        params = {"city": self._city, "limit": limit}
        found = self._db.rows(BEGINNING, params | {"low": text, "high": f"{text}~"})
        found += self._db.rows(ENDING, params | {"pattern": f"%-{text}"})
        return [row["id"] for row in found]

    def lock(self, bead: str) -> Bead | None:
        return self._one(LOCK, bead)

    def root_of(self, bead: str) -> str | None:
        row = self._db.row(ROOT_OF, {"city": self._city, "id": bead})
        return None if row is None else row["root_id"]

    def save(self, bead: Bead) -> None:
        """Write everything that may change, except for its root, labels and needs."""
        self._db.execute(UPDATE, self._columns(bead))

    def move_subtree(self, bead: str, root: str) -> None:
        self._db.execute(MOVE_SUBTREE, {"city": self._city, "id": bead, "root": root})

    def children(self, parent: str) -> list[Bead]:
        return self._beads(self._db.rows(CHILDREN, {"city": self._city, "parent": parent}))

    def has_open_child(self, parent: str) -> bool:
        return self._db.row(OPEN_CHILD, {"city": self._city, "parent": parent}) is not None

    def matching(self, wanted: BeadFilter, *, limit: int) -> list[Bead]:
        """The newest beads that pass, newest first."""
        where, params = _conditions(wanted)
        return self._page(LIST.replace("{where}", where), params, limit)

    def ready(self, *, label: str | None = None, assignee: str | None = None, limit: int) -> list[Bead]:
        """Open beads whose needs are all closed, oldest first; without bookkeeping and unrouted molecules or wisps."""
        where, params = _conditions(BeadFilter(label=label, assignee=assignee), tracking_too=False)
        hidden = ", ".join(f"'{name}'" for name in sorted(NOT_READY))
        where += f""" AND type NOT IN ({hidden})
            AND (type NOT IN ('molecule', 'wisp') OR assignee IS NOT NULL OR EXISTS (
                SELECT 1 FROM bead_labels AS l WHERE l.city_id = beads.city_id AND l.bead_id = beads.id
                AND l.label >= 'pool:' AND l.label < 'pool;'))"""
        return self._page(READY.replace("{where}", where), params, limit)

    def unmet_needs(self, bead: str) -> list[str]:
        return [row["id"] for row in self._db.rows(UNMET, {"city": self._city, "id": bead})]

    def waits_for(self, start: str, goal: str) -> bool:
        """Whether `start` needs `goal`, directly or through others."""
        return self._db.row(WAITS_FOR, {"city": self._city, "start": start, "goal": goal}) is not None

    def add_labels(self, bead: str, labels: Iterable[str]) -> None:
        for label in labels:
            self._db.write(ADD_LABEL, self._city, {"id": bead, "label": label})

    def given_labels(self, bead: Bead) -> tuple[str, ...]:
        """The labels that its run gives it; empty for a bead that tracks no run."""
        return self._tracked([{"run_id": bead.run}]).get(bead.id, ())

    def remove_labels(self, bead: str, labels: Iterable[str]) -> None:
        for label in labels:
            self._db.execute(REMOVE_LABEL, {"city": self._city, "id": bead, "label": label})

    def add_needs(self, bead: str, needs: Iterable[str]) -> None:
        for need in needs:
            self._db.execute(ADD_NEED, {"city": self._city, "id": bead, "need": need})

    def remove_needs(self, bead: str, needs: Iterable[str]) -> None:
        for need in needs:
            self._db.execute(REMOVE_NEED, {"city": self._city, "id": bead, "need": need})

    def collectable(self, *, before: datetime, limit: int) -> list[str]:
        params = {"city": self._city, "before": stamp(before), "limit": limit}
        return [row["id"] for row in self._db.rows(COLLECTABLE, params)]

    def delete_trees(self, tops: list[str]) -> None:
        """Delete these with everything below them."""
        self._db.execute(DELETE_TREES, {"city": self._city, "tops": json.dumps(tops)})

    def at_work(self) -> frozenset[str]:
        """The assignees of all beads in progress."""
        return frozenset(row["assignee"] for row in self._db.rows(AT_WORK, {"city": self._city}))

    def held_by(self, assignee: str) -> list[str]:
        return [row["id"] for row in self._db.rows(HELD, {"city": self._city, "assignee": assignee})]

    def waiting(self, label: str) -> int:
        """How many beads with that label are open or in progress."""
        row = self._db.row(WAITING, {"city": self._city, "label": label})
        return 0 if row is None else row["count"]

    def _columns(self, bead: Bead) -> dict[str, Any]:
        return {
            "city": self._city,
            "id": bead.id,
            "title": bead.title,
            "type": bead.type,
            "status": bead.status.value,
            "assignee": bead.assignee,
            "parent": bead.parent,
            "description": bead.description,
            "metadata": json.dumps(dict(bead.metadata)),
            "updated": stamp(bead.updated_at),
            "closed": stamp_or_none(bead.closed_at),
        }

    def _one(self, sql: str, bead: str) -> Bead | None:
        row = self._db.row(sql, {"city": self._city, "id": bead})
        return None if row is None else self._beads([row])[0]

    def _page(self, sql: str, params: dict[str, Any], limit: int) -> list[Bead]:
        return self._beads(self._db.rows(sql, params | {"city": self._city, "limit": limit}))

    def _beads(self, rows: list[Row]) -> list[Bead]:
        if not rows:
            return []
        ids = {"city": self._city, "ids": json.dumps([row["id"] for row in rows])}
        labels = _grouped(self._db.rows(LABELS_OF, ids), "label")
        for bead, given in self._tracked(rows).items():
            labels[bead] = tuple(sorted({*labels.get(bead, ()), *given}))
        needs = _grouped(self._db.rows(NEEDS_OF, ids), "needs_id")
        return [_bead(row, labels.get(row["id"], ()), needs.get(row["id"], ())) for row in rows]

    def _tracked(self, rows: list[Row]) -> dict[str, tuple[str, ...]]:
        """The labels that the runs named in `rows` give to their tracking beads, by bead id."""
        runs = {row["run_id"] for row in rows if row["run_id"] is not None}
        if not runs:
            return {}
        found = self._db.rows(TRACKED, {"city": self._city, "runs": json.dumps(sorted(runs))})
        return {row["bead_id"]: tracking.labels(row["automation"], row["action"], RunState(row["state"]))
                for row in found}  # fmt: skip


def _new(bead_id: str, new: NewBead, *, root: str, run: str | None, now: datetime) -> Bead:
    return Bead(
        id=bead_id,
        title=new.title,
        type=new.type,
        status=BeadStatus.OPEN,
        labels=(),
        assignee=new.assignee or None,
        sender=new.sender or None,
        parent=new.parent,
        root=root,
        needs=(),
        ref=new.ref,
        description=new.description,
        metadata=new.metadata,
        ephemeral=new.ephemeral,
        run=run,
        created_at=now,
        updated_at=now,
        closed_at=None,
    )


def _conditions(wanted: BeadFilter, *, tracking_too: bool = True) -> tuple[str, dict[str, Any]]:
    clauses: list[str] = []
    params: dict[str, Any] = {}
    columns = {"status": wanted.status, "type": wanted.type, "assignee": wanted.assignee, "parent_id": wanted.parent}
    for column, value in columns.items():
        if value is not None:
            clauses.append(f"AND {column} = :{column}")
            params[column] = str(value)
    if wanted.label is not None:
        runs = tracking.labelled(wanted.label) if tracking_too else None
        where, given = _with_label(wanted.label, runs, alone=not clauses)
        clauses.append(where)
        params |= given
    return " ".join(clauses), params


def _with_label(label: str, runs: tracking.Labelled | None, *, alone: bool) -> tuple[str, dict[str, Any]]:
    """The condition for beads that have the label themselves, or that get it from their run, which is one of `runs`.

    If the label is the only condition (`alone`), the newest runs up to the page's limit are enough.
    """
    own = "SELECT bead_id FROM bead_labels WHERE bead_labels.city_id = :city AND label = :label"
    if runs is None:
        return f"AND id IN ({own})", {"label": label}
    params = {"label": label}
    if runs.automation is not None:  # the index runs_of serves this
        where, params = "automation = :automation", params | {"automation": runs.automation}
    elif runs.states:  # the index runs_by_state serves this
        states = ", ".join(f"'{state}'" for state in sorted(runs.states))
        where = f"action = '{runs.action}' AND state IN ({states})"
    elif runs.action == "exec":  # the primary key serves this: most runs are exec
        where = "action = 'exec'"
    else:  # the index runs_of_action serves this
        where = f"action = '{runs.action}' AND action <> 'exec'"
    given = f"SELECT bead_id FROM runs WHERE city_id = :city AND {where} AND bead_id IS NOT NULL"
    if alone:
        given = f"SELECT bead_id FROM ({given} ORDER BY id DESC LIMIT :limit) AS newest"
    return f"AND id IN ({own} UNION ALL {given})", params


def _grouped(rows: list[Row], column: str) -> dict[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(row["bead_id"], []).append(row[column])
    return {bead: tuple(values) for bead, values in groups.items()}


def _bead(row: Row, labels: tuple[str, ...], needs: tuple[str, ...]) -> Bead:
    return Bead(
        id=row["id"],
        title=row["title"],
        type=row["type"],
        status=BeadStatus(row["status"]),
        labels=labels,
        assignee=row["assignee"],
        sender=row["sender"],
        parent=row["parent_id"],
        root=row["root_id"],
        needs=needs,
        ref=row["ref"],
        description=row["description"],
        metadata=json.loads(row["metadata"]),
        ephemeral=bool(row["ephemeral"]),
        run=row["run_id"],
        created_at=instant(row["created_at"]),
        updated_at=instant(row["updated_at"]),
        closed_at=instant_or_none(row["closed_at"]),
    )
