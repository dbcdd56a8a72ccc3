"""Condition checks: run in the background, in parallel, each with a time limit; one that passes fires its trigger."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from lamplighter.daemon.active_config import ActiveConfig, Tasks
from lamplighter.domain.automations.admission import Origin, barred
from lamplighter.domain.automations.gates import Checked
from lamplighter.domain.automations.model import Automation, Condition
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.ports.commands import Command, CommandEnded, CommandRunner
from lamplighter.services.automations import due, snapshots
from lamplighter.services.automations.outlook import Asked
from lamplighter.services.context import acting
from lamplighter.store.automations import AutomationRow
from lamplighter.store.triggers import TriggerRow
from lamplighter.store.tx import Store, Tx

ACTOR = "controller"
SIDE_BY_SIDE = 8


@dataclass(frozen=True)
class _Check:
    row: AutomationRow
    trigger: TriggerRow
    gate: Condition


@dataclass
class Conditions:
    """Each tick starts the checks of all conditions whose interval has passed, except those that are still running."""

    store: Store
    clock: Clock
    ids: IdSource
    active: ActiveConfig
    runner: CommandRunner
    tasks: Tasks = field(default_factory=Tasks)
    _asking: set[tuple[str, str]] = field(default_factory=set)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SIDE_BY_SIDE))

    async def tick(self) -> int:
        """Start the due checks in the background; returns how many are due, including those still running."""
        checks = await self.store.read(self._due)
        for check in checks:
            key = (check.trigger.automation, check.trigger.id)
            if key not in self._asking:
                self._asking.add(key)
                self.tasks.add(asyncio.create_task(self._ask(check, key), name=f"check {check.row.scoped_name}"))
        return len(checks)

    async def stop(self) -> None:
        for task in tuple(self.tasks.running):
            task.cancel()
        await self.tasks.all_done()

    def _due(self, tx: Tx) -> list[_Check]:
        triggers = tx.triggers.conditions()
        if not triggers:
            return []
        now = self.clock.now()
        rows = tx.automations.some(one.automation for one in triggers)
        found = []
        for trigger in triggers:
            row = rows.get(trigger.automation)
            gate = None if row is None else _gate(row, trigger.id)
            if row is None or gate is None or barred(self.active.rules.switches(row), Origin.SLOT):
                continue
            last = trigger.state.last_fired_at
            if gate.interval is None or last is None or last + gate.interval <= now:
                found.append(_Check(row, trigger, gate))
        return found

    async def _ask(self, check: _Check, key: tuple[str, str]) -> None:
        try:
            async with self._room:
                await self._ask_now(check)
        except (LampError, OSError) as error:
            log.get().warning("condition.failed", automation=check.row.scoped_name, error=str(error))
        finally:
            self._asking.discard(key)

    async def _ask_now(self, check: _Check) -> None:
        row = check.row
        ended = await self.runner.check(await check_command(self.active, row, check.gate))
        told = "passed" if ended.exit_code == 0 else "timed out" if ended.timed_out else f"exit {ended.exit_code}"
        if ended.exit_code != 0 and told == check.trigger.check_result:
            return  # nothing new to write down
        result = Checked(None if ended.timed_out else ended.exit_code)
        ctx = acting(ACTOR, self.clock.now(), self.ids)
        await self.store.transact(due.fire_checked, row.id, check.trigger.id, result, rules=self.active.rules, ctx=ctx)


async def check_all(active: ActiveConfig, runner: CommandRunner, asked: Sequence[Asked]) -> list[Checked]:
    """Run the commands of these conditions for whoever asks, SIDE_BY_SIDE at once; the answers are in their order.

    Raises CommandNotStarted, NotFound for a rig that is gone.
    """
    room = asyncio.Semaphore(SIDE_BY_SIDE)

    async def check(one: Asked) -> Checked:
        async with room:
            ended = await runner.check(await check_command(active, one.row, one.gate))
        return Checked(None if ended.timed_out else ended.exit_code)

    return await asyncio.gather(*(check(one) for one in asked))


async def check_command(active: ActiveConfig, row: AutomationRow, gate: Condition) -> Command:
    """The command that checks a condition; the same for the daemon and for a person who runs the check.

    Raises SecretUnknown, SecretLocked.
    """
    own = await active.secrets.opened(snapshots.of_row(row).policies.env)
    env = active.env_of(row.rig) | own | {"LAMP_AUTOMATION": row.scoped_name}
    if row.path is not None:
        env["AUTOMATION_DIR"] = row.path.rpartition("/")[0]
    return Command(f"check {row.scoped_name}", gate.check, active.dir_of(row.rig), gate.timeout, env)


async def try_command(
    active: ActiveConfig,
    runner: CommandRunner,
    automation: Automation,
    command: Command,
) -> CommandEnded:
    """Run `command` once for whoever tries the automation; it is given directory and environment of its runs.

    Nothing of it is left behind. Raises CommandNotStarted, NotFound, SecretUnknown, SecretLocked.
    """
    own = await active.secrets.opened(automation.policies.env)
    env = active.env_of(automation.rig) | own | {"LAMP_AUTOMATION": automation.scoped_name}
    if automation.path is not None:
        env["AUTOMATION_DIR"] = automation.path.rpartition("/")[0]
    asked = replace(command, work_dir=active.dir_of(automation.rig), env=env)
    try:
        ended = await runner.run(asked)
    finally:
        await runner.stop(command.key, grace=timedelta(0))
        await runner.forget(command.key)
    return replace(ended, output=(await active.secrets.mask())(ended.output))


def _gate(row: AutomationRow, trigger: str) -> Condition | None:
    try:
        found = snapshots.of_row(row).trigger(trigger)
    except ValueError:
        return None
    return found.gate if found is not None and isinstance(found.gate, Condition) else None
