"""Nodes by name: where they are, which rigs they hold, and whether they are alive, stopped or lost."""

import json
from datetime import datetime

from lamplighter.domain.cluster.nodes import Node, NodeState
from lamplighter.store.engine import Db, Row, instant, stamp
from lamplighter.store.summary import NODES

PUT = """
    INSERT INTO nodes (city_id, name, place, rigs, state, since) VALUES (:city, :name, :place, :rigs, :state, :since)
    ON CONFLICT (city_id, name) DO UPDATE
    SET place = excluded.place, rigs = excluded.rigs, state = excluded.state, since = excluded.since"""
MARK = "UPDATE nodes SET state = :state, since = :since WHERE city_id = :city AND name = :name"
REMOVE = "DELETE FROM nodes WHERE city_id = :city AND name = :name"
PRUNE = """
    DELETE FROM nodes WHERE city_id = :city AND state <> 'alive' AND since < :before AND NOT EXISTS (
        SELECT 1 FROM runs WHERE runs.city_id = :city AND runs.state = 'running' AND runs.node = nodes.name)"""


class Nodes:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def put(self, node: Node) -> None:
        params = {"city": self._city, "name": node.name, "place": node.place, "rigs": json.dumps(node.rigs),
                  "state": node.state.value, "since": stamp(node.since)}  # fmt: skip
        self._db.execute(PUT, params)

    def all(self) -> list[Node]:
        return [_node(row) for row in self._db.rows(NODES, {"city": self._city})]

    def mark(self, name: str, state: NodeState, now: datetime) -> None:
        self._db.execute(MARK, {"city": self._city, "name": name, "state": state.value, "since": stamp(now)})

    def remove(self, name: str) -> None:
        self._db.execute(REMOVE, {"city": self._city, "name": name})

    def prune(self, *, before: datetime) -> int:
        """Delete nodes that stopped or were lost before `before` and on which no run is running."""
        return self._db.execute(PRUNE, {"city": self._city, "before": stamp(before)})


def _node(row: Row) -> Node:
    rigs = tuple(json.loads(row["rigs"]))
    return Node(row["name"], row["place"], rigs, NodeState(row["state"]), instant(row["since"]))
