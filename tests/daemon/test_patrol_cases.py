"""The acceptance cases of the patrol, 24 to 38, each on the fake provider and on real sessions."""

import asyncio
import json
import os
from datetime import timedelta

import pytest
from patrol_town import FRAGILE, HEAD, Town, agent, pool

from lamplighter.domain.beads.model import NewBead
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.actions import AgentState, NoteEnd
from lamplighter.domain.sessions.model import Seen, SessionSpec
from lamplighter.kit.errors import Unavailable
from lamplighter.services.beads import changes as beads
from lamplighter.services.context import acting


async def test_case_24_a_wanted_agent_is_started_with_reason_event_and_hash(town: Town) -> None:
    town.declare(agent("mayor"))
    await town.patrolled()
    seen = await town.seen("mayor")
    assert seen is not None
    assert seen.alive
    assert seen.meta[meta.FINGERPRINT]
    (event,) = await town.events()
    assert (event.type, event.subject, event.message) == ("agent.started", "mayor", "initial start")


async def test_case_25_a_healthy_session_is_left_alone_also_without_a_recorded_hash(town: Town) -> None:
    town.declare(agent("mayor"))
    await town.patrolled()
    before = await town.seen("mayor")
    await town.patrolled()
    await town.provider.remove_meta(town.session("mayor"), meta.FINGERPRINT)
    town.declare(agent("mayor", 'start_command = "sleep 601"\n'))
    await town.patrolled()
    after = await town.seen("mayor")
    assert (before and before.session_id) == (after and after.session_id)
    assert await town.told() == [("started", "mayor")]


async def test_case_26_drift_drains_first_then_restarts_with_the_new_hash_and_says_what_changed(town: Town) -> None:
    town.declare(agent("mayor"))
    await town.patrolled()
    before = await town.seen("mayor")
    town.declare(agent("mayor", 'start_command = "sleep 601"\n'))
    await town.patrolled()
    (draining,) = await town.events("agent.draining")
    assert draining.message == "drift: command"
    assert [verdict.state for verdict in town.patrol.verdicts.values()] == [AgentState.DRAINING]
    await town.provider.set_meta(town.session("mayor"), meta.DRAIN_ACK, "1")
    await town.patrolled()
    after = await town.seen("mayor")
    assert before is not None
    assert after is not None
    assert after.alive
    assert before.session_id != after.session_id
    assert before.meta[meta.FINGERPRINT] != after.meta[meta.FINGERPRINT]
    assert [kind for kind, _ in await town.told()] == ["started", "draining", "stopped", "started"]
    await town.patrolled()
    assert len(await town.told()) == 4


async def test_case_26_a_failed_stop_is_followed_by_no_start(fake_town: Town) -> None:
    fake_town.declare(agent("mayor"))
    await fake_town.patrolled()
    fake_town.declare(agent("mayor", 'start_command = "sleep 601"\n'))
    await fake_town.patrolled()
    await fake_town.provider.set_meta(fake_town.session("mayor"), meta.DRAIN_ACK, "1")
    fake_town.provider.no_stop[fake_town.session("mayor")] = "stuck"
    fake_town.provider.calls.clear()
    await fake_town.patrolled()
    assert [call[0] for call in fake_town.provider.calls] == ["stop"]
    assert "stuck" in fake_town.patrol.problems["agent mayor"]
    fake_town.provider.no_stop.clear()


async def test_case_27_a_start_that_fails_is_told_and_leaves_no_hash_and_the_others_start(town: Town) -> None:
    town.declare(agent("lost", 'provider = "ghost"\n') + agent("mayor") + '[providers.ghost]\ncommand = "no-such-1"\n')
    await town.patrolled()
    assert await town.alive() == ["mayor"]
    assert await town.seen("lost") is None
    kinds = {kind for kind, subject in await town.told() if subject == "lost"}
    assert kinds == {"start_failed"}
    assert "no-such-1" in town.patrol.problems["agent lost"]


