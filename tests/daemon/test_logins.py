"""Runs whose login is refused or limited: one fails by it, the others wait or are skipped, and go on by themselves.

The program is a script that behaves as Claude Code does; how the real one does is seen in `tests/agents`.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from loops_city import Loops, open_loops
from test_agent_runs import complete, finished, started

from lamplighter.domain.city.model import Configuration
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.sessions.logins import CHECK_EVERY, LoginState
from lamplighter.kit.clock import SystemClock, rfc3339
from lamplighter.services import configurations, logins
from lamplighter.services.automations import firing
from lamplighter.services.runs import review, transcripts
from lamplighter.services.runs.views import view
from lamplighter.store.url import Place

PROGRAM = """#!/bin/sh
if [ "$1 $2" = "auth status" ]; then
    [ -e "$HOME/.claude/.credentials.json" ] && exit 0
    echo '{"loggedIn": false}'; exit 1
fi
[ "$1" = --version ] && exit 1
answer=$(cat "$ANSWERS/claude")
case "$answer" in
*ok*) while [ ! -e "$ANSWERS/done-$LAMP_RUN_ID" ]; do sleep 0.05; done ;;
*) printf '{"type":"result","is_error":true,"result":"%s"}\\n' "$answer"; exit 1 ;;
esac
"""
IN_ITS_HOME = """#!/bin/sh
echo "$CLAUDE_CONFIG_DIR" >> "$ANSWERS/homes"
"""
OTHER = """#!/bin/sh
[ "$1" = --version ] && { echo "other 1.2.3"; exit 0; }
while [ ! -e "$ANSWERS/done-$LAMP_RUN_ID" ]; do sleep 0.05; done
"""
REFUSED = "Invalid API key - Please run /login"


class Ahead(SystemClock):
    """A clock that tests set ahead, so that nobody has to wait."""

    by = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.by


class Town:
    """A city with the program in a home of its own."""

    def __init__(self, loops: Loops, root: Path, clock: Ahead) -> None:
        self.loops, self.root, self.clock = loops, root, clock
        self.home, self.bin = root / "home", root / "bin"
        for folder in (self.home / ".claude", self.bin):
            folder.mkdir(parents=True)
        for name, text in (("claude", PROGRAM), ("codex", OTHER)):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)

    async def set_up(self, **keys: Any) -> None:
        path = f"{self.bin}:{os.environ['PATH']}"
        env = {"PATH": path, "HOME": str(self.home), "ANSWERS": str(self.root)}
        given = Configuration(name="own", preset="claude", env=env, **keys)
        await self.loops.store.transact(configurations.sync, (given,), self.clock.now())

    def answers(self, text: str) -> None:
        (self.root / "claude").write_text(text)

    def sign_in(self, text: str = "{}") -> None:
        (self.home / ".claude" / ".credentials.json").write_text(text)

    async def add(self, name: str, *, agent: dict[str, Any] | None = None, **keys: Any) -> None:
        told = {"prompt": "Light the lamps.", "configuration": "own", **(agent or {})}
        await self.loops.add(name, agent=told, gate="cooldown", interval="1000h", **keys)

    async def fire(self, name: str) -> str:
        """As time fires it: a person's own run is started whatever is known."""
        store, rules, ctx = self.loops.store, self.loops.rules, self.loops.context
        fired = await store.transact(firing.run_by_hand, firing.ByHand(name), rules=rules, ctx=ctx)
        await store.transact(lambda tx: tx.db.execute(
            "UPDATE runs SET trigger_kind = 'cooldown' WHERE id = :id", {"id": fired.run}))  # fmt: skip
        return fired.run

    async def ended(self, run: str) -> Run:
        return await finished(self.loops, run)

    async def looked(self, run: str) -> Run:
        """After whatever is due now."""
        for _ in range(3):
            await self.loops.parts.dispatcher.tick()
            await self.loops.parts.dispatcher.handling.all_done()
        return await self.loops.get(run)

    async def held(self) -> list[logins.LoginView]:
        return await self.loops.store.read(logins.held)

    async def events(self) -> list[str]:
        found = await self.loops.store.read(lambda tx: tx.events.after(0, limit=500))
        return [one.type for one in found if one.type.startswith("login.")]

    async def due_at(self, run: str) -> datetime:
        row = await self.loops.store.read(lambda tx: tx.db.row(
            "SELECT min(due_at) AS at FROM outbox WHERE state = 'pending' AND run_id = :run", {"run": run},
        ))  # fmt: skip
        assert row is not None
        return datetime.fromtimestamp(row["at"] / 1e6, self.clock.now().tzinfo)


