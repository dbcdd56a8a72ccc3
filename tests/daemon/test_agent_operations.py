"""Operations on agents, carried out beside a patrol as the daemon does it, and without one as a command does."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from patrol_town import FRAGILE, HEAD, Town, agent, pool

from lamplighter.app.daemon_host import PatrolOfDaemon
from lamplighter.domain.access import Actor, Forbidden, Role
from lamplighter.domain.city.wanted import Roster
from lamplighter.domain.sessions import meta
from lamplighter.kit.errors import Conflict, NotFound, Unavailable, UsageError
from lamplighter.kit.shapes import from_json, to_json
from lamplighter.ports.secrets import NoSecrets, SecretSource
from lamplighter.ports.sessions import SessionProvider
from lamplighter.services import session_operations
from lamplighter.services.agents import answering, queries, taking_over
from lamplighter.services.agents import operations as agents
from lamplighter.services.agents.views import AgentDetail, AgentView
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.host import Host, Patrol
from lamplighter.services.operation import Operation
from lamplighter.services.table import every
from lamplighter.store.errors import StoreUnavailable

OWNER = Actor("olga", Role.OWNER)


@dataclass(frozen=True)
class TownHost:
    """The parts of a town; `beside_patrol` as in the daemon, else as in a command. `kept`: a controller runs it."""

    town: Town
    beside_patrol: bool = True
    kept: bool = True
    store_away: bool = False
    secrets: SecretSource = field(default_factory=NoSecrets)

    @property
    def store(self) -> Any:
        return _Away() if self.store_away else self.town.store

    @property
    def root(self) -> Path:
        return self.town.root

    @property
    def roster(self) -> Roster:
        return self.town.patrol.roster

    @property
    def sessions(self) -> SessionProvider:
        found: SessionProvider = self.town.provider
        return found

    @property
    def all_sessions(self) -> list[SessionProvider]:
        return [self.sessions]

    @property
    def patrol(self) -> Patrol | None:
        return PatrolOfDaemon(self.town.patrol) if self.beside_patrol else None

    @property
    def is_kept(self) -> bool:
        return self.kept

    def need_own(self) -> None:
        return


class _Away:
    async def read(self, *_args: object, **_more: object) -> None:
        raise StoreUnavailable("The database is away.")

    transact = read


async def do(town: Town, operation: Operation[Any, Any], *given: Any, by: Actor = OWNER, **host: bool) -> Any:
    """Carried out, and sent as JSON and read again, as a command gets it."""
    made = TownHost(town, **host)
    city = CityOperations(cast("Host", made), town.clock, town.ids, lambda: None)  # type: ignore[arg-type, return-value]
    answer = await city.do(operation, operation.request(*given), by, surface="cli", patient=False)
    got = from_json(operation.answer, to_json(answer))
    assert to_json(got) == to_json(answer)
    return got


@pytest.fixture
async def crew(fake_town: Town) -> Town:
    text = agent("mayor") + agent("weak", FRAGILE) + pool("crew", most=3, least=1)
    fake_town.declare(text, head=HEAD + "[daemon]\nmax_restarts = 2\n")
    await fake_town.patrolled()
    return fake_town


async def test_the_list_beside_a_patrol_tells_what_it_saw_and_decided_without_asking_anybody(crew: Town) -> None:
    crew.provider.calls.clear()
    found: list[AgentView] = await do(crew, queries.LIST, store_away=True)
    assert [(one.name, one.state, one.pool) for one in found] == [
        ("mayor", "running", None), ("weak", "running", None), ("crew-1", "running", "crew"),
    ]  # fmt: skip
    assert crew.provider.calls == []


async def test_without_a_patrol_the_list_is_the_same_from_store_and_provider(crew: Town) -> None:
    await crew.patrol.patrol_history.flush()
    beside, alone = await do(crew, queries.LIST), await do(crew, queries.LIST, beside_patrol=False, kept=False)
    assert alone == beside


async def test_the_list_can_be_narrowed_by_state(crew: Town) -> None:
    await do(crew, agents.DRAIN, "mayor")
    await crew.patrol.tick()
    assert [one.name for one in await do(crew, queries.LIST, None, "draining")] == ["mayor"]


async def test_who_has_no_right_is_refused_and_nothing_happens(crew: Town) -> None:
    member = Actor("mia", Role.MEMBER)
    assert len(await do(crew, queries.LIST, by=member)) == 3
    for operation, *given in ((agents.KILL, "mayor"), (agents.NUDGE, "mayor", "hello"), (agents.DRAIN, "mayor")):
        with pytest.raises(Forbidden):
            await do(crew, operation, *given, by=member)
    for operation in every():
        if operation.subject == "agent":
            more = ["x"] if operation in {agents.NUDGE, answering.ANSWER, taking_over.TAKE_OVER} else []
            with pytest.raises(Forbidden):
                await do(crew, operation, "mayor", *more, by=of_run())
    seen = await crew.seen("mayor")
    assert seen is not None
    assert (seen.alive, meta.DRAIN in seen.meta) == (True, False)


async def test_what_a_program_asks_is_answered_by_the_key_of_a_choice_and_only_once(crew: Town) -> None:
    nothing = await do(crew, answering.QUESTION, "mayor")
    assert (nothing.question, list(nothing.choices)) == (None, [])
    with pytest.raises(Conflict, match="It asks nothing now"):
        await do(crew, answering.ANSWER, "mayor", "1")
    session = crew.provider._find(crew.session("mayor"))
    assert session is not None
    session.output += ["rm -rf build", "Do you want to proceed?", "❯ 1. Yes", "  2. No"]  # noqa: RUF001
    asked = await do(crew, answering.QUESTION, "mayor")
    assert asked.question == "rm -rf build Do you want to proceed?"
    assert [(one.key, one.text) for one in asked.choices] == [("1", "Yes"), ("2", "No")]
    with pytest.raises(UsageError, match="not a choice"):
        await do(crew, answering.ANSWER, "mayor", "3")
    with pytest.raises(Conflict, match="asks now: rm -rf build"):
        await do(crew, answering.ANSWER, "mayor", "1", "Another question?")
    done = await do(crew, answering.ANSWER, "mayor", "2", asked.question)
    assert (done.answer, done.question) == ("No", asked.question)
    assert crew.provider.calls[-1] == ("send_keys", session.spec.name, "2")
    session.output += ["Left as it is."] * 40
    with pytest.raises(Conflict, match="does not ask that any more"):  # somebody was first
        await do(crew, answering.ANSWER, "mayor", "1", asked.question)


def of_run() -> Actor:
    return Actor("run:run_1", Role.RUN, "run_1")


async def test_what_is_said_to_an_agent_s_session_is_typed_there_and_the_agent_is_named(crew: Town) -> None:
    session = crew.session("mayor")
    seen = await crew.seen("mayor")
    assert seen is not None
    for name in (session, seen.session_id):
        sent = await do(crew, session_operations.SEND, name, "hello")
        assert (sent.how, sent.agent, sent.run) == ("typed", "mayor", None)
    await crew.provider.remove_meta(session, meta.AGENT)
    await crew.patrol.tick()
    sent = await do(crew, session_operations.SEND, session, "once more")
    assert (sent.how, sent.agent) == ("typed", session), "it has no other name"
    typed = [call[1:] for call in crew.provider.calls if call[0] == "nudge"]
    assert typed == [(session, "hello"), (session, "hello"), (session, "once more")]
    with pytest.raises(Forbidden):
        await do(crew, session_operations.SEND, session, "hello", by=Actor("mia", Role.MEMBER))
    assert len([call for call in crew.provider.calls if call[0] == "nudge"]) == len(typed)


async def test_a_drain_marks_the_session_and_is_told_and_can_be_taken_back(crew: Town) -> None:
    assert to_json(await do(crew, agents.DRAIN, "mayor")) == {"name": "mayor", "draining": True}
    assert (await do(crew, queries.DRAIN_CHECK, "mayor")).draining
    assert not (await do(crew, agents.UNDRAIN, "mayor")).draining
    assert not (await do(crew, queries.DRAIN_CHECK, "mayor")).draining
    told = [(event.type, event.actor, event.message) for event in await crew.events() if event.actor == "olga"]
    assert told == [("agent.draining", "olga", "asked by olga"), ("agent.undrained", "olga", "asked by olga")]


async def test_an_agent_that_says_it_has_finished_gets_a_fresh_session_although_the_database_is_away(
    crew: Town,
) -> None:
    await do(crew, agents.DRAIN, "mayor")
    before = await crew.seen("mayor")
    done = await do(crew, agents.DRAIN_ACK, "mayor", crew.session("mayor"), store_away=True)
    assert done.name == "mayor"
    await crew.patrol.settled()
    after = await crew.seen("mayor")
    assert before is not None
    assert after is not None
    assert after.session_id != before.session_id


async def test_a_kill_is_the_patrol_s_where_there_is_one_and_is_told_once(crew: Town) -> None:
    await do(crew, agents.KILL, "mayor")
    assert [event.message for event in await crew.events("agent.killed")] == ["killed by olga"]
    await crew.patrol.settled()
    assert "mayor" in await crew.alive()


async def test_a_kill_without_a_controller_stops_the_session_and_is_told(crew: Town) -> None:
    await do(crew, agents.KILL, "mayor", beside_patrol=False, kept=False)
    assert "mayor" not in await crew.alive()
    assert [event.message for event in await crew.events("agent.killed")] == ["killed by olga"]


async def test_a_command_does_not_kill_behind_the_back_of_a_controller_that_does_not_answer(crew: Town) -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        await do(crew, agents.KILL, "mayor", beside_patrol=False)
    assert "mayor" in await crew.alive()


async def test_a_restart_needs_a_controller_and_a_session(crew: Town) -> None:
    with pytest.raises(Conflict, match="No controller"):
        await do(crew, agents.RESTART, "mayor", beside_patrol=False, kept=False)
    with pytest.raises(Conflict, match="is not running"):
        await do(crew, agents.RESTART, "crew-2")


async def test_the_lifting_of_a_quarantine_reaches_store_and_patrol(crew: Town) -> None:
    for _ in range(2):
        await crew.crash("weak", "")
        await crew.patrolled()
    assert {one.name: one.state for one in await do(crew, queries.LIST)}["weak"] == "quarantined"
    await do(crew, agents.UNQUARANTINE, "weak")
    await crew.patrol.settled()
    row = next(one for one in await do(crew, queries.LIST) if one.name == "weak")
    assert (row.state, row.quarantined_until) == ("running", None)


async def test_an_instance_that_does_not_run_is_shown_with_the_keys_of_every_agent(crew: Town) -> None:
    absent: AgentDetail = await do(crew, queries.SHOW, "crew-2")
    present: AgentDetail = await do(crew, queries.SHOW, "crew-1")
    assert (absent.state, absent.session, absent.actions) == ("stopped", "gc-town-crew-2", ())
    assert list(to_json(absent)) == list(to_json(present))
    assert [one.message for one in present.actions] == ["pool scale-up"]


async def test_a_pool_is_shown_with_its_instances_and_peeked_at_as_a_whole(fake_town: Town) -> None:
    fake_town.declare(pool("crew", most=3, least=2))
    await fake_town.patrolled()
    found: AgentDetail = await do(fake_town, queries.SHOW, "crew")
    assert (found.name, found.pool, found.state, found.reason) == ("crew", "crew", "running", "2 running, of 2 to 3")
    assert [(one.name, one.state) for one in found.instances] == [("crew-1", "running"), ("crew-2", "running")]
    text = (await do(fake_town, queries.PEEK, "crew")).output
    assert [line for line in text.splitlines() if line.startswith("──")] == ["── crew-1 ──", "── crew-2 ──"]


async def test_a_pool_without_an_instance_says_why(fake_town: Town) -> None:
    fake_town.declare(pool("still", most=2) + pool("off", most=0) + pool("lost", most=2, check="echo many"))
    await fake_town.patrolled()
    found = {one.name: one.reason for one in await do(fake_town, queries.LIST)}
    assert (found["still"], found["off"]) == ("no demand", "its `max` is 0")
    assert found["lost"].startswith("how many are wanted is unknown: The check of pool `lost` printed no whole number")
    assert "No instance of the pool still has a session." in (await do(fake_town, queries.PEEK, "still")).output


async def test_the_rig_of_whoever_asks_tells_which_agent_a_bare_name_means(fake_town: Town) -> None:
    fake_town.declare('[[rigs]]\nname = "web"\npath = "web"\nprefix = "we"\n' + agent("coder", dir="web"))
    await fake_town.patrolled()
    with pytest.raises(NotFound, match="no agent `coder`"):
        await do(fake_town, queries.PEEK, "coder")
    inside = Actor("olga", Role.OWNER, rig="web")
    assert (await do(fake_town, queries.PEEK, "coder", by=inside)).name == "coder"


async def test_an_agent_that_names_nobody_outside_a_session_is_told_to_name_one(crew: Town) -> None:
    with pytest.raises(NotFound, match="No agent is named"):
        await do(crew, queries.DRAIN_CHECK)


async def test_a_pool_whose_check_fails_says_so_and_one_that_may_have_no_instance_says_that(fake_town: Town) -> None:
    text = pool("none", most=0) + pool("asks", most=2, check="exit 3") + pool("fine", most=2, check="echo 0")
    fake_town.declare(text)
    known = await do(fake_town, queries.LIST)
    assert {one.name: one.reason for one in known} == {
        "none": "its `max` is 0",
        "asks": "how many are wanted is unknown: it is being asked",
        "fine": "how many are wanted is unknown: it is being asked",
    }
    await fake_town.patrolled()
    reasons = {one.name: one.reason for one in await do(fake_town, queries.LIST)}
    assert reasons["none"] == "its `max` is 0"
    assert "ended with status 3" in reasons["asks"]
    assert reasons["fine"] == "no demand"
    assert set(fake_town.patrol.unknown_pools) == {"asks"}