async def test_case_28_a_zombie_is_told_with_its_last_words_and_restarted(town: Town) -> None:
    town.declare(agent("mayor", FRAGILE))
    await town.patrolled()
    await town.crash("mayor", "the oil ran out")
    await town.patrolled()
    started, crashed, again = await town.events()
    assert (crashed.type, again.message) == ("agent.crashed", "crash recovery")
    assert "the oil ran out" in str(crashed.message)
    assert crashed.payload["exit_status"] == 3
    assert started.payload["session_id"] == crashed.payload["session_id"] != again.payload["session_id"]
    assert await town.alive() == ["mayor"]


async def test_a_zombie_that_a_signal_ended_is_told_with_the_signal(fake_town: Town) -> None:
    fake_town.declare(agent("mayor"))
    await fake_town.patrolled()
    fake_town.provider.say(fake_town.session("mayor"), "step 7")
    fake_town.provider.end(fake_town.session("mayor"), 137)
    await fake_town.patrolled()
    (crashed,) = await fake_town.events("agent.crashed")
    assert crashed.message == "ended by SIGKILL; what it wrote last:\nstep 7"


async def test_the_status_of_another_session_is_not_taken_for_that_of_the_one_that_ended(fake_town: Town) -> None:
    fake_town.declare(agent("mayor"))
    await fake_town.patrolled()
    await fake_town.crash("mayor", "the oil ran out")
    session = fake_town.session("mayor")
    seen = await fake_town.provider.see(session)
    assert seen is not None
    for session_id in ("ses_before", seen.session_id):
        await fake_town.patrol.executor.carry_out([NoteEnd(session, "mayor", session_id, None, has_output=True)])
    crashed = [one.payload for one in await fake_town.events() if one.type == "agent.crashed"]
    assert [(one["session_id"], one["exit_status"]) for one in crashed] == [("ses_before", None), (seen.session_id, 3)]


async def test_case_28_a_zombie_without_a_word_is_restarted_without_the_event(fake_town: Town) -> None:
    fake_town.declare(agent("mayor"))
    await fake_town.patrolled()
    await fake_town.crash("mayor", "")
    await fake_town.patrolled()
    assert await fake_town.told() == [("started", "mayor"), ("started", "mayor")]
    starts = await fake_town.store.read(lambda tx: tx.agents.latest(fake_town.session("mayor")))
    assert [start.exit_status for start in starts] == [None, 3]


async def test_case_29_a_session_nobody_wants_is_stopped_as_an_orphan(town: Town) -> None:
    town.declare(agent("mayor") + agent("deputy"))
    await town.patrolled()
    town.declare(agent("mayor"))
    await town.patrolled()
    assert await town.alive() == ["mayor"]
    (stopped,) = await town.events("agent.stopped")
    assert (stopped.subject, stopped.message) == ("deputy", "not in the configuration")


async def test_case_29_a_stop_that_fails_is_not_fatal_and_is_tried_again(fake_town: Town) -> None:
    fake_town.declare(agent("mayor") + agent("deputy"))
    await fake_town.patrolled()
    name = fake_town.session("deputy")
    fake_town.provider.no_stop[name] = "stuck"
    fake_town.declare(agent("mayor"))
    await fake_town.patrolled()
    assert await fake_town.alive() == ["deputy", "mayor"]
    del fake_town.provider.no_stop[name]
    await fake_town.patrolled()
    assert await fake_town.alive() == ["mayor"]


async def test_cases_30_to_32_surplus_drains_once_is_wanted_again_acknowledges_and_times_out(town: Town) -> None:
    wish = town.root / "wish"
    town.declare(pool("hand", most=3, check=f"cat {wish}", drain="5m"))
    wish.write_text("3\n")
    await town.patrolled()
    assert await town.alive() == ["hand-1", "hand-2", "hand-3"]

    async def wants(number: int) -> None:
        wish.write_text(f"{number}\n")
        town.clock.advance(seconds=31)
        await town.patrolled()

    await wants(2)
    assert len(await town.alive()) == 3, "asked to finish, not stopped"
    (draining,) = await town.events("agent.draining")
    await wants(2)
    assert len(await town.events("agent.draining")) == 1, "marked once"
    await wants(3)
    (undrained,) = await town.events("agent.undrained")
    assert undrained.subject == draining.subject
    await wants(2)
    again = (await town.events("agent.draining"))[-1]
    await town.provider.set_meta(town.session(str(again.subject)), meta.DRAIN_ACK, "1")
    await town.patrolled()
    assert len(await town.alive()) == 2
    assert (await town.events("agent.stopped"))[-1].message == "drained"
    await wants(1)
    assert len(await town.alive()) == 2
    town.clock.advance(minutes=6)
    await town.patrolled()
    assert len(await town.alive()) == 1
    assert (await town.events("agent.stopped"))[-1].message == "drain timed out"