@pytest.fixture
async def town(place: Place, tmp_path: Path) -> AsyncIterator[Town]:
    clock = Ahead()
    async with open_loops(place, tmp_path, clock) as loops:
        found = Town(loops, tmp_path, clock)
        await found.set_up()
        yield found


async def completed(town: Town, *runs: str) -> Run:
    """Complete these runs; returns the last one."""
    for run in runs:
        await started(town.loops, run)
        await complete(town.loops, run)
        (town.root / f"done-{run}").touch()
    return await town.ended(runs[-1])


async def test_what_a_program_said_long_before_its_end_explains_its_failure(town: Town) -> None:
    """As OpenHands does, which shows its whole conversation afterwards."""
    shown = """*) printf '{"type":"result","is_error":true,"result":"%s"}\\n' "$answer"
    n=0; while [ $n -lt 400 ]; do echo '{"type":"system","text":"what it was told"}'; n=$((n + 1)); done; exit 0 ;;"""
    end = PROGRAM.index("*) printf")
    (town.bin / "claude").write_text(f"{PROGRAM[:end]}{shown}\nesac\n")
    town.sign_in()
    town.answers(REFUSED)
    await town.add("light")
    row = await town.ended(await town.fire("light"))
    assert (row.state, row.reason, row.error) == (RunState.FAILED, "login", REFUSED)
    assert REFUSED not in row.output_tail


async def test_one_run_is_failed_by_a_refused_login_and_the_others_wait_until_it_works_again(town: Town) -> None:
    town.sign_in()
    town.answers(REFUSED)
    await town.add("light")
    await town.add("trim", auto_disable_after=1)
    first = await town.ended(await town.fire("light"))
    assert (first.state, first.reason, first.error) == (RunState.FAILED, "login", REFUSED)
    (one,) = await town.held()
    assert (one.preset, one.state, one.detail) == ("claude", "login", REFUSED)
    assert one.home == str(town.home / ".claude")
    assert one.sign_in is not None
    assert "/login" in one.sign_in
    assert await town.events() == ["login.refused"]

    waiting = await town.fire("trim")
    row = await town.looked(waiting)
    assert (row.state, row.reason, row.error) == (RunState.READY, "login", REFUSED)
    assert row.deadline_at is not None
    assert row.deadline_at > town.clock.now() + timedelta(hours=12)
    assert await town.due_at(waiting) <= town.clock.now() + CHECK_EVERY

    town.clock.by += CHECK_EVERY * 2
    assert (await town.looked(waiting)).state is RunState.READY, "nothing changed, so nothing is tried"

    town.answers("ok")
    town.sign_in('{"new": "token"}')
    town.clock.by += CHECK_EVERY * 2
    done = await completed(town, waiting)
    assert (done.state, done.reason) == (RunState.SUCCEEDED, "succeeded")
    assert done.deadline_at is not None
    assert done.deadline_at < town.clock.now() + timedelta(hours=3), "set anew"
    assert await town.held() == []
    assert await town.events() == ["login.refused", "login.works"]


async def test_of_those_that_wait_one_tries_and_fails_and_the_others_go_on_waiting(town: Town) -> None:
    town.sign_in()
    town.answers(REFUSED)
    for name in ("light", "trim", "count"):
        await town.add(name)
    await town.ended(await town.fire("light"))
    runs = [await town.fire(name) for name in ("trim", "count")]
    for run in runs:
        assert (await town.looked(run)).state is RunState.READY
    town.sign_in("another one that is refused, too")
    town.clock.by += CHECK_EVERY * 2
    rows = [await town.ended(runs[0]), await town.loops.get(runs[1])]
    assert sorted((row.state, row.reason) for row in rows) == [(RunState.FAILED, "login"), (RunState.READY, "login")]
    assert await town.events() == ["login.refused"], "told once"
    (one,) = await town.loops.store.read(lambda tx: tx.logins.all())
    assert one.trying is None


