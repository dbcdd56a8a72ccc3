"""The transactions that change automations: create, edit, enable, suspend, delete, export, import, pause the city."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from lamplighter.domain.automations.decode import Invalid, Origin, decode_file, decode_json
from lamplighter.domain.automations.decode_triggers import TRIGGER_KEYS
from lamplighter.domain.automations.model import Automation
from lamplighter.domain.automations.reading import Problem
from lamplighter.domain.automations.shape import flattened, to_file, to_shape
from lamplighter.kit.errors import Conflict, Misfit, UsageError, place_of
from lamplighter.kit.records import record
from lamplighter.services.automations import registering, snapshots
from lamplighter.services.automations.definitions import FILE
from lamplighter.services.automations.firing import DefinitionBroken, locked_named, unknown
from lamplighter.services.context import Context
from lamplighter.services.inbox import settling
from lamplighter.services.rules import Rules
from lamplighter.store.automations import AutomationRow
from lamplighter.store.tx import Tx

_ACTIONS = ("exec", "formula", "agent")


class DefinitionInvalid(UsageError):
    """Lists all problems together, each with its key."""

    def __init__(self, invalid: Invalid) -> None:
        told = "\n".join(str(problem) for problem in invalid.problems)
        super().__init__(
            f"Automation `{invalid.name}` is not right:\n{told}", hint="Nothing was changed; mend these and try again."
        )
        self.problems: tuple[Problem, ...] = invalid.problems
        self.misfits = [Misfit(place_of(one.key), one.message) for one in invalid.problems]


class NameTaken(Conflict):
    def __init__(self, scoped_name: str) -> None:
        super().__init__(
            f"There is already an automation `{scoped_name}`.",
            hint="Choose another name, or change that one with `lamp automation edit`.",
        )


class ReadOnly(Conflict):
    def __init__(self, row: AutomationRow) -> None:
        super().__init__(
            f"{row.scoped_name} is defined by {row.path} and cannot be changed here.",
            hint="Edit the file: the change takes effect by itself. Or export, rename and import it.",
        )


def create(tx: Tx, body: Mapping[str, Any], *, source: str = "api", rules: Rules, ctx: Context) -> AutomationRow:
    """Create one from the keys of a file or from the JSON shape of surfaces. Raises DefinitionInvalid, NameTaken."""
    return add(tx, _valid(decoded_new(body, source, ctx.now)), rules=rules, ctx=ctx)


def decoded_new(body: Mapping[str, Any], source: str, now: datetime) -> Automation | Invalid:
    """What `create` would make of it."""
    return _with_plain_name(decode_json(body, Origin(source), now=now))


def add(tx: Tx, automation: Automation, *, rules: Rules, ctx: Context) -> AutomationRow:
    """Add a definition that is already decoded, such as one made from a template. Raises NameTaken."""
    row = registering.new_row(automation, ctx.ids.make("aut"), by=ctx.actor.name, now=ctx.now)
    if not tx.automations.insert(row):
        raise NameTaken(automation.scoped_name)
    registering.save(tx, None, row, rules, ctx.now)
    _tell(tx, "automation.added", row, ctx)
    return row


def edit(tx: Tx, scoped_name: str, changes: Mapping[str, Any], *, rules: Rules, ctx: Context) -> AutomationRow:
    """Change only the given keys. Raises AutomationUnknown, ReadOnly, DefinitionInvalid, NameTaken."""
    row = locked_named(tx, scoped_name)
    automation = _valid(decoded_change(row, changes, ctx.now))
    taken = None if automation.scoped_name == row.scoped_name else tx.automations.named(automation.scoped_name)
    if taken is not None:
        raise NameTaken(automation.scoped_name)
    after = registering.edited_row(row, automation, ctx.now, left_out=row.left_out)
    if changes.get("enabled") is True:
        after = _switched(row, after, automation, ctx.now, enabled=True)
    registering.save(tx, row, after, rules, ctx.now)
    _tell(tx, "automation.changed", after, ctx)
    return after


def defined(row: AutomationRow) -> Automation:
    """Its definition as it stands. Raises DefinitionBroken."""
    found = _definition(row)
    if found is None:
        raise DefinitionBroken(row.scoped_name, "; ".join(row.problems))
    return found


def decoded_change(row: AutomationRow, changes: Mapping[str, Any], now: datetime) -> Automation | Invalid:
    """What `edit` would make of it. Raises ReadOnly."""
    if row.source == FILE:
        raise ReadOnly(row)
    current = to_shape(snapshots.of_row(row)) | {"enabled": row.enabled}
    once_may_be_past = "triggers" not in changes and not TRIGGER_KEYS & set(changes)
    decoded = decode_json(merged(current, changes), Origin(row.source), now=None if once_may_be_past else now)
    return decoded if decoded.name == row.name else _with_plain_name(decoded)


def set_enabled(
    tx: Tx, scoped_name: str, *, enabled: bool, reason: str = "", rules: Rules, ctx: Context
) -> AutomationRow:
    """Enable or disable; enabling resets the count of failures.

    Raises AutomationUnknown, DefinitionBroken, or ReadOnly for enabling an automation whose file says
    `enabled = false`: only the file can change that.
    """
    row = locked_named(tx, scoped_name)
    if row.definition is None:
        raise DefinitionBroken(scoped_name, "; ".join(row.problems))
    automation = snapshots.of_row(row)
    if row.source == FILE and enabled and not automation.enabled:
        raise ReadOnly(row)
    if row.source != FILE:
        automation = replace(automation, enabled=enabled)
    after = replace(row, definition=snapshots.written(automation))
    after = _switched(row, after, automation, ctx.now, enabled=enabled, reason=reason)
    registering.save(tx, row, after, rules, ctx.now)
    if enabled:
        settling.of_enabled(tx, scoped_name, ctx=ctx)
    _tell(tx, "automation.enabled" if enabled else "automation.disabled", after, ctx)
    return after


def set_suspended(tx: Tx, scoped_name: str, *, suspended: bool, ctx: Context) -> bool:
    """Suspend or resume; False when it was in that state already. Raises AutomationUnknown.

    While suspended, scheduled times are recorded as skipped and events wait. Resuming restarts the `quiet_after` wait.
    """
    row = locked_named(tx, scoped_name)
    if row.suspended is suspended:
        return False
    after = replace(row, suspended=suspended, updated_at=ctx.now)
    if not suspended:
        automation = _definition(row)
        quiet_at = None if automation is None or not row.armed else registering.quiet_at(automation, ctx.now)
        after = replace(after, armed_at=ctx.now, quiet_at=quiet_at)
        tx.triggers.release_blocked()
    tx.automations.save(after)
    tx.wake(registering.TOPIC)
    _tell(tx, "automation.suspended" if suspended else "automation.resumed", after, ctx)
    return True


def delete(tx: Tx, scoped_name: str, *, ctx: Context) -> AutomationRow:
    """Delete the automation; its runs stay in history, those under way continue. Raises AutomationUnknown, ReadOnly."""
    row = locked_named(tx, scoped_name)
    if row.source == FILE:
        raise ReadOnly(row)
    tx.automations.delete(row.id)
    tx.wake(registering.TOPIC)
    _tell(tx, "automation.removed", row, ctx)
    return row


def export(tx: Tx, scoped_name: str) -> dict[str, Any]:
    """The tree of an equivalent `automation.toml`. Raises AutomationUnknown, DefinitionBroken."""
    row = get(tx, scoped_name)
    automation = _definition(row)
    if automation is None:
        raise DefinitionBroken(scoped_name, "; ".join(row.problems))
    return to_file(replace(automation, enabled=row.enabled))


@record
class Import:
    """A file's tree to import into the store under a name; `replace` allows it to replace a stored automation."""

    name: str
    tree: Mapping[str, Any]
    rig: str | None = None
    replace: bool = False