async def test_case_31_without_a_timeout_a_draining_instance_is_waited_for_for_ever(fake_town: Town) -> None:
    wish = fake_town.root / "wish"
    fake_town.declare(pool("hand", most=2, check=f"cat {wish}", drain="0s"))
    wish.write_text("2")
    await fake_town.patrolled()
    wish.write_text("1")
    fake_town.clock.advance(seconds=31)
    await fake_town.patrolled()
    fake_town.clock.advance(days=30)
    await fake_town.patrolled()
    assert len(await fake_town.alive()) == 2


async def test_case_33_too_many_starts_quarantine_once_and_the_window_lifts_it(town: Town) -> None:
    head = HEAD + '[daemon]\nmax_restarts = 3\nrestart_window = "1h"\n'
    town.declare(agent("mayor", FRAGILE), head)
    await town.patrolled()
    for _ in range(3):
        await town.crash("mayor", "out")
        await town.patrolled()
        town.clock.advance(seconds=40)
        await town.patrolled()
    assert await town.alive() == []
    (quarantined,) = await town.events("agent.quarantined")
    assert quarantined.subject == "mayor"
    town.clock.advance(minutes=10)
    await town.patrolled()
    assert len(await town.events("agent.quarantined")) == 1
    assert await town.alive() == []
    town.clock.advance(minutes=50)
    await town.patrolled()
    assert await town.alive() == ["mayor"]


@pytest.mark.parametrize(("keep", "alive"), [("true", []), ("false", ["mayor"])])
async def test_quarantine_outlives_the_controller_unless_the_city_says_otherwise(
    fake_town: Town, keep: str, alive: list[str]
) -> None:
    head = HEAD + f"[daemon]\nmax_restarts = 2\nkeep_quarantine = {keep}\n"
    fake_town.declare(agent("mayor", FRAGILE), head)
    await fake_town.patrolled()
    for _ in range(2):
        await fake_town.crash("mayor", "out")
        await fake_town.patrolled()
        fake_town.clock.advance(seconds=40)
        await fake_town.patrolled()
    assert await fake_town.alive() == []
    await fake_town.patrol.close()
    fake_town.patrol = fake_town.new_patrol()
    await fake_town.patrolled()
    assert await fake_town.alive() == alive


async def test_case_34_without_a_limit_no_start_is_too_many(fake_town: Town) -> None:
    fake_town.declare(agent("mayor", FRAGILE), HEAD + "[daemon]\nmax_restarts = 0\n")
    await fake_town.patrolled()
    for _ in range(12):
        await fake_town.crash("mayor", "out")
        await fake_town.patrolled()
        fake_town.clock.advance(seconds=40)
        await fake_town.patrolled()
    assert await fake_town.alive() == ["mayor"]
    assert await fake_town.events("agent.quarantined") == []


async def test_case_35_a_silent_agent_is_killed_told_and_started_again_and_that_does_not_count(town: Town) -> None:
    town.declare(agent("mayor", idle_timeout="15m"))
    await town.patrolled()
    before = await town.seen("mayor")
    town.clock.advance(minutes=10)
    await town.patrolled()
    assert await town.told() == [("started", "mayor")]
    town.clock.advance(minutes=10)
    await town.patrolled()
    after = await town.seen("mayor")
    assert (before and before.session_id) != (after and after.session_id)
    assert [kind for kind, _ in await town.told()] == ["started", "idle_killed", "started"]
    assert sum(life.counted for life in town.patrol.patrol_history.of(town.session("mayor")).lives) == 1


async def test_case_35_unknown_activity_is_left_alone(fake_town: Town) -> None:
    fake_town.declare(agent("mayor", idle_timeout="15m"))
    await fake_town.patrolled()
    fake_town.provider.active_at(fake_town.session("mayor"), None)
    fake_town.clock.advance(hours=5)
    await fake_town.patrolled()
    assert await fake_town.told() == [("started", "mayor")]