async def test_a_run_that_may_not_wait_is_skipped_and_nothing_is_counted(town: Town) -> None:
    town.sign_in()
    town.answers(REFUSED)
    await town.add("light", auto_disable_after=1)
    await town.add("trim", catch_up="skip")
    await town.ended(await town.fire("light"))
    light = await town.loops.store.read(lambda tx: tx.automations.named("light"))
    assert light is not None
    assert (light.enabled, light.failures) == (True, 0)
    row = await town.looked(await town.fire("trim"))
    assert (row.state, row.reason, row.error) == (RunState.SKIPPED, "login", REFUSED)
    told = await town.loops.store.read(lambda tx: tx.trigger_events.get(row.trigger_event or ""))
    assert told is not None
    assert (told.status, told.reason) == ("skipped", "login")


async def test_a_run_that_waited_as_long_as_it_may_is_skipped(town: Town) -> None:
    town.sign_in()
    town.answers(REFUSED)
    await town.add("light")
    await town.add("trim", catch_up={"mode": "one", "within": "10m"})
    await town.ended(await town.fire("light"))
    run = await town.fire("trim")
    assert (await town.looked(run)).state is RunState.READY
    town.clock.by += timedelta(minutes=11)
    row = await town.looked(run)
    assert (row.state, row.reason) == (RunState.SKIPPED, "login")


async def test_a_program_that_can_be_asked_is_not_started_without_a_login(town: Town) -> None:
    town.answers("ok")
    await town.add("light")
    run = await town.ended(await town.fire("light"))
    assert (run.state, run.reason, run.session_id) == (RunState.FAILED, "login", None)
    assert "not signed in" in run.error

    waiting = await town.fire("light")
    assert (await town.looked(waiting)).reason == "login"
    town.clock.by += timedelta(hours=2)
    assert (await town.looked(waiting)).state is RunState.READY, "asked first, and it still says no"
    town.sign_in()
    town.clock.by += CHECK_EVERY * 2
    assert (await completed(town, waiting)).state is RunState.SUCCEEDED


async def test_a_run_by_hand_is_started_and_tells_what_it_finds(town: Town) -> None:
    town.sign_in()
    town.answers(REFUSED)
    await town.add("light")
    await town.ended(await town.fire("light"))
    run = await town.ended(await town.loops.fire("light"))
    assert (run.state, run.reason) == (RunState.FAILED, "login")
    town.answers("ok")
    again = await town.loops.fire("light")
    assert (await completed(town, again)).state is RunState.SUCCEEDED
    assert await town.held() == []


async def test_a_login_with_other_keys_is_another_one(town: Town) -> None:
    town.sign_in()
    town.answers(REFUSED)
    await town.add("light")
    await town.ended(await town.fire("light"))
    env = {"PATH": f"{town.bin}:{os.environ['PATH']}", "HOME": str(town.home), "ANSWERS": str(town.root)}
    given = Configuration(name="own", preset="claude", env={**env, "ANTHROPIC_API_KEY": "new"})
    await town.loops.store.transact(configurations.sync, (given,), town.clock.now())
    town.answers("ok")
    assert (await completed(town, await town.fire("light"))).state is RunState.SUCCEEDED
    assert await town.held() == [], "the refusal of the old key is over"


async def test_a_configuration_with_a_home_of_its_own_has_a_login_of_its_own(town: Town) -> None:
    """The program is told of it, and a refusal there holds nobody who works with the login of the user."""
    (town.bin / "claude").write_text(PROGRAM.replace("#!/bin/sh\n", IN_ITS_HOME))
    town.sign_in()
    await town.set_up(home="apart")
    (town.root / "apart").mkdir()
    town.answers(REFUSED)
    await town.add("light")
    refused = await town.ended(await town.fire("light"))
    assert (refused.state, refused.reason) == (RunState.FAILED, "login")
    (one,) = await town.held()
    assert one.home == str(town.root / "apart")
    assert set((town.root / "homes").read_text().split()) == {str(town.root / "apart")}

    await town.set_up()
    town.answers("ok")
    done = await completed(town, await town.fire("light"))
    assert done.state is RunState.SUCCEEDED
    assert [held.home for held in await town.held()] == [str(town.root / "apart")], "it waits for its own sign-in"


