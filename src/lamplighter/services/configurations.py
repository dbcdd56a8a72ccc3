"""Configurations of agent runs: those of city.toml are synchronized, those of people created, edited and deleted."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.domain.city.configurations import body_of, changed, given, of_body, shown
from lamplighter.domain.city.model import City, Configuration
from lamplighter.domain.runs.target import Candidate
from lamplighter.kit import shapes
from lamplighter.kit.errors import Conflict, NotFound, UsageError
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.records import record
from lamplighter.services.automations import editing
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Need, read, transaction
from lamplighter.services.versions import version_of
from lamplighter.store.configurations import ConfigurationRow
from lamplighter.store.tx import Tx

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


def create(tx: Tx, body: Mapping[str, Any], *, source: str, city: City, ctx: Context) -> ConfigurationRow:
    """Create one from the keys of a `[[configurations]]` table. Raises ConfigurationInvalid, ConfigurationTaken."""
    tx.cities.lock()
    made = given(body, city)
    if made.name in {row.name for row in tx.configurations.all()}:
        raise ConfigurationTaken(made.name)
    return _put(tx, made, source, "configuration.added", ctx)


def edit(tx: Tx, name: str, changes: Mapping[str, Any], *, city: City, ctx: Context) -> ConfigurationRow:
    """Change only the given keys. Raises ConfigurationUnknown, ConfigurationReadOnly, ConfigurationInvalid.

    Raises UsageError for a change of the name.
    """
    row = _own(tx, name)
    if changes.get("name", name) != name:
        raise UsageError("A configuration keeps its name.", hint="Create another one, and delete this one.")
    made = given(changed(of_body(name, row.body), changes), city)
    return _put(tx, made, row.source, "configuration.changed", ctx)


def delete(tx: Tx, name: str, *, ctx: Context) -> None:
    """Raises ConfigurationUnknown, ConfigurationReadOnly, ConfigurationInUse."""
    _own(tx, name)
    users = users_of(tx, name)
    if users:
        raise ConfigurationInUse(name, users)
    tx.configurations.delete(name)
    tx.events.append(ctx.event("configuration.removed", subject=name))


def users_of(tx: Tx, name: str) -> list[str]:
    """Automations that name the configuration as the one to use, as a choice, or as the fallback."""
    return [row.scoped_name for rows in editing.pages(tx) for row in rows if name in _named(row.definition)]


def _named(definition: str | None) -> set[str]:
    """The configurations that a definition names; parsed as plain JSON, because decoding every automation is slow."""
    action = json.loads(definition).get("action") if definition and '"agent"' in definition else None
    if not isinstance(action, dict) or action.get("kind") != "agent":
        return set()
    return {action.get("configuration"), action.get("fallback"), *(action.get("configurations") or ())} - {None}


def _put(tx: Tx, one: Configuration, source: str, event: str, ctx: Context) -> ConfigurationRow:
    row = ConfigurationRow(one.name, source, body_of(one))
    tx.configurations.put(row, ctx.now)
    tx.events.append(ctx.event(event, subject=one.name, payload={"source": source}))
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


# ── operations ────────────────────────────────────────────────────────────────────────────────────────────────────


@record
class ConfigurationView:
    """Unset keys are null, values that look secret are masked."""

    name: str
    description: str | None
    rig: str | None
    path: str | None
    preset: str | None
    model: str | None
    mode: str | None
    effort: str | None
    home: str | None
    fallback_preset: str | None
    fallback_model: str | None
    env: Mapping[str, str]
    source: str


@record
class ConfigurationDetail(ConfigurationView):
    used_by: Sequence[str]


@record
class ConfigurationDeleted:
    name: str
    deleted: bool = True


@record
class ListConfigurations:
    """Every configuration: those of city.toml (source `file`) and those in the store."""


@record
class ShowConfiguration:
    """One configuration in full, and the automations that use it."""

    name: str = shapes.given("Its name.", positional=True, names="configuration")


@record
class CreateConfiguration:
    """Make a configuration in the store.

    Such as: lamp configuration create web --rig web --preset codex --description 'The web site.'
    """

    body: Mapping[str, Any] = shapes.given("The keys of a `[[configurations]]` table.", whole=True)


@record
class EditConfiguration:
    """Change a stored configuration: only what is named changes, and an empty text unsets."""

    name: str = shapes.given("Its name.", positional=True, names="configuration")
    changes: Mapping[str, Any] = shapes.given("The keys to change.", whole=True, default={})


@record
class DeleteConfiguration:
    """Delete a stored configuration that no automation uses."""

    name: str = shapes.given("Its name.", positional=True, names="configuration")


def list_configurations(tx: Tx, _ask: ListConfigurations, _ctx: Context) -> list[ConfigurationView]:
    return [ConfigurationView(**_shown(row)) for row in tx.configurations.all()]


def show_configuration(tx: Tx, ask: ShowConfiguration, _ctx: Context) -> ConfigurationDetail:
    """Raises ConfigurationUnknown."""
    return ConfigurationDetail(**_shown(_row(tx, ask.name)), used_by=users_of(tx, ask.name))


def create_configuration(tx: Tx, ask: CreateConfiguration, ctx: Context) -> ConfigurationDetail:
    row = create(tx, ask.body, source=ctx.surface, city=ctx.city, ctx=ctx)
    return show_configuration(tx, ShowConfiguration(row.name), ctx)


def edit_configuration(tx: Tx, ask: EditConfiguration, ctx: Context) -> ConfigurationDetail:
    edit(tx, ask.name, ask.changes, city=ctx.city, ctx=ctx)
    return show_configuration(tx, ShowConfiguration(ask.name), ctx)


def delete_configuration(tx: Tx, ask: DeleteConfiguration, ctx: Context) -> ConfigurationDeleted:
    delete(tx, ask.name, ctx=ctx)
    return ConfigurationDeleted(ask.name)


def _shown(row: ConfigurationRow) -> dict[str, Any]:
    return shown(of_body(row.name, row.body)) | {"source": row.source}


def version(tx: Tx, ask: ShowConfiguration | EditConfiguration | DeleteConfiguration, *, lock: bool) -> str:
    """Raises ConfigurationUnknown."""
    if lock:
        tx.cities.lock()
    row = _row(tx, ask.name)
    return version_of(row.name, row.source, row.body)


_PATH, _ONE = "/configurations", "/configurations/{name}"
LIST = read(
    "configuration.list", Verb.READ, ListConfigurations, list[ConfigurationView], list_configurations,
    needs=Need.DEFINITIONS, http=Http("GET", _PATH),
)  # fmt: skip
SHOW = read(
    "configuration.show", Verb.READ, ShowConfiguration, ConfigurationDetail, show_configuration,
    needs=Need.DEFINITIONS, http=Http("GET", _ONE), version=version,
)  # fmt: skip
CREATE = transaction(
    "configuration.create", Verb.WRITE_CONFIGURATIONS, CreateConfiguration, ConfigurationDetail, create_configuration,
    needs=Need.DEFINITIONS, http=Http("POST", _PATH, status=201, location=_ONE),
)  # fmt: skip
EDIT = transaction(
    "configuration.edit", Verb.WRITE_CONFIGURATIONS, EditConfiguration, ConfigurationDetail, edit_configuration,
    needs=Need.DEFINITIONS, http=Http("PATCH", _ONE), version=version,
)  # fmt: skip
DELETE = transaction(
    "configuration.delete", Verb.WRITE_CONFIGURATIONS, DeleteConfiguration, ConfigurationDeleted, delete_configuration,
    needs=Need.DEFINITIONS, http=Http("DELETE", _ONE, status=204), version=version,
)  # fmt: skip