async def test_case_36_a_restart_request_is_fulfilled_once_and_does_not_count(town: Town) -> None:
    town.declare(agent("mayor"))
    await town.patrolled()
    await town.provider.set_meta(town.session("mayor"), meta.RESTART_REQUESTED, "1")
    await town.patrolled()
    seen = await town.seen("mayor")
    assert seen is not None
    assert meta.RESTART_REQUESTED not in seen.meta
    await town.patrolled()
    assert [kind for kind, _ in await town.told()] == ["started", "stopped", "started"]
    assert (await town.events("agent.stopped"))[0].message == "restart requested by agent"
    assert sum(life.counted for life in town.patrol.patrol_history.of(town.session("mayor")).lives) == 1


async def test_case_37_slow_starts_run_side_by_side_and_are_told_in_order(fake_town: Town) -> None:
    names = [f"a{number}" for number in range(5)]
    fake_town.declare("".join(agent(name) for name in names))
    all_wait = asyncio.Barrier(6)
    start = fake_town.provider.start

    async def slow(spec: SessionSpec) -> Seen:
        await all_wait.wait()
        seen: Seen = await start(spec)
        return seen

    fake_town.provider.start = slow
    await fake_town.patrol.tick()
    async with asyncio.timeout(10):
        await all_wait.wait()
    await fake_town.patrol.settled()
    assert [subject for _, subject in await fake_town.told()] == names


@pytest.mark.parametrize("what", ["agent", "rig", "city"])
async def test_case_38_the_suspended_are_stopped_and_not_started_again(town: Town, what: str) -> None:
    rig = '[[rigs]]\nname = "shop"\npath = "shop"\n'
    (town.root / "shop").mkdir()
    text = agent("smith", dir="shop") + agent("mayor")
    town.declare(text + rig)
    await town.patrolled()
    assert await town.alive() == ["mayor", "shop/smith"]
    match what:
        case "agent":
            town.declare(agent("smith", dir="shop", suspended=True) + agent("mayor") + rig)
        case "rig":
            town.declare(text + rig + "suspended = true\n")
        case _:
            town.declare(text + rig, HEAD + "suspended = true\n")
    await town.patrolled()
    stopped = ["mayor", "shop/smith"] if what == "city" else ["shop/smith"]
    assert sorted(str(event.subject) for event in await town.events("agent.suspended")) == stopped
    await town.patrolled()
    assert await town.alive() == ([] if what == "city" else ["mayor"])
    town.declare(text + rig)
    await town.patrolled()
    assert await town.alive() == ["mayor", "shop/smith"]


# ── what the design adds ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_pool_instance_that_will_not_return_frees_its_beads_and_a_fixed_agent_keeps_its_own(town: Town) -> None:
    wish = town.root / "wish"
    wish.write_text("1")
    text = pool("hand", most=1, check=f"cat {wish}") + agent("mayor")
    town.declare(text)
    await town.patrolled()

    async def given(title: str, who: str) -> str:
        ctx = acting("human", town.clock.now())
        bead = await town.store.transact(beads.create, NewBead(title=title), prefix="tn", ctx=ctx)
        await town.store.transact(beads.claim, bead.id, who, ctx=ctx)
        return str(bead.id)

    theirs, his = await given("dig", "hand"), await given("rule", "mayor")
    wish.write_text("0")
    town.clock.advance(seconds=31)
    await town.patrolled()
    assert await town.alive() == ["hand", "mayor"], "a busy instance is never drained"
    await town.provider.set_meta(town.session("hand"), meta.DRAIN_ACK, "1")
    town.declare(agent("mayor", suspended=True))
    await town.patrolled()
    assert await town.alive() == []
    dug = await town.store.read(lambda tx: tx.beads.get(theirs))
    ruled = await town.store.read(lambda tx: tx.beads.get(his))
    assert (dug.status, dug.assignee) == ("open", None)
    assert (ruled.status, ruled.assignee) == ("in_progress", "mayor")


