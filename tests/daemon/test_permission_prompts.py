"""Programs that stand at a permission prompt of their own: seen as waiting, for a while, and then told to people."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from loops_city import Loops
from patrol_town import Town, a_town, agent
from test_agent_runs import add, begin, finished
from test_questions import answer, inbox, loops

from lamplighter.adapters.sessions.fake import FakeProvider
from lamplighter.daemon.patrol.prompts import PermissionPrompts
from lamplighter.domain.city.sections import Session
from lamplighter.domain.inbox.items import InboxItem, Kind, State, sentence
from lamplighter.domain.runs.model import RunState
from lamplighter.domain.sessions.model import SessionName, SessionSpec
from lamplighter.kit.ids import IdSource
from lamplighter.testing.clock import FakeClock
from lamplighter.testing.puppets import until

__all__ = ["loops"]
PROMPT = "rm -rf build Do you want to proceed?"
# Answered, it prints until its prompt has left the screen.
ASKS = (
    "start_command = '''echo rm -rf build; echo 'Do you want to proceed?'; read -r line;"
    " n=0; while [ $n -lt 80 ]; do n=$((n + 1)); echo lit $n; done; sleep 600'''\n"
)


async def test_a_run_whose_program_waits_for_a_permission_ends_with_what_it_asks_for(loops: Loops) -> None:
    loops.parts.active.city = replace(loops.city, session=Session(permission_wait=timedelta(milliseconds=300)))
    await add(loops, "asks", "echo rm -rf build; printf 'Delete it? [y/N] '; sleep 600")
    row = await finished(loops, await begin(loops, "asks"))
    assert (row.state, row.reason) == (RunState.NEEDS_HUMAN, "permission")
    assert row.question is not None
    assert row.question["text"] == "Its program waits for a permission: rm -rf build Delete it? [y/N]"
    assert loops.sleepers() == []
    (item,) = await inbox(loops)
    assert item.fix == f"lamp run answer {row.id} TEXT"
    made = await answer(loops, row.id, "You may.")
    assert made.continues == row.id


async def test_a_run_that_is_only_silent_goes_on(loops: Loops) -> None:
    loops.parts.active.city = replace(loops.city, session=Session(permission_wait=timedelta(milliseconds=1)))
    await add(loops, "works", """echo '{"text": "Do you want to proceed?"}'; sleep 0.8; exit 3""")
    row = await finished(loops, await begin(loops, "works"))
    assert (row.state, row.reason) == (RunState.FAILED, "no_completion")


async def waiting(town: Town, state: State = State.OPEN) -> list[InboxItem]:
    found = await town.store.read(lambda tx: tx.inbox.page(state=state))
    return [item for item in found if item.kind is Kind.WAITING]


@pytest.mark.parametrize("kind", ["tmux", "subprocess"])
async def test_an_agent_at_a_prompt_is_not_at_work_and_is_in_the_inbox_until_it_goes_on(kind: str) -> None:
    async with a_town(kind) as town:
        town.declare('[session]\npermission_wait = "1m"\n' + agent("mayor", ASKS))
        await town.patrolled()
        name = town.session("mayor")

        async def shows(words: str) -> bool:
            return words in await town.provider.peek(name, 100)

        await until(lambda: shows("proceed"))
        town.clock.advance(seconds=10)
        await town.patrolled()
        assert town.patrol.verdicts[name].reason == f"waits at a permission prompt: {PROMPT}"
        assert await waiting(town) == [], "not for long yet"
        town.clock.advance(seconds=60)
        await town.patrolled()
        await town.patrolled()
        (item,) = await waiting(town)
        assert sentence(item) == f"Agent mayor waits at a permission prompt: {PROMPT}"

        other = town.new_patrol()  # the next controller knows nothing of it, and finds the same
        await other.tick()
        await other.patrol_history.flush()
        await other.close()
        assert [one.id for one in await waiting(town)] == [item.id]

        heard = await town.seen("mayor")
        assert heard is not None

        async def is_later() -> bool:  # tmux tells the last activity to the second
            return heard.last_activity is not None and datetime.now(UTC) > heard.last_activity + timedelta(seconds=1.1)

        await until(is_later)
        await town.provider.nudge(name, "1")
        await until(lambda: shows("lit 80"))
        await town.patrolled()
        town.clock.advance(seconds=10)
        await town.patrolled()
        assert town.patrol.verdicts[name].reason == ""
        assert await waiting(town) == []
        (settled,) = await waiting(town, State.SETTLED)
        assert settled.settled_how == "unblocked"


async def test_one_that_draws_while_it_asks_waits_since_it_was_first_seen_so() -> None:
    now, ids = datetime(2026, 3, 1, tzinfo=UTC), IdSource(FakeClock(datetime(2026, 3, 1, tzinfo=UTC)))
    provider, name = FakeProvider(FakeClock(now), ids, city="c"), SessionName("mayor")
    await provider.start(SessionSpec(name, ("codex",), "/"))
    prompts = PermissionPrompts(provider)

    async def at(seconds: float) -> list[str]:
        moment = now + timedelta(seconds=seconds)
        provider.change(name, last_activity=moment)
        await prompts.look(await provider.seen(), moment)
        return [f"{one.what} {(one.since - now).total_seconds():g}" for one in prompts.waiting.values()]

    assert await at(0) == []
    told = "Would you like to run the following command?"
    provider.say(name, told, "$ x", "> 1. Yes", "Press enter to confirm or esc to cancel")
    assert await at(1) == [], "not yet looked at again"
    assert await at(6) == [f"{told} $ x 6"]
    assert await at(12) == [f"{told} $ x 6"]
    provider.say(name, "one", "two", "three")
    assert await at(18) == []
