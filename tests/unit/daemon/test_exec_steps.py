"""The steps of a command's run: what it is given, how it ends where it cannot be started, and what is stopped."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lamplighter.daemon.pipeline.exec_job import GRACE, STOPPED, ExecSteps, grace
from lamplighter.daemon.pipeline.jobs import MOST_REPEATS, PRECHECK, Work, verify_key
from lamplighter.daemon.pipeline.slots import Slots
from lamplighter.domain.automations.model import AgentAction, Automation, Exec, Manual, Trigger
from lamplighter.domain.automations.policies import VERIFY_TIMEOUT, Policies
from lamplighter.domain.runs.job import Began, Over, RunEnded, TakenOver, ToldToStop
from lamplighter.domain.runs.lease import Lease
from lamplighter.domain.runs.model import Grade, Run, RunState
from lamplighter.domain.runs.verify import Checked
from lamplighter.domain.secrets import SecretUnknown
from lamplighter.kit.errors import NotFound
from lamplighter.kit.records import changed
from lamplighter.ports.commands import Command, CommandEnded, CommandNotStarted, NoDirectory
from lamplighter.services.automations import snapshots
from lamplighter.services.runs import review
from lamplighter.testing.clock import START, FakeClock

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def row(action: Any = None, **policies: Any) -> Run:
    made = Automation(
        "sweep", action or Exec("make lit"), (Trigger("1", Manual()),), policies=Policies(env={"A": "own"}, **policies)
    )
    return Run(
        "run_1", "sweep", RunState.RUNNING, NOW, started_at=NOW, deadline_at=NOW + timedelta(hours=1),
        lease=Lease(1, "own_1", NOW), definition=json.loads(snapshots.written(made)), rig="web",
    )  # fmt: skip


class Runner:
    """Runs commands as the test says; `ends` are the ends of the next ones, the last of them again and again."""

    def __init__(self, *ends: Any) -> None:
        self.ends = list(ends) or [ended(0)]
        self.ran: list[Command] = []
        self.stopped: list[tuple[str, timedelta]] = []
        self.forgotten: list[str] = []
        self.said: str | Exception = "said hunter22"

    async def run(self, command: Command) -> CommandEnded:
        self.ran.append(command)
        found = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if isinstance(found, Exception):
            raise found
        return cast("CommandEnded", found)

    async def stop(self, key: str, *, grace: timedelta) -> None:
        self.stopped.append((key, grace))

    async def forget(self, key: str) -> None:
        self.forgotten.append(key)

    async def tail(self, _key: str) -> str:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def ended(code: int | None, output: str = "", *, timed_out: bool = False) -> CommandEnded:
    return CommandEnded(code, START, SECOND, output, timed_out)


class Steps:
    """The steps, with what they ask of the city."""

    def __init__(self, *ends: Any) -> None:
        self.runner = Runner(*ends)
        self.clock = FakeClock(NOW)
        self.missing: Exception | None = None
        self.kept: list[tuple[str, str]] = []

        async def opened(env: dict[str, str]) -> dict[str, str]:
            if isinstance(self.missing, SecretUnknown):
                raise self.missing
            return dict(env)

        async def mask() -> Any:
            return lambda text: text.replace("hunter22", "•••")

        def dir_of(rig: str) -> str:
            if isinstance(self.missing, NotFound):
                raise self.missing
            return f"/{rig}"

        daemon = SimpleNamespace(shutdown_timeout=3 * SECOND)
        active: Any = SimpleNamespace(
            secrets=SimpleNamespace(opened=opened, mask=mask), dir_of=dir_of,
            env_of=lambda _rig: {"A": "city", "B": "city"}, rules=SimpleNamespace(cap=None),
            handed=lambda run, trigger: {"TRACE": f"{run} {len(trigger)}"},
            city=SimpleNamespace(daemon=daemon),
        )  # fmt: skip
        store: Any = SimpleNamespace(read=self._read, transact=self._transact)
        self.made = ExecSteps(store, self.clock, active, cast("Any", self.runner), Slots(self.clock))

    async def _read(self, *_args: object) -> dict[str, Any]:
        return {"read": "of the store"}

    async def _transact(self, work: object, run: str, tail: str) -> None:
        assert work is review.keep_output
        self.kept.append((run, tail))


async def test_a_command_has_its_place_its_environment_its_trigger_and_its_limit() -> None:
    steps = Steps()
    work = Work(row(timeout=timedelta(minutes=2)), {"read": "already"})
    assert isinstance(await steps.made.follow(work), Over)
    (command,) = steps.runner.ran
    assert (command.key, command.line, command.work_dir, command.limit) == (
        "run_1",
        "make lit",
        "/web",
        timedelta(minutes=2),
    )
    wanted = {
        "A": "own",
        "B": "city",
        "LAMP_RUN_ID": "run_1",
        "LAMP_AUTOMATION": "sweep",
        "LAMP_ACTOR": "automation:sweep",
        "TRACE": "run_1 1",
    }
    assert dict(command.env) == wanted
    assert json.loads(command.files["LAMP_TRIGGER_FILE"]) == {"read": "already"}
    assert work.ending is not None
    assert (work.ending.state, work.ending.grade) == (RunState.SUCCEEDED, None)
    await steps.made.follow(Work(row()))
    assert json.loads(steps.runner.ran[-1].files["LAMP_TRIGGER_FILE"]) == {"read": "of the store"}


@pytest.mark.parametrize(
    ("end", "state", "reason", "nothing_ran"),
    [
        (NoDirectory("run_1", "/web"), RunState.SKIPPED, "project_missing", False),
        (CommandNotStarted("run_1", "no process"), RunState.FAILED, "not_started", True),
        (ended(3), RunState.FAILED, "exit_3", False),
    ],
    ids=["no directory", "not started", "exit 3"],
)
async def test_a_command_that_cannot_be_started_says_whether_anything_ran(
    end: Any, state: RunState, reason: str, *, nothing_ran: bool
) -> None:
    steps, work = Steps(end), Work(row())
    await steps.made.follow(work)
    assert work.ending is not None
    assert (work.ending.state, work.ending.reason, work.ending.nothing_ran) == (state, reason, nothing_ran)


@pytest.mark.parametrize(
    ("missing", "state", "reason"),
    [
        (SecretUnknown("GH"), RunState.FAILED, "secret_missing"),
        (NotFound("There is no rig `web`."), RunState.SKIPPED, "project_missing"),
    ],
)
async def test_what_it_needs_and_is_gone_ends_the_run_before_anything_is_started(
    missing: Exception, state: RunState, reason: str
) -> None:
    steps, work = Steps(), Work(row())
    steps.missing = missing
    await steps.made.follow(work)
    assert work.ending is not None
    assert (work.ending.state, work.ending.reason, steps.runner.ran) == (state, reason, [])


async def test_what_is_no_command_is_not_run_and_secrets_are_masked_in_what_it_printed() -> None:
    steps, work = Steps(ended(1, "token hunter22\n")), Work(row(AgentAction("Sweep.")))
    await steps.made.follow(work)
    assert work.ending is not None
    assert (work.ending.reason, steps.runner.ran) == ("no_command", [])
    await steps.made.follow(again := Work(row()))
    assert again.ending is not None
    assert (again.ending.output_tail, again.ending.error) == ("token •••\n", "token •••")


@pytest.mark.parametrize(("code", "message"), [(None, Began), (0, Began), (75, Over), (1, Over)])
async def test_a_precheck_comes_first_where_there_is_one(code: int | None, message: type[object]) -> None:
    steps = Steps(ended(0 if code is None else code))
    work = Work(row(precheck=None if code is None else "test -e lamp"))
    assert isinstance(await steps.made.start(work), message)
    assert [one.key for one in steps.runner.ran] == ([] if code is None else [f"run_1{PRECHECK}"])
    assert (work.ending is None) is (message is Began)


async def test_only_a_command_that_ended_well_is_verified() -> None:
    steps, work = Steps(ended(0, "lit\n"), ended(0)), Work(row(verify="make test"))
    await steps.made.follow(work)
    assert work.ending is not None
    assert (work.ending.state, work.ending.grade) == (RunState.SUCCEEDED, Grade.VERIFIED)
    assert [one.line for one in steps.runner.ran] == ["make lit", "make test"]
    red = Steps(ended(1))
    await red.made.follow(Work(row(verify="make test")))
    assert len(red.runner.ran) == 1


async def check(steps: Steps, **policies: Any) -> Checked:
    work = Work(row(verify="make test", **policies))
    return await steps.made.check(work, review.snapshots_of(work.row), Path("/tree"), {"MORE": "1"})


async def test_a_check_runs_in_the_tree_of_its_round_until_the_run_s_deadline_at_most() -> None:
    steps = Steps(ended(2, "red hunter22"))
    assert await check(steps) == Checked(2, "red •••")
    (command,) = steps.runner.ran
    assert (command.key, command.work_dir, command.limit) == (
        verify_key("run_1", 1),
        "/tree",
        min(VERIFY_TIMEOUT, timedelta(hours=1)),
    )
    assert {name: command.env[name] for name in ("MORE", "LAMP_DIR", "LAMP_ROUND", "A")} == {
        "MORE": "1", "LAMP_DIR": "/tree", "LAMP_ROUND": "1", "A": "own",
    }  # fmt: skip
    steps.clock.advance(timedelta(hours=1) - SECOND)
    await check(steps, verify_timeout=timedelta(minutes=1))
    steps.clock.advance(2 * SECOND)
    await check(steps)
    assert [one.limit for one in steps.runner.ran[1:]] == [SECOND, timedelta(0)]
    early = Steps()
    await check(early, verify_timeout=timedelta(minutes=1))
    assert early.runner.ran[0].limit == timedelta(minutes=1)


async def test_a_check_of_which_nobody_saw_the_end_is_run_again_and_not_for_ever() -> None:
    twice = Steps(ended(None), ended(None), ended(0))
    assert (await check(twice)).passed
    assert (len(twice.runner.ran), twice.runner.forgotten) == (3, [verify_key("run_1", 1)] * 2)
    never = Steps(ended(None))
    assert "nobody saw" in (await check(never)).why
    assert len(never.runner.ran) == MOST_REPEATS


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (ended(None, "slow", timed_out=True), "killed at its time limit, after 1.0 s"),
        (CommandNotStarted("x", "no process"), "did not start"),
    ],
    ids=["too slow", "not started"],
)
async def test_a_check_that_did_not_end_by_itself_says_why_and_is_not_repeated(end: Any, why: str) -> None:
    steps = Steps(end)
    found = await check(steps)
    assert why in found.why
    assert (found.passed, found.exit_code, len(steps.runner.ran)) == (False, None, 1)
    steps.missing = SecretUnknown("GH")
    assert "GH" in (await check(steps)).why
    assert len(steps.runner.ran) == 1


@pytest.mark.parametrize(
    ("cause", "kept", "reason"),
    [(RunEnded(), [("run_1", "said •••")], None), (ToldToStop(), [], "interrupted"), (TakenOver(), [], None)],
)
async def test_a_stop_ends_all_of_a_run_s_commands_and_keeps_what_was_said(
    cause: Any, kept: list[tuple[str, str]], reason: str | None
) -> None:
    steps, work = Steps(), Work(row())
    work.cause = cause
    await steps.made.stop(work)
    none = timedelta(0)
    assert steps.runner.stopped == [(f"run_1{PRECHECK}", none), (verify_key("run_1", 1), none), ("run_1", 3 * SECOND)]
    assert steps.kept == kept
    assert (work.ending.reason if work.ending else None) == reason
    if work.ending is not None:
        assert (work.ending.error, work.ending.output_tail) == (STOPPED, "said •••")


async def test_a_stop_goes_on_where_the_output_cannot_be_read_and_a_command_has_a_bounded_grace() -> None:
    steps, work = Steps(), Work(row())
    steps.runner.said, work.cause = OSError(5, "Input/output error"), ToldToStop()
    await steps.made.stop(work)
    assert work.ending is not None
    assert work.ending.output_tail == ""
    city = SimpleNamespace(daemon=SimpleNamespace(shutdown_timeout=timedelta(minutes=1)))
    assert grace(cast("Any", SimpleNamespace(city=city))) == GRACE


@pytest.mark.parametrize(("adopted", "verify"), [(True, "make test"), (False, "make test"), (False, None)])
async def test_what_was_adopted_is_not_forgotten_for_whoever_held_it_may_be_about_to_start_it(
    *, adopted: bool, verify: str | None
) -> None:
    steps, work = Steps(), Work(changed(row(verify=verify), round=2), adopted=adopted)
    await steps.made.release(work)
    checks = [] if verify is None else [verify_key("run_1", 1), verify_key("run_1", 2)]
    assert steps.runner.forgotten == ([] if adopted else ["run_1", f"run_1{PRECHECK}", *checks])
