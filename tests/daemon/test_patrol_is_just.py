"""What the patrol does by itself or by wish is no crash, and what it began goes on under the next controller."""

import asyncio

from patrol_town import FRAGILE, HEAD, Town, agent, pool

from lamplighter.adapters.sessions.settling import NOT_READY
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.actions import AgentState
from lamplighter.domain.sessions.idle import DrainReason
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.testing.puppets import until

STRICT = HEAD + "[daemon]\nmax_restarts = 3\n"


async def test_neither_idleness_nor_requests_nor_suspension_lead_to_quarantine(town: Town) -> None:
    declared = agent("mayor", FRAGILE, idle_timeout="15m")
    town.declare(declared, head=STRICT)
    await town.patrolled()
    for _ in range(4):
        town.clock.advance(minutes=17)
        await town.patrolled()
    for _ in range(3):
        await town.provider.set_meta(town.session("mayor"), meta.RESTART_REQUESTED, "1")
        await town.patrolled()
    for _ in range(3):
        town.declare(declared + "suspended = true\n", head=STRICT)
        await town.patrolled()
        town.declare(declared, head=STRICT)
        await town.patrolled()
    await town.crash("mayor", "the only crash")
    await town.patrolled()
    assert await town.alive() == ["mayor"]
    assert await town.events("agent.quarantined") == []


async def test_an_agent_that_obeys_a_drain_by_leaving_is_told_as_stopped_and_starts_again(town: Town) -> None:
    town.declare(agent("mayor", FRAGILE), head=STRICT)
    await town.patrolled()
    for _ in range(4):
        await _ask_to_finish(town, "mayor")
        await town.crash("mayor", "I am done")
        await town.patrolled()
        assert await town.alive() == ["mayor"]
    kinds = [kind for kind, _ in await town.told()]
    assert kinds == ["started", *(["stopped", "started"] * 4)]
    stopped = (await town.events("agent.stopped"))[0]
    assert str(stopped.message).startswith("drained: its program ended with status 3")
    assert [life.counted for life in town.patrol.patrol_history.of(town.session("mayor")).lives] == [True] + 4 * [False]


async def test_a_draining_session_that_vanishes_has_not_crashed(fake_town: Town) -> None:
    fake_town.declare(agent("mayor"))
    await fake_town.patrolled()
    await _ask_to_finish(fake_town, "mayor")
    await fake_town.patrolled()
    fake_town.provider.vanish(fake_town.session("mayor"))
    await fake_town.patrolled()
    assert [kind for kind, _ in await fake_town.told()] == ["started", "stopped", "started"]
    fake_town.provider.vanish(fake_town.session("mayor"))
    await fake_town.patrolled()
    last = fake_town.patrol.patrol_history.of(fake_town.session("mayor")).lives[-1]
    assert last.counted  # this one was not asked to finish


async def test_a_surplus_instance_that_leaves_by_itself_does_not_count_when_it_is_wanted_again(town: Town) -> None:
    wish = town.root / "wish"
    town.declare(pool("hand", most=2, check=f"cat {wish}", body=FRAGILE), head=STRICT)
    wish.write_text("2\n")
    await town.patrolled()
    wish.write_text("1\n")
    town.clock.advance(minutes=1)
    await town.patrolled()
    (leaving,) = [name for name, verdict in town.patrol.verdicts.items() if verdict.state is AgentState.DRAINING]
    await town.crash("hand-1" if leaving == town.session("hand-1") else "hand-2", "bye")
    await town.patrolled()
    (stopped,) = await town.events("agent.stopped")
    assert stopped.message == "drained"
    wish.write_text("2\n")
    town.clock.advance(minutes=1)
    await town.patrolled()
    assert await town.alive() == ["hand-1", "hand-2"]
    assert [life.counted for life in town.patrol.patrol_history.of(leaving).lives] == [True, False]


async def test_quarantine_tells_what_the_program_said_also_after_a_restart_of_the_controller(town: Town) -> None:
    town.declare(agent("lost", 'start_command = "/no/such/program"\n'), head=STRICT)
    if town.kind == "fake":
        await _crashes_of_a_missing_program(town)
    for _ in range(40):
        town.clock.advance(seconds=20)
        await town.patrolled()
        if await town.events("agent.quarantined"):
            break
        await _died(town, "lost")
    (event,) = await town.events("agent.quarantined")
    assert "status 127 (program not found)" in str(event.message)
    assert "/no/such/program" in str(event.message)
    assert "/no/such/program" in event.payload["cause"]
    town.patrol = town.new_patrol()
    await town.patrolled()
    verdict = town.patrol.verdicts[town.session("lost")]
    assert verdict.state is AgentState.QUARANTINED
    assert "/no/such/program" in verdict.reason


async def test_a_failed_start_is_the_cause_that_quarantine_tells(fake_town: Town) -> None:
    ghost = agent("lost", 'provider = "ghost"\n') + '[providers.ghost]\ncommand = "no-such-1"\n'
    fake_town.declare(ghost, head=STRICT)
    for _ in range(4):
        fake_town.clock.advance(seconds=20)
        await fake_town.patrolled()
    (event,) = await fake_town.events("agent.quarantined")
    assert "no-such-1" in str(event.message)