async def test_a_quarantined_pool_instance_frees_its_beads_and_a_fixed_agent_keeps_its_own(fake_town: Town) -> None:
    town = fake_town
    head = HEAD + '[daemon]\nmax_restarts = 2\nrestart_window = "1h"\n'
    town.declare(pool("hand", most=1, check="echo 1", body=FRAGILE) + agent("mayor", FRAGILE), head)
    await town.patrolled()
    held = {}
    for who in ("hand", "mayor"):
        ctx = acting("human", town.clock.now())
        bead = await town.store.transact(beads.create, NewBead(title=who), prefix="tn", ctx=ctx)
        await town.store.transact(beads.claim, bead.id, who, ctx=ctx)
        held[who] = bead.id
    for _ in range(2):
        for who in ("hand", "mayor"):
            await town.crash(who, "out")
        await town.patrolled()
        town.clock.advance(seconds=40)
        await town.patrolled()
    assert {event.subject for event in await town.events("agent.quarantined")} == {"hand", "mayor"}
    rows = {who: await town.store.read(lambda tx, one=one: tx.beads.get(one)) for who, one in held.items()}
    assert (rows["hand"].status, rows["hand"].assignee) == ("open", None)
    assert (rows["mayor"].status, rows["mayor"].assignee) == ("in_progress", "mayor")


async def test_dependants_start_after_what_they_depend_on_and_fall_with_it(town: Town) -> None:
    head = HEAD + '[daemon]\nstrategy = "rest_for_one"\n'
    town.declare(agent("web", depends_on=["db"]) + agent("db", FRAGILE) + agent("other"), head)
    await town.patrolled()
    order = [subject for kind, subject in await town.told() if kind == "started"]
    assert order.index("db") < order.index("web")
    web, other = await town.seen("web"), await town.seen("other")
    await town.crash("db", "gone")
    await town.patrolled()
    web_after, other_after = await town.seen("web"), await town.seen("other")
    assert (web and web.session_id) != (web_after and web_after.session_id)
    assert (other and other.session_id) == (other_after and other_after.session_id)
    assert await town.alive() == ["db", "other", "web"]
    assert ("stopped", "web") in await town.told()


async def test_a_pool_without_a_check_grows_with_its_beads(town: Town) -> None:
    town.declare(pool("hand", most=2))
    await town.patrolled()
    assert await town.alive() == []
    ctx = acting("human", town.clock.now())
    new = NewBead(title="dig", labels=("pool:hand",))
    await town.store.transact(beads.create, new, prefix="tn", ctx=ctx)
    await town.patrolled()
    assert await town.alive() == ["hand-1"]


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("sleep 60", "took longer"),
        ("echo many", "no whole number"),
        ("exit 4", "status 4"),
        ("no-such-x", "status 127"),
    ],
)
async def test_a_pool_check_that_fails_keeps_what_runs_and_says_so_and_harms_nobody(
    fake_town: Town, check: str, said: str
) -> None:
    fake_town.declare(pool("hand", most=3, check="echo 2") + agent("mayor"))
    await fake_town.patrolled()
    object.__setattr__(fake_town.check, "limit", timedelta(seconds=1))
    fake_town.declare(pool("hand", most=3, check=check) + agent("mayor") + agent("deputy"))
    fake_town.clock.advance(seconds=31)
    await fake_town.patrol.tick()
    await fake_town.patrol.settled()
    assert await fake_town.alive() == ["deputy", "hand-1", "hand-2", "mayor"]
    assert said in fake_town.patrol.problems["pool hand"]


async def test_a_pool_check_that_leaves_a_helper_behind_has_answered(fake_town: Town) -> None:
    object.__setattr__(fake_town.check, "limit", timedelta(seconds=10))
    helper = "setsid sleep 20 >/dev/null 2>&1 </dev/null & sleep 20 &"
    fake_town.declare(pool("hand", most=3, check=f"{helper} echo 2"))
    await fake_town.patrolled()
    assert await fake_town.alive() == ["hand-1", "hand-2"]
    assert fake_town.patrol.problems == {}


async def test_a_session_somebody_is_attached_to_is_spared(fake_town: Town) -> None:
    fake_town.declare(agent("mayor", idle_timeout="15m"))
    await fake_town.patrolled()
    fake_town.provider.attach(fake_town.session("mayor"))
    fake_town.clock.advance(hours=2)
    fake_town.declare(agent("mayor", 'start_command = "sleep 601"\n', idle_timeout="15m"))
    await fake_town.patrolled()
    assert await fake_town.told() == [("started", "mayor")]


