"""Names for the completion of command lines, each with a word about it: from the store and the files, and cheap.

A person waits for it at each Tab: runs and automations of a city on SQLite are read without opening the city.
"""

import json
from collections.abc import Callable
from pathlib import Path

from lamplighter.adapters.files.city import city_at, find_city
from lamplighter.adapters.files.roster_file import kept_roster
from lamplighter.app.settings import Settings
from lamplighter.kit.errors import LampError
from lamplighter.store.brief_lists import BriefLists
from lamplighter.store.engine import peek

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.app.wiring import OpenCity

MOST = 100
MOST_AUTOMATIONS = 1000
SHORT = 6
"""So much of a run's id as tables show."""

Names = list[tuple[str, str]]


def names_of(settings: Settings, noun: str) -> Names:
    """What there is of that kind; nothing where the city cannot be read: a completion has nobody to tell it to."""
    try:
        found = _peeked(settings, noun)
        if found is not None:
            return found
        from lamplighter.app.wiring import open_city

        city = open_city(settings)
        try:
            return _FINDERS[noun](city)
        finally:
            city.close()
    except (LampError, OSError, ValueError, KeyError, TypeError):
        return []


def _peeked(settings: Settings, noun: str) -> Names | None:
    """None for what more is needed for, or where the store is not known without reading the configuration."""
    list_names = _PEEKS.get(noun)
    if list_names is None:
        return None
    paths = city_at(settings.city) if settings.city is not None else find_city(settings.cwd)
    roster = kept_roster(paths.roster, paths.root, settings.env)
    if roster is None or roster["sqlite"] is None:
        return None
    city = paths.city_id()
    return peek(Path(roster["sqlite"]), lambda db: list_names(BriefLists(db, city)))


def _runs(lists: BriefLists) -> Names:
    told = [(run[-SHORT:], f"{automation}, {state}") for run, automation, state in lists.runs(limit=MOST)]
    return [("last", "the newest"), *told] if told else []


def _automations(lists: BriefLists) -> Names:
    return [(name, "" if enabled else "disabled") for name, enabled in lists.automations(limit=MOST_AUTOMATIONS)]


def _runs_or_automations(lists: BriefLists) -> Names:
    return [*_runs(lists), *((name, "its newest run") for name, _ in _automations(lists))]


_PEEKS: dict[str, Callable[[BriefLists], Names]] = {"run": _runs_or_automations, "automation": _automations}


def _in_store(noun: str) -> "Callable[[OpenCity], Names]":
    return lambda city: city.store.read(lambda tx: _PEEKS[noun](BriefLists(tx.db, tx.city)))


def _beads(city: "OpenCity") -> Names:
    return [(one.id, one.title) for one in city.store.read(lambda tx: tx.beads.ready(limit=MOST))]


def _sessions(city: "OpenCity") -> Names:
    return [(one.id[-SHORT:], one.name) for one in city.store.read(lambda tx: tx.sessions.latest(limit=MOST))]


def _bulks(city: "OpenCity") -> Names:
    found = city.store.read(lambda tx: tx.bulk_actions.page(state=None, before=None, limit=MOST))
    told = [(one.id[-SHORT:], f"{one.action.value}, {one.state.value}") for one in found]
    return [("last", "the newest"), *told] if told else []


def _agents(city: "OpenCity") -> Names:
    try:
        kept = json.loads(city.paths.roster.read_bytes())["roster"]["agents"]
        return [(one["name"], one.get("state") or "") for one in kept]
    except (OSError, ValueError, KeyError, TypeError):
        return _declared(city, "agents")


def _rigs(city: "OpenCity") -> Names:
    return _declared(city, "rigs")


def _configurations(city: "OpenCity") -> Names:
    stored = [(one.name, "") for one in city.store.read(lambda tx: tx.configurations.all())]
    return [*_declared(city, "configurations"), *stored]


def _presets(city: "OpenCity") -> Names:
    from lamplighter.domain.sessions.presets.catalogue import PRESETS
    from lamplighter.kit import toml_text

    own = toml_text.parse(city.paths.config.read_text(encoding="utf-8-sig")).get("providers", {})
    return [*((name, "of this city") for name in own), *((name, "") for name in PRESETS)]


def _declared(city: "OpenCity", section: str) -> Names:
    """As city.toml itself declares them."""
    from lamplighter.kit import toml_text

    tree = toml_text.parse(city.paths.config.read_text(encoding="utf-8-sig"))
    return [(one["name"], str(one.get("description") or one.get("path") or "")) for one in tree.get(section, [])]


_FINDERS: "dict[str, Callable[[OpenCity], Names]]" = {
    "run": _in_store("run"),
    "automation": _in_store("automation"),
    "bead": _beads,
    "session": _sessions,
    "bulk": _bulks,
    "agent": _agents,
    "rig": _rigs,
    "configuration": _configurations,
    "preset": _presets,
}
