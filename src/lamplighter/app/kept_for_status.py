"""Keeps what the status of a stopped city needs of its configuration, which then need not be loaded for it."""

import contextlib

from lamplighter.adapters.files.roster_file import keep_roster
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.environment import variables
from lamplighter.domain.city.wanted import Roster
from lamplighter.kit.shapes import to_json
from lamplighter.services.agents.seen import Known, agent_views
from lamplighter.store.url import SqliteUrl


def keep_for_status(city: OpenCity, known: Roster) -> None:
    """Keep what `stopped_status` needs of this configuration; a failure to write costs only time later.

    Nothing is written into a copied city.
    """
    if city.original is not None:
        return
    place, daemon = city.place, known.city.daemon
    roster = {
        "agents": to_json(agent_views(Known(known, {}, {}, {}, city.clock.now(), kept=False))),
        "suspended": known.city.workspace.suspended,
        "provider": known.city.session.provider,
        "store": str(place),
        "sqlite": str(place.path) if isinstance(place, SqliteUrl) else None,
        "max_restarts": daemon.max_restarts,
        "restart_window_s": daemon.restart_window.total_seconds(),
    }
    with contextlib.suppress(OSError):
        keep_roster(city.paths.roster, city.paths.root, city.settings.env, variables(), known.loaded.answers, roster)
