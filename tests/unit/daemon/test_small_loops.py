"""Small parts of the loops: little memory, a wrong clock, what is deleted when it is old, and conditions to check."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lamplighter.daemon.active_config import CLOCK_EVERY, MOST_SKEW, ClockGuard
from lamplighter.daemon.conditions import Conditions
from lamplighter.daemon.pipeline.memory import Memory
from lamplighter.daemon.pipeline.run_places import told_of
from lamplighter.daemon.retention import MEGABYTE, OUTPUTS_EVERY, SIZE_EVERY, RunRetention
from lamplighter.domain.automations.decisions import Switches
from lamplighter.domain.automations.model import Automation, Condition, Exec, Manual, Trigger
from lamplighter.domain.automations.state import TriggerState
from lamplighter.domain.city.model import City, Workspace
from lamplighter.domain.city.sections import Retention
from lamplighter.kit.errors import Conflict, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.services import retention
from lamplighter.services.automations import snapshots
from lamplighter.store.errors import ClockSkewed
from lamplighter.store.triggers import TriggerRow
from lamplighter.testing.clock import FakeClock

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Machine:
    """`available` megabytes of memory, of which the city wants `wanted`."""

    def __init__(self, clock: FakeClock) -> None:
        self.available: int | None = 100
        self.asked = 0
        self.told: list[tuple[str, Any]] = []
        self.limits = SimpleNamespace(memory=0)
        active: Any = SimpleNamespace(city=SimpleNamespace(limits=self.limits))
        self.memory = Memory(cast("Any", self), clock, IdSource(clock), active, "here", self._look)

    def _look(self) -> int | None:
        self.asked += 1
        return self.available

    async def transact(self, work: Any) -> None:
        work(
            SimpleNamespace(events=SimpleNamespace(append=lambda event: self.told.append((event.type, event.payload))))
        )


async def test_little_memory_is_told_once_and_its_end_too_and_nobody_asks_where_no_limit_is_set(
    fake_clock: FakeClock,
) -> None:
    machine = Machine(fake_clock)
    assert (await machine.memory.short_of(), machine.asked) == ("", 0)
    machine.limits.memory = 100
    assert await machine.memory.short_of() == ""
    machine.available = 99
    for _ in range(2):
        assert "99 MB" in await machine.memory.short_of()
    payload = {"node": "here", "available_mb": 99, "wanted_mb": 100}
    assert machine.told == [("controller.memory_low", payload)]
    machine.limits.memory = 0
    assert await machine.memory.short_of() == ""
    assert [kind for kind, _ in machine.told] == ["controller.memory_low", "controller.memory_enough"]
    asked = machine.asked
    assert (await machine.memory.short_of(), machine.asked) == ("", asked)
    machine.limits.memory, machine.available = 100, None
    assert await machine.memory.short_of() == "", "nobody can tell"
    assert len(machine.told) == 2


# ── a wrong clock ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("offset", "is_wrong"),
    [
        (timedelta(0), False),
        (MOST_SKEW, False),
        (-MOST_SKEW, False),
        (MOST_SKEW + SECOND, True),
        (-MOST_SKEW - SECOND, True),
    ],
)
async def test_a_machine_takes_no_work_while_its_clock_is_off(
    fake_clock: FakeClock, offset: timedelta, is_wrong: bool  # noqa: FBT001  a table
) -> None:  # fmt: skip
    asked = []

    async def clock_offset() -> timedelta:
        asked.append(fake_clock.now())
        return offset

    guard = ClockGuard(cast("Any", SimpleNamespace(clock_offset=clock_offset)), fake_clock)
    for _ in range(3):
        if is_wrong:
            with pytest.raises(ClockSkewed):
                await guard.check()
        else:
            await guard.check()
    assert len(asked) == (3 if is_wrong else 1)
    fake_clock.advance(CLOCK_EVERY - SECOND)
    if not is_wrong:
        await guard.check()
        assert len(asked) == 1
        fake_clock.advance(SECOND)
        await guard.check()
        assert len(asked) == 2


# ── what runs leave behind ────────────────────────────────────────────────────────────────────────────────────────────


def kept(**spans: Any) -> City:
    none = {"runs": timedelta(0), "artifacts": timedelta(0), "worktrees_mb": 0}
    return City(workspace=Workspace(name="t"), retention=Retention(**(none | spans)))


def phases(city: City) -> dict[str, timedelta]:
    none: Any = None
    return {one.name: one.at_most_every for one in RunRetention(none, none, none, none).phases(city)}


def test_only_what_is_not_kept_for_ever_is_looked_for() -> None:
    assert phases(kept()) == {"run_outputs": OUTPUTS_EVERY}
    runs = kept(runs=30 * DAY)
    pause = retention.pause(runs.retention)
    assert phases(runs) == {"run_outputs": OUTPUTS_EVERY, "retention_worktrees": pause, "retention_effects": pause}
    artifacts = kept(artifacts=30 * DAY)
    pause = retention.pause(artifacts.retention)
    assert phases(artifacts) == {
        "run_outputs": OUTPUTS_EVERY,
        "retention_worktrees": pause,
        "retention_artifacts": pause,
    }
    assert phases(kept(worktrees_mb=7)) == {"run_outputs": OUTPUTS_EVERY, "retention_worktree_size": SIZE_EVERY}


class Trees:
    """Ended runs with worktrees of so many bytes; what is made smaller by `shed` keeps a tenth."""

    def __init__(self, clock: FakeClock, **sizes: int) -> None:
        self.sizes, self.shed_runs, self.gone = dict(sizes), list[str](), list[str]()
        self.stuck: set[str] = set()
        self.asked: list[Any] = []
        places = SimpleNamespace(size=self._size, shed=self._shed, discard=self._discard)
        agents: Any = SimpleNamespace(
            me=SimpleNamespace(node="here"), places=places, sessions=SimpleNamespace(cleanup=self._cleanup)
        )
        self.made = RunRetention(cast("Any", self), clock, agents, cast("Any", None))
        self.broken = False

    async def read(self, _work: object, node: str, **named: Any) -> list[Any]:
        self.asked.append((node, named["before"]))
        awaited = {"state": "failed", "continued_by": None, "reason": ""}
        return [SimpleNamespace(id=name, **awaited) for name in self.sizes]

    async def _size(self, row: Any) -> int:
        return 0 if row.id in self.gone else self.sizes[row.id] // (10 if row.id in self.shed_runs else 1)

    async def _shed(self, row: Any) -> None:
        self._must_move(row)
        self.shed_runs.append(row.id)

    async def _discard(self, row: Any) -> None:
        self._must_move(row)
        self.gone.append(row.id)

    def _must_move(self, row: Any) -> None:
        if row.id in self.stuck:
            raise Conflict("It is in use.")

    async def _cleanup(self) -> None:
        if self.broken:
            raise OSError(28, "No space left on device", "/x")


async def test_worktrees_lose_what_can_be_made_anew_first_and_the_oldest_go_first(fake_clock: FakeClock) -> None:
    trees = Trees(fake_clock, a=100, b=100, c=100)
    assert await trees.made.bound_worktrees(300) == 0
    assert (trees.shed_runs, trees.gone) == ([], [])
    assert await trees.made.bound_worktrees(210) == 1
    assert (trees.shed_runs, trees.gone) == (["a"], [])
    assert await trees.made.bound_worktrees(25) >= 3
    assert (sorted(set(trees.shed_runs)), trees.gone) == (["a", "b", "c"], ["a"])
    assert trees.asked[0] == ("here", fake_clock.now())


async def test_a_worktree_that_cannot_be_removed_keeps_no_other_one(fake_clock: FakeClock) -> None:
    trees = Trees(fake_clock, a=100, b=100)
    trees.stuck = {"a"}
    assert await trees.made.discard_worktrees(DAY) == 2
    assert trees.gone == ["b"]
    assert trees.asked == [("here", fake_clock.now() - DAY)]
    assert await trees.made.bound_worktrees(0) == 0
    assert MEGABYTE == 1_000_000


async def test_outputs_that_cannot_be_kept_short_are_told(fake_clock: FakeClock) -> None:
    trees = Trees(fake_clock)
    await trees.made._cleanup()
    trees.broken = True
    with pytest.raises(Unavailable, match="No space left"):
        await trees.made._cleanup()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device", "/x"), "/x: No space left on device"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("it went away"), "it went away"),
    ],
)
def test_what_the_machine_says_is_told_with_the_file_where_it_names_one(error: OSError, told: str) -> None:
    assert told_of(error) == told


# ── conditions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def conditions(
    clock: FakeClock, *, rows: dict[str, Any], triggers: list[TriggerRow], off: tuple[str, ...] = ()
) -> list[str]:
    rules: Any = SimpleNamespace(switches=lambda row: Switches(enabled=row.id not in off))
    active: Any = SimpleNamespace(rules=rules)
    none: Any = None
    tx: Any = SimpleNamespace(
        triggers=SimpleNamespace(conditions=lambda: triggers), automations=SimpleNamespace(some=lambda _ids: rows)
    )
    found = Conditions(none, clock, none, active, none)._due(tx)
    return [check.trigger.automation for check in found]


def test_a_condition_is_asked_when_its_interval_is_over_and_its_automation_may_fire(fake_clock: FakeClock) -> None:
    now = fake_clock.now()

    def row(name: str, gate: Any = None, definition: str | None = "") -> Any:
        made = Automation(name, Exec("true"), (Trigger("t", gate or Condition("true", 10 * SECOND)),))
        return SimpleNamespace(
            id=name, definition=snapshots.written(made) if definition == "" else definition, problems=()
        )

    def trigger(name: str, fired: timedelta | None) -> TriggerRow:
        state = TriggerState(now, last_fired_at=None if fired is None else now - fired)
        return TriggerRow(name, "t", "condition", 0, armed=True, state=state)

    rows = {name: row(name) for name in ("never", "due", "young", "off")}
    rows |= {
        "always": row("always", Condition("true", None)),
        "other": row("other", Manual()),
        "broken": row("broken", definition="{}"),
    }
    fired = {"never": None, "due": 10 * SECOND, "young": 9 * SECOND, "off": None, "always": timedelta(0), "other": None,
             "broken": None, "gone": None}  # fmt: skip
    triggers = [trigger(name, span) for name, span in fired.items()]
    assert conditions(fake_clock, rows=rows, triggers=triggers, off=("off",)) == ["never", "due", "always"]
    assert conditions(fake_clock, rows=rows, triggers=[]) == []