async def test_a_retry_after_a_limit_starts_when_that_is_lifted_and_not_before(town: Town) -> None:
    town.sign_in()
    lifted = (town.clock.now() + timedelta(hours=2)).replace(microsecond=0)
    town.answers(f"API Error: 429 Usage limit reached, resets at {rfc3339(lifted)}")
    await town.add("light", retry=1, auto_disable_after=1)
    await town.add("trim")
    first = await town.ended(await town.fire("light"))
    assert (first.state, first.reason, first.lifts_at) == (RunState.FAILED, "provider_limit", lifted)
    assert await town.events() == ["login.limited"]
    (again,) = await town.loops.store.read(lambda tx: [one for one in tx.runs.page() if one.retries == first.id])
    assert await town.due_at(again.id) == lifted

    other = await town.looked(await town.fire("trim"))
    assert (other.state, other.reason, other.lifts_at) == (RunState.READY, "provider_limit", lifted)
    assert await town.due_at(other.id) == lifted
    town.clock.by += timedelta(hours=1, minutes=59)
    assert (await town.looked(other.id)).state is RunState.READY
    town.clock.by += timedelta(minutes=2)
    town.answers("ok")
    assert (await completed(town, again.id, other.id)).state is RunState.SUCCEEDED
    assert (await town.loops.get(again.id)).state is RunState.SUCCEEDED


async def test_a_program_that_told_of_a_limit_and_falls_silent_is_ended_for_it(town: Town) -> None:
    """As Codex does, which says that it connects again, and not that it waits for two hours before."""
    (town.bin / "claude").write_text(PROGRAM.replace("exit 1 ;;", "exec sleep 600 ;;"))
    town.sign_in()
    town.answers("Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)")
    await town.add("light", deadline="2h")
    run = await town.fire("light")

    async def told() -> bool:
        await town.looked(run)
        return any(event.kind == "error" for event in await town.loops.store.read(transcripts.of_run, run))

    await town.loops.until(told)
    town.clock.by += timedelta(minutes=14)
    assert (await town.looked(run)).state is RunState.RUNNING
    town.clock.by += timedelta(minutes=2)
    ended = await town.ended(run)
    assert (ended.state, ended.reason, ended.lifts_at) == (RunState.FAILED, "provider_limit", None)


GOOSE = """#!/bin/sh
[ "$1" = --version ] && exit 1
mkdir -p "$XDG_STATE_HOME/goose/logs/cli/today" && cp "$ANSWERS/log" "$XDG_STATE_HOME/goose/logs/cli/today/1.log"
ls "$XDG_STATE_HOME" > "$ANSWERS/listed" && mv "$ANSWERS/listed" "$ANSWERS/state"
exec sleep 600
"""


async def test_a_wait_that_a_program_only_logs_ends_its_run_with_the_time_the_limit_is_lifted(town: Town) -> None:
    (town.bin / "goose").write_text(GOOSE)
    (town.bin / "goose").chmod(0o755)
    (town.home / ".local/state/other").mkdir(parents=True)
    at = town.clock.now().replace(microsecond=0)
    why = (
        'Request failed, retrying (1/3): RateLimitExceeded { details: "Rate limit reached", retry_delay: Some(3600s) }'
    )
    entries = [
        {"timestamp": rfc3339(at), "fields": {"message": one}} for one in (why, "Backing off for 3600s before retry")
    ]
    (town.root / "log").write_text("".join(json.dumps(one) + "\n" for one in entries))
    await town.add("light", agent={"preset": "goose"}, deadline="2h")
    run = await town.fire("light")
    await started(town.loops, run)
    await town.loops.until(lambda: _is_there(town.root / "state"))
    town.clock.by += timedelta(seconds=20)
    ended = await town.ended(run)
    assert (ended.state, ended.reason) == (RunState.FAILED, "provider_limit"), ended.error
    assert ended.lifts_at == at + timedelta(hours=1)
    (held,) = await town.held()
    assert (held.preset, held.until) == ("goose", ended.lifts_at)
    assert {"goose", "other"} <= set((town.root / "state").read_text().split()), "the rest of its state is the user's"


