"""Resolves definitions across layers: which one wins, how the city's file overrides it, and which problems remain.

A layer is a directory of definitions. A later layer's definition completely replaces an earlier one and keeps its
position in the list; an invalid definition still hides those below it, so that no lower one returns unnoticed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from lamplighter.domain.automations.decode import Invalid, Origin, decode_file
from lamplighter.domain.automations.decode_triggers import TRIGGER_KEYS
from lamplighter.domain.automations.model import Automation
from lamplighter.domain.automations.reading import Problem, Reader
from lamplighter.kit.durations import format_duration
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.records import record

OVERRIDABLE = frozenset({"enabled", "gate", "interval", "schedule", "check", "on", "pool", "timeout"})

_NOT_HERE = "cannot be overridden; put a definition of the same name into a higher layer"

_IN_FILE = "change them in its file"


@record
class Found:
    """One file as read: its tree, or the reason why it could not be parsed."""

    name: str
    path: str
    tree: Mapping[str, Any] | None
    error: str = ""


@record
class Layer:
    """The files of one directory; if `rig` is None they belong to the city."""

    files: tuple[Found, ...]
    rig: str | None = None


@record
class Override:
    """What the city's file changes about one name: in one rig, or, if `rig` is None, wherever the name is defined.

    A value of None leaves the key as it is; a duration may be text or a timedelta.
    """

    name: str
    values: Mapping[str, Any]
    rig: str | None = None
    place: str = "automations.overrides"

    def keys(self) -> dict[str, Any]:
        given = {key: value for key, value in self.values.items() if value is not None}
        return {key: format_duration(value) if isinstance(value, timedelta) else value for key, value in given.items()}


class Standing(StrEnum):
    READY = "ready"
    DISABLED = "disabled"
    SKIPPED = "skipped"


@record
class Defined:
    """A valid definition that won, and whether it may fire; those that may not fire are listed too."""

    automation: Automation
    standing: Standing
    hides: tuple[str, ...] = ()


@record
class FileProblem:
    """`name` and `rig` identify the definition that it makes invalid; None for problems in the city's own file."""

    path: str
    key: str
    message: str
    name: str | None = None
    rig: str | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.key}: {self.message}" if self.key else f"{self.path}: {self.message}"


@record
class Definitions:
    defined: tuple[Defined, ...] = ()
    problems: tuple[FileProblem, ...] = ()

    def named(self, scoped_name: str) -> Defined | None:
        return next((one for one in self.defined if one.automation.scoped_name == scoped_name), None)


@dataclass
class _Slot:
    found: Found
    rig: str | None
    hides: list[str] = field(default_factory=list)


def resolve(layers: Iterable[Layer], *, skip: Iterable[str] = (), overrides: Iterable[Override] = ()) -> Definitions:
    """The definitions that win. `layers` go from lowest to highest; layers of the city and of each rig are separate."""
    slots = _winners(layers)
    problems: list[FileProblem] = []
    wanted = list(overrides)
    skipped = frozenset(skip)
    defined: list[Defined] = []
    for (rig, name), slot in slots.items():
        mine = [one for one in wanted if one.name == name and one.rig in {rig, None}]
        automation = _decoded(slot, mine, problems)
        if automation is not None:
            defined.append(Defined(automation, _standing(automation, skipped), tuple(slot.hides)))
    problems.extend(_unmatched(wanted, set(slots)))
    problems.extend(_unknown_skips(skipped, {name for _, name in slots}))
    return Definitions(tuple(defined), tuple(problems))


def _winners(layers: Iterable[Layer]) -> dict[tuple[str | None, str], _Slot]:
    slots: dict[tuple[str | None, str], _Slot] = {}
    for layer in layers:
        for found in layer.files:
            slot = slots.get((layer.rig, found.name))
            if slot is None:
                slots[layer.rig, found.name] = _Slot(found, layer.rig)
            else:
                slot.hides.append(slot.found.path)
                slot.found = found
    return slots


def _decoded(slot: _Slot, overrides: list[Override], problems: list[FileProblem]) -> Automation | None:
    found = slot.found
    if found.tree is None:
        problems.append(FileProblem(found.path, "", found.error, found.name, slot.rig))
        return None
    origin = Origin("file", found.name, slot.rig, found.path)
    decoded = decode_file(found.tree, origin)
    if isinstance(decoded, Invalid):
        problems.extend(FileProblem(found.path, one.key, one.message, found.name, slot.rig) for one in decoded.problems)
        return None
    tree = found.tree
    for override in overrides:
        changed = _overridden(tree, override, origin)
        if isinstance(changed, Automation):
            decoded, tree = changed, _merged(tree, override)
        else:  # reported at the override's place; the definition stays unchanged
            problems.extend(FileProblem("city.toml", _at(override, one.key), one.message) for one in changed)
    return decoded


def _overridden(tree: Mapping[str, Any], override: Override, origin: Origin) -> Automation | tuple[Problem, ...]:
    known = Reader(override.keys(), "")
    known.refuse_unknown(OVERRIDABLE, dict.fromkeys(("exec", "formula", "agent", "description", "triggers"), _NOT_HERE))
    several = _triggers_of(tree)
    if several > 1:
        for key in sorted(TRIGGER_KEYS & set(override.keys())):
            known.problem(key, f"the automation has {several} triggers, and this would not say which; {_IN_FILE}")
    if known.problems:
        return tuple(known.problems)
    decoded = decode_file(_merged(tree, override), origin)
    return decoded.problems if isinstance(decoded, Invalid) else decoded


def _triggers_of(tree: Mapping[str, Any]) -> int:
    table = tree.get("automation", {})
    return len(table.get("triggers", ())) + (1 if "gate" in table else 0)


def _merged(tree: Mapping[str, Any], override: Override) -> dict[str, Any]:
    """The tree with an override: a new gate replaces all triggers and their keys; other keys replace the file's.

    If the file has a single `[[automation.triggers]]` table and no `gate`, trigger keys are set in that table.
    """
    table, values = dict(tree.get("automation", {})), override.keys()
    if "gate" in values:
        table = {key: value for key, value in table.items() if key not in TRIGGER_KEYS}
    elif "gate" not in table and len(table.get("triggers", ())) == 1:
        only = {key: values.pop(key) for key in list(values) if key in TRIGGER_KEYS}
        table["triggers"] = [dict(table["triggers"][0]) | only]
    return {"automation": table | values}


def _at(override: Override, key: str) -> str:
    return f"{override.place}[{override.name}].{key.removeprefix('automation.')}"


def _standing(automation: Automation, skipped: frozenset[str]) -> Standing:
    if automation.name in skipped or automation.scoped_name in skipped:
        return Standing.SKIPPED
    return Standing.READY if automation.enabled else Standing.DISABLED


def _unmatched(overrides: Iterable[Override], slots: set[tuple[str | None, str]]) -> Iterable[FileProblem]:
    names = {name for _, name in slots}
    for override in overrides:
        if (override.rig, override.name) in slots or (override.rig is None and override.name in names):
            continue
        where = f" in rig `{override.rig}`" if override.rig else ""
        told = f"no automation `{override.name}`{where}{did_you_mean(override.name, names - {override.name})}"
        yield FileProblem("city.toml", f"{override.place}[{override.name}]", told)


def _unknown_skips(skipped: frozenset[str], names: set[str]) -> Iterable[FileProblem]:
    for name in sorted(skipped):
        if name.partition(":rig:")[0] not in names:
            yield FileProblem("city.toml", "automations.skip", f"no automation `{name}`{did_you_mean(name, names)}")
