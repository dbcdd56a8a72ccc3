"""Automations as commands use them: listed, checked, explained, edited, with definitions synced from the files."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lamplighter.adapters.files.toml import text_of
from lamplighter.app.automations import command_parent, command_runner, rules_of
from lamplighter.app.inline_run import refresh_definitions
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.conditions import check_command
from lamplighter.domain.automations.gates import Checked
from lamplighter.domain.automations.model import Condition
from lamplighter.domain.automations.templates import TEMPLATES, from_template
from lamplighter.kit import toml_text
from lamplighter.kit.errors import UsageError
from lamplighter.services.automations import editing, outlook
from lamplighter.services.rules import Rules


def listed(city: OpenCity, *, rig: str | None = None) -> list[dict[str, Any]]:
    rules = in_step(city)
    return [outlook.shape(one, rules) for one in city.store.read(outlook.standings, rig=rig)]


def shown(city: OpenCity, name: str) -> dict[str, Any]:
    rules = in_step(city)
    return outlook.shape(city.store.read(outlook.standings, name)[0], rules)


def checked(city: OpenCity, name: str | None = None) -> list[dict[str, Any]]:
    """The present verdict of every gate; commands of conditions run concurrently, each with its own time limit."""
    rules = in_step(city)
    checks = _conditions(city, name)
    found = city.store.read(outlook.verdicts, now=city.clock.now(), rules=rules, scoped_name=name, checks=checks)
    return [one.as_json() for one in found]


def explained(city: OpenCity, name: str) -> Sequence[str]:
    rules = in_step(city)
    checks = _conditions(city, name)
    return city.store.read(outlook.explained, name, now=city.clock.now(), rules=rules, checks=checks)


def upcoming(
    city: OpenCity, *, start: datetime, days: float, limit: int, name: str | None = None
) -> list[dict[str, Any]]:
    """The first `limit` firings from `start` on, in order of time."""
    rules = in_step(city)
    span = (start, start + timedelta(days=days))
    return city.store.read(outlook.next_firings, span, rules=rules, limit=limit, scoped_name=name)


def history(city: OpenCity, name: str, *, limit: int) -> list[dict[str, Any]]:
    in_step(city)
    return city.store.read(outlook.history, name, limit=limit)


def create(city: OpenCity, body: Mapping[str, Any]) -> dict[str, Any]:
    rules = in_step(city)
    row = city.store.transact(editing.create, body, source="cli", rules=rules, ids=city.ids, act=city.act())
    return shown(city, row.scoped_name)


def create_from_template(
    city: OpenCity, template: str, *, name: str | None, path: Path | None, rig: str | None
) -> dict[str, Any]:
    rules = in_step(city)
    made = from_template(template, name=name, path=None if path is None else str(path.resolve()), rig=rig)
    row = city.store.transact(editing.add, made, rules=rules, ids=city.ids, act=city.act())
    return shown(city, row.scoped_name)


def edit(city: OpenCity, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    rules = in_step(city)
    row = city.store.transact(editing.edit, name, changes, rules=rules, act=city.act())
    return shown(city, row.scoped_name)


def switch(city: OpenCity, name: str, *, enabled: bool) -> dict[str, Any]:
    rules = in_step(city)
    city.store.transact(editing.set_enabled, name, enabled=enabled, rules=rules, act=city.act())
    return shown(city, name)


def suspend(city: OpenCity, name: str, *, suspended: bool) -> bool:
    """False if nothing had to change."""
    in_step(city)
    changed: bool = city.store.transact(editing.set_suspended, name, suspended=suspended, act=city.act())
    return changed


def delete(city: OpenCity, name: str) -> None:
    in_step(city)
    city.store.transact(editing.delete, name, act=city.act())


def exported(city: OpenCity, name: str) -> str:
    """The text of an automation.toml with the same definition."""
    import tomlkit

    in_step(city)
    tree: dict[str, Any] = city.store.read(editing.export, name)
    return tomlkit.dumps(tree if "automation" in tree else {"automation": tree})


def imported(city: OpenCity, file: Path, *, name: str | None, rig: str | None) -> dict[str, Any]:
    """Store an automation from a file; it is enabled unless the file says `enabled = false`."""
    rules = in_step(city)
    try:
        tree = toml_text.parse(text_of(file.read_bytes()))
    except ValueError as error:
        raise UsageError(
            f"{file} is not TOML: {error}.", hint="`lamp automation export` shows what one looks like."
        ) from error
    wanted = editing.Import(tree=tree, name=name or _name_of(file), rig=rig)
    row = city.store.transact(editing.import_file, wanted, rules=rules, ids=city.ids, act=city.act())
    return shown(city, row.scoped_name)


def templates() -> list[dict[str, Any]]:
    return [
        {"id": one.id, "name": one.name, "badge": one.badge, "description": one.description, "needs": one.needs or None,
         "prompt": one.prompt}
        for one in TEMPLATES
    ]  # fmt: skip


def pause(city: OpenCity) -> bool:
    """False if nothing had to change."""
    return city.store.transact(editing.pause, act=city.act())


def in_step(city: OpenCity) -> Rules:
    """Sync the store's definitions with the files, unless a daemon runs, which does so itself; returns the rules."""
    refresh_definitions(city)
    return rules_of(city.config.city, city.settings.env)


def _conditions(city: OpenCity, name: str | None) -> dict[tuple[str, str], Checked]:
    """Run the commands of conditions concurrently, each with its own time limit."""
    found = city.store.read(outlook.standings, name)
    wanted = [(one, trigger, gate) for one in found for trigger, gate in outlook.conditions(one)]
    if not wanted:
        return {}
    from lamplighter.kit import aio

    active = ActiveConfig(city.config.city, in_step(city), command_parent(city.settings.env))
    runner = command_runner(city.paths, city.clock, city.ids)

    async def ask(one: outlook.Standing, gate: Condition) -> Checked:
        ended = await runner.check(check_command(active, one.row, gate))
        return Checked(None if ended.timed_out else ended.exit_code)

    async def ask_all() -> list[Checked]:
        return await asyncio.gather(*(ask(one, gate) for one, _, gate in wanted))

    answers = aio.run(ask_all())
    return {(one.row.scoped_name, trigger): answer for (one, trigger, _), answer in zip(wanted, answers, strict=True)}


def _name_of(file: Path) -> str:
    return file.parent.name if file.name == "automation.toml" else file.stem
