"""The status of a stopped city from its records and from what was kept of its configuration, so that little is loaded.

Whatever is out of the ordinary (sessions, a quarantine, a daemon that died, a copied city, another database than
SQLite, a configuration that changed) is left to the operation `city.status`, which loads everything; both give the
same answer.
"""

import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lamplighter.adapters.files.city import CityPaths, city_at, find_city
from lamplighter.adapters.files.city_id import original_of
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.adapters.files.roster_file import kept_roster
from lamplighter.app.no_sessions import has_no_sessions
from lamplighter.app.settings import Settings
from lamplighter.app.status_shape import DOWN, in_order
from lamplighter.domain.cluster.places import where
from lamplighter.kit.clock import SystemClock, rfc3339
from lamplighter.services.records import recorded
from lamplighter.store.engine import PeekDb, peek
from lamplighter.store.summary import Summary

Rows = list[dict[str, Any]]


def stopped_status(settings: Settings) -> dict[str, Any] | None:
    """The shape of `lamp status --json`; None if it takes more than this to say."""
    paths = city_at(settings.city) if settings.city is not None else find_city(settings.cwd)
    if controller_pid(paths.lock) is not None or paths.rejected.exists() or _has_earlier_store(paths.runtime):
        return None
    if paths.pid_file.exists():
        return None
    roster = _usable(paths, settings)
    if roster is None:
        return None
    if original_of(paths.root, os.uname().nodename) is not None:
        return None
    city_id, now = paths.city_id(), SystemClock().now()
    found = peek(Path(roster["sqlite"]), lambda db: _looked(db, city_id, paths.root, roster, now))
    if found is None:
        return None
    return in_order(
        found
        | {
            "root": str(paths.root),
            "suspended": roster["suspended"],
            "controller": DOWN | {"problems": {"automations": roster["broken"]} if roster["broken"] else {}},
            "store": roster["store"],
        }
    )


def _usable(paths: CityPaths, settings: Settings) -> dict[str, Any] | None:
    """What was kept of the configuration, where it says enough of a city without sessions."""
    kept = kept_roster(paths.roster, paths.root, settings.env)
    if kept is None or not kept.get("looked_at_automations") or kept["sqlite"] is None:
        return None
    return kept if has_no_sessions(paths, kept["provider"], settings.env) else None


def _has_earlier_store(runtime: Path) -> bool:
    """Whether `store_record` may have to warn; it is not loaded for the answer, which nearly always is no."""
    try:
        return '"before": "' in (runtime / "store.json").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _looked(db: PeekDb, city_id: str, root: Path, roster: Mapping[str, Any], now: datetime) -> dict[str, Any] | None:
    known = Summary(db, city_id)
    agents = None if known.has_owners() else _agents(known, roster, now)
    return None if agents is None else recorded(known, root.name, now) | {"agents": agents, "nodes": _nodes(known)}


def _agents(known: Summary, roster: Mapping[str, Any], now: datetime) -> Rows | None:
    """The agents' rows; None if one of them is quarantined, or its times lie ahead of a clock that was set back."""
    most, window = roster["max_restarts"], timedelta(seconds=roster["restart_window_s"])
    starts = known.counted_starts(since=now - window)
    if any(latest > now or 0 < most <= count for count, latest in starts.values()):
        return None
    rows: Rows = roster["agents"]
    return [row | {"starts_in_window": starts[row["session"]][0]} if row["session"] in starts else row for row in rows]


def _nodes(known: Summary) -> Rows:
    """None of them has a living process."""
    return [
        {
            "name": node.name,
            "state": "lost" if node.state == "alive" else node.state,
            "since": rfc3339(node.since),
            "place": where(node.place),
            "rigs": list(node.rigs),
            "processes": [],
        }
        for node in known.nodes()
    ]