def import_file(tx: Tx, wanted: Import, *, rules: Rules, ctx: Context) -> AutomationRow:
    """Raises DefinitionInvalid; NameTaken when a stored automation has that name, ReadOnly when a file's has it."""
    decoded = decode_file(wanted.tree, Origin("import", wanted.name, wanted.rig))
    automation = replace(_valid(_with_plain_name(decoded)), source="import", path=None)
    row = tx.automations.lock_named(automation.scoped_name)
    if row is None:
        return add(tx, automation, rules=rules, ctx=ctx)
    if row.source == FILE:
        raise ReadOnly(row)
    if not wanted.replace:
        raise NameTaken(automation.scoped_name)
    after = registering.edited_row(row, automation, ctx.now)
    registering.save(tx, row, after, rules, ctx.now)
    _tell(tx, "automation.changed", after, ctx)
    return after


def get(tx: Tx, scoped_name: str) -> AutomationRow:
    row = tx.automations.named(scoped_name)
    if row is None:
        raise unknown(tx, scoped_name)
    return row


def pages(tx: Tx, rig: str | None = None) -> Iterator[list[AutomationRow]]:
    """All automations, or those of a rig, in order of their scoped names, as many at once as the store gives."""
    after = ""
    while page := tx.automations.page(after=after, rig=rig):
        yield page
        after = page[-1].scoped_name


