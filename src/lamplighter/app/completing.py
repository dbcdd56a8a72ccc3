"""Names for the completion of command lines, each with a word about it: from the store and the files, and cheap."""

import json
from collections.abc import Callable

from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity, open_city
from lamplighter.kit import toml_text
from lamplighter.kit.errors import LampError

MOST = 100
SHORT = 6
"""So much of a run's id as tables show."""

Names = list[tuple[str, str]]


def names_of(settings: Settings, noun: str) -> Names:
    """What there is of that kind; nothing where the city cannot be read: a completion has nobody to tell it to."""
    try:
        city = open_city(settings)
        try:
            return _FINDERS[noun](city)
        finally:
            city.close()
    except (LampError, OSError, ValueError, KeyError, TypeError):
        return []


def _runs(city: OpenCity) -> Names:
    found = city.store.read(lambda tx: tx.runs.page(limit=MOST))
    told = [(one.id[-SHORT:], f"{one.automation}, {one.state.value}") for one in found]
    return [("last", "the newest"), *told] if told else []


def _automations(city: OpenCity) -> Names:
    rows = city.store.read(lambda tx: tx.automations.page(limit=1000))
    return [(one.scoped_name, "" if one.enabled else "disabled") for one in rows]


def _runs_or_automations(city: OpenCity) -> Names:
    return [*_runs(city), *((name, "its newest run") for name, _ in _automations(city))]


def _beads(city: OpenCity) -> Names:
    return [(one.id, one.title) for one in city.store.read(lambda tx: tx.beads.ready(limit=MOST))]


def _sessions(city: OpenCity) -> Names:
    return [(one.id[-SHORT:], one.name) for one in city.store.read(lambda tx: tx.sessions.latest(limit=MOST))]


def _bulks(city: OpenCity) -> Names:
    found = city.store.read(lambda tx: tx.bulk_actions.page(state=None, before=None, limit=MOST))
    told = [(one.id[-SHORT:], f"{one.action.value}, {one.state.value}") for one in found]
    return [("last", "the newest"), *told] if told else []


def _agents(city: OpenCity) -> Names:
    try:
        kept = json.loads(city.paths.roster.read_bytes())["roster"]["agents"]
        return [(one["name"], one.get("state") or "") for one in kept]
    except (OSError, ValueError, KeyError, TypeError):
        return _declared(city, "agents")


def _rigs(city: OpenCity) -> Names:
    return _declared(city, "rigs")


def _configurations(city: OpenCity) -> Names:
    stored = [(one.name, "") for one in city.store.read(lambda tx: tx.configurations.all())]
    return [*_declared(city, "configurations"), *stored]


def _presets(city: OpenCity) -> Names:
    from lamplighter.domain.sessions.presets.catalogue import PRESETS

    own = toml_text.parse(city.paths.config.read_text(encoding="utf-8-sig")).get("providers", {})
    return [*((name, "of this city") for name in own), *((name, "") for name in PRESETS)]


def _declared(city: OpenCity, section: str) -> Names:
    """As city.toml itself declares them."""
    tree = toml_text.parse(city.paths.config.read_text(encoding="utf-8-sig"))
    return [(one["name"], str(one.get("description") or one.get("path") or "")) for one in tree.get(section, [])]


_FINDERS: dict[str, Callable[[OpenCity], Names]] = {
    "run": _runs_or_automations,
    "automation": _automations,
    "bead": _beads,
    "session": _sessions,
    "bulk": _bulks,
    "agent": _agents,
    "rig": _rigs,
    "configuration": _configurations,
    "preset": _presets,
}