async def test_a_controller_that_does_not_know_the_demand_yet_goes_on_with_the_drains_of_the_one_before(
    town: Town,
) -> None:
    wish = town.root / "wish"
    town.declare(pool("hand", most=3, check=f"cat {wish}"))
    wish.write_text("3\n")
    await town.patrolled()
    wish.write_text("1\n")
    town.clock.advance(minutes=1)
    await town.patrolled()
    before = await _drains(town)
    assert len(before) == 2
    wish.unlink()  # its check fails now: the demand is unknown
    town.patrol = town.new_patrol()
    await town.patrolled()
    assert await _drains(town) == before
    assert await town.events("agent.undrained") == []
    town.clock.advance(minutes=5)
    await town.patrolled()
    assert len(await town.alive()) == 1


async def test_a_renamed_city_stops_the_former_session_before_it_starts_the_new_one(town: Town) -> None:
    body = agent("one") + pool("hand", most=2, least=2)
    town.declare(body)
    await town.patrolled()
    town.patrol = None  # type: ignore[assignment]  # the controller was killed; another begins with the new name
    most: dict[str, int] = {}
    start = town.provider.start

    async def counting(spec: object) -> Seen:
        seen: Seen = await start(spec)
        for name in await town.alive():
            most[name] = max(most.get(name, 0), (await town.alive()).count(name))
        return seen

    town.provider.start = counting
    town.declare(body, head='[workspace]\nname = "new-town"\n')
    await town.patrolled()
    assert await town.alive() == ["hand-1", "hand-2", "one"]
    assert most == {"hand-1": 1, "hand-2": 1, "one": 1}
    assert all(name.startswith("gc-new-town-") for name in await town.provider.seen())


async def test_a_session_found_running_counts_only_if_the_one_before_it_died(fake_town: Town) -> None:
    fake_town.declare(agent("mayor"), head=STRICT)
    await fake_town.patrolled()
    history = fake_town.patrol.patrol_history
    name = SessionName(fake_town.session("mayor"))
    assert await fake_town.patrol.kill(name, "human")
    fake_town.patrol = fake_town.new_patrol()
    spec = await fake_town.patrol.executor._build("mayor")
    await fake_town.provider.start(spec)
    await fake_town.patrolled()
    assert history is not fake_town.patrol.patrol_history
    assert [life.counted for life in fake_town.patrol.patrol_history.of(name).lives] == [True, False]


async def _ask_to_finish(town: Town, name: str) -> None:
    await town.provider.set_meta(town.session(name), meta.DRAIN_REASON, DrainReason.PERSON)
    await town.provider.set_meta(town.session(name), meta.DRAIN, str(int(town.clock.now().timestamp())))


async def _drains(town: Town) -> dict[str, str]:
    found = (await town.provider.seen()).values()
    return {seen.name: seen.meta[meta.DRAIN] for seen in found if seen.meta.get(meta.DRAIN)}


async def _died(town: Town, name: str) -> None:
    from lamplighter.testing.puppets import until

    async def dead() -> bool:
        seen = await town.seen(name)
        return seen is None or not seen.alive

    await until(dead)


async def _crashes_of_a_missing_program(town: Town) -> None:
    """The fake provider runs nothing: every start of it ends as a shell ends that finds no program."""
    start = town.provider.start

    async def dying(spec: object) -> Seen:
        seen: Seen = await start(spec)
        town.provider.say(seen.name, "/bin/sh: 1: /no/such/program: not found")
        town.provider.end(seen.name, 127)
        return seen

    town.provider.start = dying


async def test_a_first_nudge_that_did_not_arrive_is_told_as_an_event(fake_town: Town) -> None:
    fake_town.declare(agent("mayor", 'start_command = "sleep 600"\nnudge = "Look after the lamps."\n'))
    fake_town.provider.deaf[fake_town.session("mayor")] = "The text stayed in its input row."
    await fake_town.patrolled()
    (told,) = await fake_town.events("agent.nudge_failed")
    assert (told.subject, told.message) == ("mayor", "The text stayed in its input row.")


async def test_after_a_restart_of_the_machine_agents_are_started_one_after_another(fake_town: Town) -> None:
    names = [f"lamp{number}" for number in range(4)]
    fake_town.declare("".join(agent(name) for name in names))
    await fake_town.patrolled()
    start, at_once, most = fake_town.provider.start, 0, []

    async def counted(spec: object) -> Seen:
        nonlocal at_once
        at_once += 1
        most.append(at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        return await start(spec)

    fake_town.provider.start = counted
    for expected in (1, 4):
        fake_town.clock.advance(minutes=20)
        if expected == 1:
            fake_town.patrol.executor.booted_at = fake_town.clock.now()
            fake_town.clock.advance(seconds=20)
        most.clear()
        for name in names:
            fake_town.provider.vanish(fake_town.session(name))
        await fake_town.patrolled()
        assert sorted(await fake_town.alive()) == names
        assert (len(most), max(most)) == (4, expected)


async def test_an_agent_that_is_not_ready_in_time_gets_its_first_nudge_once_it_is(fake_town: Town) -> None:
    fake_town.declare(
        agent("mayor", 'start_command = "sleep 600"\nready_prompt_prefix = "> "\nnudge = "Look after the lamps."\n')
    )
    mayor = fake_town.session("mayor")
    fake_town.provider.deaf[mayor] = NOT_READY
    await fake_town.patrolled()
    (told,) = await fake_town.events("agent.nudge_failed")
    assert (told.subject, told.message) == ("mayor", NOT_READY)
    assert "Look after the lamps." not in await fake_town.provider.peek(mayor)
    fake_town.provider.say(mayor, "> ")

    async def nudged() -> bool:
        return bool(await fake_town.events("agent.nudged"))

    await until(nudged)
    assert (await fake_town.provider.peek(mayor)).splitlines().count("Look after the lamps.") == 1
    await fake_town.patrol.close()
