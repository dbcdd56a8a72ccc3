"""Case 40: everything down, in order, every step bounded."""

import asyncio
from datetime import timedelta

from patrol_town import Town, agent

from lamplighter.adapters.sessions.fake import FakeProvider, FakeSession
from lamplighter.daemon.shutdown import stop_all

GRACE = timedelta(seconds=20)


async def test_case_40_all_are_interrupted_and_those_that_leave_are_not_waited_for(town: Town) -> None:
    town.declare(agent("mayor") + agent("deputy"))
    await town.patrolled()
    if town.kind == "fake":
        _obey_interrupts(town.provider)
    await town.patrol.close()
    async with asyncio.timeout(15):
        done = await stop_all(town.provider, town.patrol.patrol_history, within=GRACE)
    assert (done.agents, done.left) == (("deputy", "mayor"), ())
    assert await town.provider.seen() == {}
    stopped = await town.events("agent.stopped")
    assert sorted(str(event.subject) for event in stopped) == ["deputy", "mayor"]
    assert {event.message for event in stopped} == {"the city stopped"}


async def test_case_40_survivors_of_the_interrupt_are_stopped(town: Town) -> None:
    stubborn = """start_command = '''trap "" INT; while :; do sleep 1000; done'''\n"""
    town.declare(agent("mayor", stubborn))
    await town.patrolled()
    await town.patrol.close()
    done = await stop_all(town.provider, town.patrol.patrol_history, within=timedelta(seconds=0.3))
    assert (done.agents, done.left) == (("mayor",), ())
    assert await town.provider.seen() == {}


async def test_case_40_interrupts_come_before_any_stop(fake_town: Town) -> None:
    fake_town.declare(agent("mayor") + agent("deputy"))
    await fake_town.patrolled()
    fake_town.provider.calls.clear()
    await stop_all(fake_town.provider, fake_town.patrol.patrol_history, within=timedelta(seconds=0.1))
    assert [call[0] for call in fake_town.provider.calls] == ["interrupt", "interrupt", "stop", "stop"]


async def test_case_40_without_grace_all_are_stopped_at_once(fake_town: Town) -> None:
    fake_town.declare(agent("mayor"))
    await fake_town.patrolled()
    fake_town.provider.calls.clear()
    await stop_all(fake_town.provider, fake_town.patrol.patrol_history, within=timedelta(0))
    assert [(call[0], call[2:]) for call in fake_town.provider.calls] == [("stop", ("0",))]


async def test_what_would_not_stop_is_told(fake_town: Town) -> None:
    fake_town.declare(agent("mayor") + agent("deputy"))
    await fake_town.patrolled()
    fake_town.provider.no_stop[fake_town.session("mayor")] = "it clings to life"
    done = await stop_all(fake_town.provider, fake_town.patrol.patrol_history, within=timedelta(0))
    fake_town.provider.no_stop.clear()
    assert done.agents == ("deputy",)
    assert "clings to life" in done.left[0]


async def test_no_decision_follows_the_end_of_the_patrol(fake_town: Town) -> None:
    fake_town.declare(agent("mayor"))
    await fake_town.patrolled()
    await fake_town.patrol.close()
    await stop_all(fake_town.provider, fake_town.patrol.patrol_history, within=timedelta(0))
    await fake_town.patrol.tick()
    await fake_town.patrol.settled()
    assert await fake_town.alive() == []


def _obey_interrupts(provider: FakeProvider) -> None:
    def program(owner: FakeProvider, session: FakeSession, text: str) -> None:
        if text == "\x03":
            owner.end(session.spec.name, 130)

    provider._program = program