async def test_an_end_is_answered_at_once_without_a_tick(town: Town) -> None:
    town.declare(agent("mayor", FRAGILE) + agent("deputy"))
    running = asyncio.create_task(town.patrol.run())
    try:
        await town.patrolled()
        await town.strike("mayor", "out")
        async with asyncio.timeout(20):
            while len(await town.events("agent.started")) < 3:  # noqa: ASYNC110  the store wakes other processes
                await asyncio.sleep(0.01)
        assert await town.alive() == ["deputy", "mayor"]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_sessions_of_a_controller_that_died_are_adopted_and_not_started_twice(town: Town) -> None:
    town.declare(agent("mayor", FRAGILE) + agent("deputy"))
    await town.patrolled()
    before = {name: seen.session_id for name, seen in (await town.provider.seen()).items()}
    await town.crash("mayor", "while nobody looked")
    town.provider = town.open()
    town.patrol = town.new_patrol()
    await town.patrolled()
    after = {name: seen.session_id for name, seen in (await town.provider.seen()).items()}
    assert before[town.session("deputy")] == after[town.session("deputy")]
    assert before[town.session("mayor")] != after[town.session("mayor")]
    starts = await town.store.read(lambda tx: tx.agents.latest(town.session("mayor")))
    assert [start.exit_status for start in starts] == [None, 3]
    assert "while nobody looked" in str((await town.events("agent.crashed"))[0].message)


async def test_a_start_that_was_not_recorded_is_adopted(fake_town: Town) -> None:
    fake_town.declare(agent("mayor"))
    spec = fake_town.patrol.executor.workshop.build(
        fake_town.patrol.roster.loaded, fake_town.patrol.roster.declared["mayor"], "mayor"
    )
    await fake_town.provider.start(spec)
    await fake_town.patrolled()
    assert await fake_town.told() == [("adopted", "mayor")]
    await fake_town.patrolled()
    assert len(await fake_town.told()) == 1


async def test_agents_are_kept_while_the_store_is_away_and_all_is_recorded_after(fake_town: Town) -> None:
    fake_town.declare(agent("mayor", FRAGILE))
    await fake_town.patrolled()
    patrol_history = fake_town.patrol.patrol_history

    class Away:
        def __getattr__(self, name: str) -> object:
            return getattr(fake_town.store, name)

        async def transact(self, *_args: object, **_kwargs: object) -> None:
            raise Unavailable("the disk is full")

    patrol_history.store = Away()  # type: ignore[assignment]
    await fake_town.crash("mayor", "out")
    await fake_town.patrolled()
    assert await fake_town.alive() == ["mayor"]
    assert "disk is full" in fake_town.patrol.problems["agents' records"]
    patrol_history.store = fake_town.store
    await fake_town.patrolled()
    assert [kind for kind, _ in await fake_town.told()] == ["started", "crashed", "started"]
    assert "agents' records" not in fake_town.patrol.problems


async def test_an_environment_is_whole_and_holds_the_identity(fake_town: Town) -> None:
    (fake_town.root / "shop").mkdir()
    fake_town.declare(
        agent("smith", dir="shop") + 'env = { TEAM = "web" }\n' + '[[rigs]]\nname = "shop"\npath = "shop"\n'
    )
    os.environ["GC_DRAIN"] = "1"
    try:
        spec = fake_town.patrol.executor.workshop.build(
            fake_town.patrol.roster.loaded, fake_town.patrol.roster.declared["shop/smith"], "shop/smith"
        )
    finally:
        del os.environ["GC_DRAIN"]
    assert spec.work_dir == str(fake_town.root / "shop")
    assert (spec.env["GC_AGENT"], spec.env["LAMP_AGENT"], spec.env["GC_RIG"]) == ("shop/smith", "shop/smith", "shop")
    assert spec.env["TEAM"] == "web"
    assert "GC_DRAIN" not in spec.env
    assert json.loads(spec.meta[meta.FINGERPRINT_FIELDS])["env.TEAM"]
