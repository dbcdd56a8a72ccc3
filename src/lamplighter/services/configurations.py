"""Configurations of agent runs: those of city.toml are synchronized, those of people created, edited and deleted."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.domain.access import Caller, Verb, require
from lamplighter.domain.acts import Act
from lamplighter.domain.city.configurations import body_of, changed, given, of_body, shown
from lamplighter.domain.city.model import City, Configuration
from lamplighter.domain.runs.target import Candidate
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Conflict, NotFound, UsageError
from lamplighter.kit.nearest import full_stop
from lamplighter.services.automations import editing
from lamplighter.store.configurations import ConfigurationRow
from lamplighter.store.tx import Store, Tx

FILE = "file"


class ConfigurationUnknown(NotFound):
    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(
            f"There is no configuration `{name}`{full_stop(name, known)}",
            hint="`lamp configuration list` shows those there are.",
        )


class ConfigurationTaken(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is already a configuration `{name}`.",
            hint="Choose another name, or change that one with `lamp configuration edit`.",
        )


class ConfigurationReadOnly(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"Configuration `{name}` is declared in the city's files and cannot be changed here.",
            hint="Edit its `[[configurations]]` table: the change takes effect by itself.",
        )


class ConfigurationInUse(Conflict):
    def __init__(self, name: str, users: list[str]) -> None:
        super().__init__(
            f"Configuration `{name}` is used by {', '.join(users)}.",
            hint="Let them use another one first, with `lamp automation edit`.",
        )
        self.users = users


# ── declared in city.toml ─────────────────────────────────────────────────────────────────────────────────────────


def sync(tx: Tx, declared: tuple[Configuration, ...], now: datetime) -> list[str]:
    """Make the stored file configurations equal to `declared`.

    Configurations made by people stay; returns the declared names that those already hold.
    """
    tx.cities.lock()
    known = {row.name: row for row in tx.configurations.all()}
    kept = taken(tx, declared)
    for one in declared:
        row = ConfigurationRow(one.name, FILE, body_of(one))
        if one.name not in kept and known.get(one.name) != row:
            tx.configurations.put(row, now)
    names = {one.name for one in declared}
    for name, row in known.items():
        if row.source == FILE and name not in names:
            tx.configurations.delete(name)
    return kept


def taken(tx: Tx, declared: tuple[Configuration, ...]) -> list[str]:
    """Declared names that belong to a configuration made by people."""
    stored = {row.name for row in tx.configurations.all() if row.source != FILE}
    return [one.name for one in declared if one.name in stored]


def known(tx: Tx) -> dict[str, Configuration]:
    return {row.name: of_body(row.name, row.body) for row in tx.configurations.all()}


def candidates(tx: Tx) -> dict[str, Candidate]:
    return {name: Candidate(name, one.description, one.rig or one.path) for name, one in known(tx).items()}


# ── made by people ────────────────────────────────────────────────────────────────────────────────────────────────


def create(tx: Tx, body: Mapping[str, Any], *, source: str, city: City, act: Act) -> ConfigurationRow:
    """Create one from the keys of a `[[configurations]]` table. Raises ConfigurationInvalid, ConfigurationTaken."""
    tx.cities.lock()
    made = given(body, city)
    if made.name in {row.name for row in tx.configurations.all()}:
        raise ConfigurationTaken(made.name)
    return _put(tx, made, source, "configuration.added", act)


def edit(tx: Tx, name: str, changes: Mapping[str, Any], *, city: City, act: Act) -> ConfigurationRow:
    """Change only the given keys. Raises ConfigurationUnknown, ConfigurationReadOnly, ConfigurationInvalid.

    Raises UsageError for a change of the name.
    """
    row = _own(tx, name)
    if changes.get("name", name) != name:
        raise UsageError("A configuration keeps its name.", hint="Create another one, and delete this one.")
    made = given(changed(of_body(name, row.body), changes), city)
    return _put(tx, made, row.source, "configuration.changed", act)


def delete(tx: Tx, name: str, *, act: Act) -> None:
    """Raises ConfigurationUnknown, ConfigurationReadOnly, ConfigurationInUse."""
    _own(tx, name)
    users = users_of(tx, name)
    if users:
        raise ConfigurationInUse(name, users)
    tx.configurations.delete(name)
    tx.events.append(act.event("configuration.removed", subject=name))


def every(tx: Tx) -> list[dict[str, Any]]:
    return [_shape(row) for row in tx.configurations.all()]


def show(tx: Tx, name: str) -> dict[str, Any]:
    """Raises ConfigurationUnknown."""
    return _shape(_row(tx, name)) | {"used_by": users_of(tx, name)}


def users_of(tx: Tx, name: str) -> list[str]:
    """Automations that name the configuration as the one to use, as a choice, or as the fallback."""
    return [row.scoped_name for row in editing.every(tx) if name in _named(row.definition)]


def _named(definition: str | None) -> set[str]:
    """The configurations that a definition names; parsed as plain JSON, because decoding every automation is slow."""
    action = json.loads(definition).get("action") if definition and '"agent"' in definition else None
    if not isinstance(action, dict) or action.get("kind") != "agent":
        return set()
    return {action.get("configuration"), action.get("fallback"), *(action.get("configurations") or ())} - {None}


def _put(tx: Tx, one: Configuration, source: str, event: str, act: Act) -> ConfigurationRow:
    row = ConfigurationRow(one.name, source, body_of(one))
    tx.configurations.put(row, act.at)
    tx.events.append(act.event(event, subject=one.name, payload={"source": source}))
    return row


def _own(tx: Tx, name: str) -> ConfigurationRow:
    tx.cities.lock()
    row = _row(tx, name)
    if row.source == FILE:
        raise ConfigurationReadOnly(name)
    return row


def _row(tx: Tx, name: str) -> ConfigurationRow:
    rows = {row.name: row for row in tx.configurations.all()}
    if name not in rows:
        raise ConfigurationUnknown(name, list(rows))
    return rows[name]


def _shape(row: ConfigurationRow) -> dict[str, Any]:
    return shown(of_body(row.name, row.body)) | {"source": row.source}


@dataclass(frozen=True)
class Configurations:
    """The same operations for the API, with access checks; `city` returns the city configuration in force."""

    store: Store
    clock: Clock
    city: Callable[[], City]

    async def every(self, *, caller: Caller) -> list[dict[str, Any]]:
        require(caller, Verb.READ)
        return await self.store.read(every)

    async def show(self, name: str, *, caller: Caller) -> dict[str, Any]:
        require(caller, Verb.READ)
        return await self.store.read(show, name)

    async def create(self, body: Mapping[str, Any], *, caller: Caller) -> dict[str, Any]:
        require(caller, Verb.WRITE)
        city, act = self.city(), self._act(caller)
        row = await self.store.transact(create, body, source="api", city=city, act=act)
        return await self.store.read(show, row.name)

    async def edit(self, name: str, changes: Mapping[str, Any], *, caller: Caller) -> dict[str, Any]:
        require(caller, Verb.WRITE)
        await self.store.transact(edit, name, changes, city=self.city(), act=self._act(caller))
        return await self.store.read(show, name)

    async def delete(self, name: str, *, caller: Caller) -> None:
        require(caller, Verb.WRITE)
        await self.store.transact(delete, name, act=self._act(caller))

    def _act(self, caller: Caller) -> Act:
        return Act(caller.actor, self.clock.now(), caller.run)