def without_mode(tx: Tx) -> list[str]:
    """Agent automations whose definition names no mode."""
    return [row.scoped_name for rows in pages(tx) for row in rows if _names_no_mode(row.definition)]


def _names_no_mode(definition: str | None) -> bool:
    """Parsed as plain JSON, because decoding every automation is slow."""
    action = json.loads(definition).get("action") if definition and '"agent"' in definition else None
    if not isinstance(action, dict) or action.get("kind") != "agent" or action.get("mode") is not None:
        return False
    return action.get("session") is None and action.get("agent") is None  # these have a mode already


def pause(tx: Tx, *, ctx: Context) -> bool:
    """Pause the city: nothing fires and no run starts until `resume`. False when it was paused already."""
    city = tx.cities.lock()
    if city is None or city.paused_at is not None:
        return False
    tx.cities.pause(ctx.actor.name, ctx.now)
    tx.events.append(ctx.event("city.paused", subject=city.name))
    tx.wake(registering.TOPIC)
    return True


def resume(tx: Tx, *, ctx: Context) -> bool:
    """End the pause of the city; False when it was not paused."""
    city = tx.cities.lock()
    if city is None or city.paused_at is None:
        return False
    tx.cities.pause(None, None)
    tx.triggers.release_blocked()
    tx.events.append(ctx.event("city.resumed", subject=city.name))
    tx.wake(registering.TOPIC)
    tx.wake("outbox")
    return True


def merged(current: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The definition with its changes, in a file's keys; a new gate or action replaces the old one."""
    base, given = flattened(current), flattened(changes)
    if any(name in given for name in _ACTIONS):
        for name in (*_ACTIONS, "pool", "vars"):
            if name not in given and not (name in {"pool", "vars"} and "formula" in base and "formula" in given):
                base.pop(name, None)
    if isinstance(given.get("agent"), Mapping) and isinstance(base.get("agent"), Mapping):
        given["agent"] = {**base["agent"], **given["agent"]}
    for name in ("retry", "catch_up", "budget", "notify"):
        if isinstance(given.get(name), Mapping) and isinstance(base.get(name), Mapping):
            given[name] = {**base[name], **given[name]}
    return base | _merged_triggers(base, given)


def _merged_triggers(base: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    keys = TRIGGER_KEYS & set(given) - {"triggers"}
    if "gate" in keys:
        base.pop("triggers", None)
    elif keys and "triggers" not in given and len(base.get("triggers", ())) == 1:
        only = {name: given.pop(name) for name in keys}
        given["triggers"] = [base["triggers"][0] | only]
    return given


def _with_plain_name(decoded: Automation | Invalid) -> Automation | Invalid:
    """Names made here have no spaces; a directory's name, and names from earlier versions, may have them."""
    if not any(letter.isspace() for letter in decoded.name.strip()):
        return decoded
    told = Problem("name", f"`{decoded.name}` holds a space; write `{'-'.join(decoded.name.split())}`")
    others = decoded.problems if isinstance(decoded, Invalid) else ()
    return Invalid(decoded.name, (told, *others))


def _valid(decoded: Automation | Invalid) -> Automation:
    if isinstance(decoded, Invalid):
        raise DefinitionInvalid(decoded)
    return decoded


def _switched(
    row: AutomationRow, after: AutomationRow, automation: Automation, now: datetime, *, enabled: bool, reason: str = ""
) -> AutomationRow:
    by_hand = "" if enabled else reason or ("it was disabled by hand" if row.source == FILE else "")
    failures = 0 if enabled and not row.enabled else row.failures
    after = replace(after, enabled=enabled, failures=failures, disabled_reason=by_hand, updated_at=now)
    return registering.rearmed(row, after, automation, now)


def _definition(row: AutomationRow) -> Automation | None:
    return None if row.definition is None else snapshots.of_row(row)


def _tell(tx: Tx, event_type: str, row: AutomationRow, ctx: Context) -> None:
    payload = {"source": row.source, "enabled": row.enabled}
    if row.disabled_reason:
        payload["reason"] = row.disabled_reason
    tx.events.append(ctx.event(event_type, subject=row.scoped_name, payload=payload))
