"""A dry run: the commands that decide are run once, and what came in lately is judged by the filters; nothing fires."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.decisions import PrecheckResult, precheck_result
from lamplighter.domain.automations.decode import Invalid
from lamplighter.domain.automations.events import loops, unmatched
from lamplighter.domain.automations.model import Automation, Condition, Event, Trigger, TriggerKind, Webhook, time_limit
from lamplighter.domain.events import EventFilter
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import LampError
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.ports.commands import CommandEnded
from lamplighter.services.automations import editing
from lamplighter.services.automations.previewing import ProblemView
from lamplighter.services.automations.queries import scoped
from lamplighter.services.automations.waiting import newest_seen
from lamplighter.services.context import Context
from lamplighter.services.deliveries.processing import kept_from
from lamplighter.services.host import Host
from lamplighter.services.operation import Http, Need, effect
from lamplighter.services.runs.command_ends import clean
from lamplighter.store.tx import Tx

LONGEST = timedelta(seconds=60)
"""A command that is tried is ended after so long, or at its own limit if that comes first."""
WITHIN = 300.0
ARRIVALS = 10
"""So many of the newest deliveries or events are judged for each trigger."""
SHOWN = 4000
_DEFAULT_LIMIT = timedelta(minutes=5)


@record
class TryAutomation:
    """Try it without firing it: run its precheck and the commands of its conditions once, and judge by its filters
    what came in lately. Nothing is stored, and no run is made.
    """

    name: str | None = given(
        "The automation; a new one when left out.", default=None, positional=True, names="automation"
    )
    rig: str | None = given("The automation of this rig; the same as NAME:rig:RIG.", default=None, names="rig")
    changes: Mapping[str, Any] = given("Keys to try in place of those that are stored.", whole=True, default={})


@dataclass(frozen=True, kw_only=True)
class TriedCommand:
    """A command that decides something, as it was run; `means` says in a sentence what would follow."""

    of: str = given("`precheck`, or the id of the trigger whose condition it is.")
    command: str
    exit_code: int | None = given("Null where it was ended at its time limit.")
    duration_s: timedelta
    output: str = given("The end of what it printed.")
    passes: bool
    means: str


@dataclass(frozen=True, kw_only=True)
class TriedArrival:
    """A delivery or an event that came in lately, and whether the trigger would take it."""

    trigger: str
    id: str = given("The delivery, or the number of the event.")
    at: datetime
    title: str
    fires: bool
    reason: str = given("The rule that keeps it from the trigger; empty if it fires.")


@record
class TriedView:
    """With problems nothing was tried."""

    problems: Sequence[ProblemView]
    commands: Sequence[TriedCommand]
    arrivals: Sequence[TriedArrival]


@record
class _Planned:
    automation: Automation
    arrivals: Sequence[TriedArrival]


async def try_automation(host: Host, ask: TryAutomation, ctx: Context) -> TriedView:
    """Raises AutomationUnknown, ReadOnly for changes of one that a file defines."""
    planned = await host.store.read(_planned, ask, ctx)
    if isinstance(planned, Invalid):
        return TriedView([ProblemView(one.key, one.message) for one in planned.problems], (), ())
    automation = planned.automation
    commands = []
    if automation.policies.precheck is not None:
        limit = time_limit(automation, ctx.rules.cap) or _DEFAULT_LIMIT
        commands.append(await _tried(host, automation, "precheck", (automation.policies.precheck, limit), ctx))
    for trigger in automation.triggers:
        if isinstance(trigger.gate, Condition):
            line = (trigger.gate.check, trigger.gate.timeout)
            commands.append(await _tried(host, automation, trigger.id, line, ctx))
    return TriedView((), commands, planned.arrivals)


def _planned(tx: Tx, ask: TryAutomation, ctx: Context) -> _Planned | Invalid:
    """Raises AutomationUnknown, ReadOnly, DefinitionBroken."""
    decoded: Automation | Invalid
    if ask.name is None:
        decoded = editing.decoded_new(ask.changes, ctx.surface, ctx.now)
    else:
        row = editing.get(tx, scoped(ask.name, ask.rig))
        decoded = editing.decoded_change(row, ask.changes, ctx.now) if ask.changes else editing.defined(row)
    if isinstance(decoded, Invalid):
        return decoded
    return _Planned(decoded, [one for trigger in decoded.triggers for one in _arrivals(tx, decoded, trigger)])


def _arrivals(tx: Tx, automation: Automation, trigger: Trigger) -> list[TriedArrival]:
    match trigger.gate:
        case Webhook():
            return _deliveries(tx, automation, trigger, trigger.gate)
        case Event():
            return _events(tx, automation, trigger, trigger.gate)
        case _:
            return []


def _deliveries(tx: Tx, automation: Automation, trigger: Trigger, gate: Webhook) -> list[TriedArrival]:
    connection = tx.connections.get(gate.connection)
    if connection is None:
        return []
    listed = tx.deliveries.page(connection=gate.connection, before=None, limit=ARRIVALS)
    rows = {row.id: row for row in tx.deliveries.some([one.id for one in listed])} if listed else {}
    found = []
    for one in listed:
        why = kept_from(tx, rows[one.id], connection, gate, automation.scoped_name)
        title = one.title or one.event_type or one.id
        found.append(_arrival(trigger, one.id, one.received_at, title, why))
    return found


def _events(tx: Tx, automation: Automation, trigger: Trigger, gate: Event) -> list[TriedArrival]:
    wanted = EventFilter(type=None if gate.on == "*" else gate.on)
    found = []
    for one in reversed(newest_seen(tx, wanted, limit=ARRIVALS)):
        told = unmatched(gate.match, one.payload)
        why = (
            f"match: {told}"
            if told
            else "runs of this automation caused it"
            if loops(one, automation.scoped_name)
            else ""
        )
        found.append(_arrival(trigger, str(one.seq), one.at, one.type, why))
    return found


def _arrival(trigger: Trigger, name: str, at: datetime, title: str, why: str) -> TriedArrival:
    return TriedArrival(trigger=trigger.id, id=name, at=at, title=title, fires=not why, reason=why)


async def _tried(
    host: Host, automation: Automation, of: str, line: tuple[str, timedelta], ctx: Context
) -> TriedCommand:
    command, limit = line
    limit = min(limit, LONGEST)
    began: dict[str, Any] = {
        "automation": automation.scoped_name, "run": None, "trigger": {"id": "test", "kind": TriggerKind.MANUAL.value},
        "slot": None, "fired_at": rfc3339(ctx.now), "events": [], "payload": {},
    }  # fmt: skip
    try:
        ended = await host.try_command(ctx.ids.make("try"), automation, command, limit, began)
    except LampError as error:
        return TriedCommand(of=of, command=command, exit_code=None, duration_s=timedelta(0), output="", passes=False,
                            means=error.message)  # fmt: skip
    passes, means = _meaning(of, ended, limit)
    return TriedCommand(
        of=of, command=command, exit_code=ended.exit_code, duration_s=ended.duration,
        output=clean(ended.output)[-SHOWN:], passes=passes, means=means,
    )  # fmt: skip


def _meaning(of: str, ended: CommandEnded, limit: timedelta) -> tuple[bool, str]:
    """Whether the way would be free, and what would follow."""
    if ended.exit_code is None:
        return False, f"It did not end within {limit.total_seconds():g} s and was killed."
    if of != "precheck":
        free = ended.exit_code == 0
        return free, "The trigger would fire." if free else f"The trigger would not fire: exit code {ended.exit_code}."
    match precheck_result(ended.exit_code):
        case PrecheckResult.GO:
            return True, "The run would go on."
        case PrecheckResult.NOTHING_TO_DO:
            return False, "Nothing to do: the run would be skipped."
        case PrecheckResult.FAILED:
            return False, f"The run would fail: exit code {ended.exit_code} is neither 0 nor 75."


TRY = effect(
    "automation.test", Verb.WRITE_AUTOMATIONS, TryAutomation, TriedView, try_automation, within=WITHIN,
    needs=Need.DEFINITIONS, http=Http("POST", "/automations/{name}/test"),
)  # fmt: skip
