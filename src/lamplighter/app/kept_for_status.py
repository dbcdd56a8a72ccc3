"""Keeps what the status of a stopped city needs of its configuration, which then need not be loaded for it."""

import contextlib

from lamplighter.adapters.files.questions import Answers, ask
from lamplighter.adapters.files.roster_file import keep_roster
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.environment import variables
from lamplighter.domain.city.wanted import Roster
from lamplighter.kit.shapes import to_json
from lamplighter.services.agents.seen import Known, agent_views
from lamplighter.store.url import SqliteUrl


def keep_for_status(
    city: OpenCity, known: Roster, *, answers: Answers | None = None, broken: str | None = None
) -> None:
    """Keep what `stopped_status` needs of this configuration; a failure to write costs only time later.

    `answers` tell which automation files were looked at, and `broken` what is wrong with them. Nothing is written into
    a copied city.
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
        "looked_at_automations": answers is not None,
        "broken": broken,
    }
    asked = {**known.loaded.answers, **(answers or {})}
    with contextlib.suppress(OSError):
        keep_roster(city.paths.roster, city.paths.root, city.settings.env, variables(), asked, roster)


def keep_with_automations(city: OpenCity, known: Roster) -> str | None:
    """The same after a look at the automation files, where they are not too many; returns what is wrong with them."""
    from lamplighter.app.automations import definitions_of  # it loads what runs commands; short commands do without

    layers = known.city.layers
    answers: Answers = {}
    for layer in dict.fromkeys([*layers.automations, *(one for rig in layers.rigs.values() for one in rig)]):
        ask(answers, "automations", layer)
    are_few = all(answer is not None for answer in answers.values())
    problems = definitions_of(known.city).problems if are_few else ()
    broken = "; ".join(str(one) for one in problems) or None
    keep_for_status(city, known, answers=answers, broken=broken)
    return broken
