"""Condition checks: run in the background, in parallel, each with a time limit; one that passes fires its trigger."""

import asyncio
from dataclasses import dataclass, field

from lamplighter.daemon.active_config import ActiveConfig, Tasks
from lamplighter.domain.acts import Act
from lamplighter.domain.automations.decisions import blocked_by
from lamplighter.domain.automations.gates import Checked
from lamplighter.domain.automations.model import Condition
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.ports.commands import Command, CommandRunner
from lamplighter.services.automations import due, snapshots
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
            if row is None or gate is None or blocked_by(self.active.rules.switches(row)):
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
        ended = await self.runner.check(check_command(self.active, row, check.gate))
        told = "passed" if ended.exit_code == 0 else "timed out" if ended.timed_out else f"exit {ended.exit_code}"
        if ended.exit_code != 0 and told == check.trigger.check_result:
            return  # nothing new to write down
        result = Checked(None if ended.timed_out else ended.exit_code)
        act = Act(ACTOR, self.clock.now())
        await self.store.transact(
            due.fire_checked, row.id, check.trigger.id, result, rules=self.active.rules, ids=self.ids, act=act
        )


def check_command(active: ActiveConfig, row: AutomationRow, gate: Condition) -> Command:
    """The command that checks a condition; the same for the daemon and for a person who runs the check."""
    env = active.env_of(row.rig) | {"LAMP_AUTOMATION": row.scoped_name}
    if row.path is not None:
        env["AUTOMATION_DIR"] = row.path.rpartition("/")[0]
    return Command(f"check {row.scoped_name}", gate.check, active.dir_of(row.rig), gate.timeout, env)


def _gate(row: AutomationRow, trigger: str) -> Condition | None:
    try:
        found = snapshots.of_row(row).trigger(trigger)
    except ValueError:
        return None
    return found.gate if found is not None and isinstance(found.gate, Condition) else None