async def _is_there(path: Path) -> bool:
    return path.exists()


async def test_a_limit_without_a_time_fails_the_run_and_holds_nothing(town: Town) -> None:
    town.sign_in()
    town.answers("API Error: 429 Too Many Requests")
    await town.add("light", agent={"fallback_preset": "codex"})
    first = await town.ended(await town.fire("light"))
    assert (first.state, first.reason, first.lifts_at) == (RunState.FAILED, "provider_limit", None)
    assert await town.held() == []
    assert len(await town.loops.store.read(lambda tx: tx.runs.page())) == 1, "nor is it tried over and over"


async def test_a_fallback_is_taken_while_the_limit_is_reached_and_stands_on_the_run(town: Town) -> None:
    town.sign_in()
    lifted = (town.clock.now() + timedelta(hours=2)).replace(microsecond=0)
    town.answers(f"API Error: 429 Usage limit reached, resets at {rfc3339(lifted)}")
    await town.add("light", agent={"fallback_preset": "codex", "fallback_model": "small", "model": "large"})
    first = await town.fire("light")
    for _ in range(6):
        await town.looked(first)
        await asyncio.sleep(0)

    async def failed() -> bool:
        return (await town.loops.get(first)).ended

    await town.loops.until(failed)
    (again,) = await town.loops.store.read(lambda tx: [one for one in tx.runs.page() if one.retries == first])
    done = await completed(town, again.id)
    assert done.state is RunState.SUCCEEDED
    told = view(done).in_force
    assert told is not None
    assert (told.version, told.preset, told.model, told.fallback) == ("1.2.3", "codex", "small", True)
    before = view(await town.loops.get(first)).in_force
    assert before is not None
    assert (before.preset, before.model, before.fallback) == ("claude", "large", False)


async def test_a_process_that_dies_while_it_tries_leaves_the_login_to_the_next(town: Town) -> None:
    town.sign_in()
    town.answers(REFUSED)
    await town.add("light")
    await town.ended(await town.fire("light"))
    run = await town.fire("light")
    await town.looked(run)
    town.answers("ok")
    town.sign_in("new")
    town.clock.by += CHECK_EVERY * 2
    await started(town.loops, run)
    (one,) = await town.loops.store.read(lambda tx: tx.logins.not_working())
    assert one.trying == run
    await town.loops.store.transact(review.cancel, run, ctx=town.loops.context)
    await town.ended(run)
    (one,) = await town.loops.store.read(lambda tx: tx.logins.not_working())
    assert (one.state, one.trying) == (LoginState.REFUSED, None), "a canceled run found nothing out"


async def test_what_is_in_force_stands_on_the_run(town: Town) -> None:
    town.sign_in()
    town.answers("ok")
    (town.root / "prompts").mkdir()
    (town.root / "prompts/more.md").write_text("Count the wicks.\n" * 20_000)
    await town.set_up(mode="plan", effort="high")
    await town.add("light", agent={"includes": ["prompts/more.md"], "model": "large"})
    done = await completed(town, await town.fire("light"))
    told = view(done).in_force
    assert told is not None
    assert (told.preset, told.model, told.effort, told.mode) == ("claude", "large", "high", "plan")
    assert told.login == str(town.home / ".claude")
    assert told.prompt_digest is not None
    assert len(told.prompt_digest) == 64


async def test_an_effort_that_a_program_cannot_be_told_is_refused_by_name(town: Town) -> None:
    await town.add("light", agent={"preset": "shell", "effort": "max"})
    row = await town.ended(await town.fire("light"))
    assert (row.state, row.reason) == (RunState.FAILED, "effort_not_offered")
    assert "effort `max`" in row.error


@pytest.mark.parametrize("name", ["missing.md", "/etc/hostname", "../outside.md", "binary"])
async def test_a_file_of_the_prompt_that_cannot_be_read_is_told(town: Town, name: str) -> None:
    town.sign_in()
    (town.root / "binary").write_bytes(b"\xff\xfe\x00")
    (town.root.parent / "outside.md").write_text("Elsewhere.")
    await town.add("light", agent={"prompt_file": name})
    row = await town.ended(await town.fire("light"))
    assert (row.state, row.reason) == (RunState.FAILED, "prompt_unreadable")
