"""Sessions as every surface asks for them: those that run and those that ended."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from automation_city import CITY, City
from test_pipeline_cases import AGENT, a_completion, complete, running

from lamplighter.domain.access import Actor, Forbidden, Role
from lamplighter.domain.city.sections import Destination, Notifications
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.kit.errors import NotFound
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import from_json, to_json
from lamplighter.ports.secrets import NoSecrets
from lamplighter.services import session_operations as sessions
from lamplighter.services import subscriptions
from lamplighter.services.host import Host
from lamplighter.services.notices import DestinationUnknown
from lamplighter.services.runs import review
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.url import open_store


class Sees:
    """A provider that shows some sessions and what they printed."""

    def __init__(self, *seen: Seen, output: str = "") -> None:
        self._seen, self._output = seen, output
        self.peeked: list[tuple[str, int]] = []

    async def seen(self) -> dict[SessionName, Seen]:
        return {one.name: one for one in self._seen}

    async def peek(self, name: SessionName, lines: int) -> str:
        self.peeked.append((name, lines))
        return self._output


def seen(city: City, number: int, *, alive: bool = True, **meta: str) -> Seen:
    return Seen(
        name=SessionName(f"s-{number}"), session_id=f"ses_{number}", alive=alive, pid=number,
        started_at=city.clock.now(), last_activity=None, exit_status=None, attached=False, meta=meta,
    )  # fmt: skip


@pytest.fixture
async def host(city: City) -> AsyncIterator[Any]:
    """A host on which session 1 of `mayor` and session 2 of a run live, and sessions 1, 3 and 4 are on record."""
    for number, agent in ((1, "mayor"), (3, "mayor"), (4, "coder")):
        row = SessionRow(f"ses_{number}", f"s-{number}", agent, None, "tmux", "here", number, city.clock.now())
        city.run(lambda tx, row=row: tx.sessions.add(row))
        city.advance(minutes=1)
    end = SessionEnd(city.clock.now(), "done", 0, "the last words")
    city.run(lambda tx: tx.sessions.end("ses_3", end))
    store = open_store(city.place, CITY, Wakes())
    agents, runs = Sees(seen(city, 1, LAMP_AGENT="mayor")), Sees(seen(city, 2, alive=False, LAMP_RUN_ID="run_7"))
    yield SimpleNamespace(store=store, all_sessions=[agents, runs], secrets=NoSecrets())
    await store.close()


async def listed(city: City, host: Any, **keys: Any) -> list[tuple[str, str]]:
    found = await sessions.list_sessions(cast("Host", host), sessions.ListSessions(**keys), city.context)
    assert from_json(cast("Any", list[sessions.SessionView]), to_json(found), strict=False) == found
    return [(one.id, one.state) for one in found]


async def test_living_ones_are_listed_and_ended_ones_where_that_is_asked_for(city: City, host: Any) -> None:
    living = [("ses_1", "running"), ("ses_2", "dead")]
    assert await listed(city, host) == living
    assert await listed(city, host, ended=True) == [*living, ("ses_4", "ended"), ("ses_3", "ended")]
    assert await listed(city, host, ended=True, limit=1) == [*living, ("ses_4", "ended")]
    assert await listed(city, host, ended=True, agent="mayor") == [("ses_1", "running"), ("ses_3", "ended")]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ses_1", "ses_1"), ("s-2", "ses_2"), ("ses_3", "ses_3"), ("s-4", "ses_4"), ("mayor", "ses_1"),
        ("coder", "ses_4"),
    ],
)  # fmt: skip
async def test_one_is_found_by_its_id_its_name_or_its_agent(city: City, host: Any, name: str, found: str) -> None:
    assert (await sessions.show_session(host, sessions.ShowSession(name), city.context)).id == found


async def test_a_destination_is_subscribed_to_a_session_by_name_and_not_any_more(city: City, host: Any) -> None:
    declared = Notifications(destinations=(Destination(name="team", kind="command", command="true"),))
    host.roster = SimpleNamespace(city=SimpleNamespace(notifications=declared))
    made = await subscriptions.subscribe(host, subscriptions.Subscribe("s-1", "team"), city.context)
    assert (made.session, made.destination, made.queued, made.notified_at) == ("ses_1", "team", False, None)
    with pytest.raises(DestinationUnknown, match="did you mean `team`"):
        await subscriptions.subscribe(host, subscriptions.Subscribe("s-1", "taem"), city.context)
    with pytest.raises(subscriptions.SessionOver):
        await subscriptions.subscribe(host, subscriptions.Subscribe("s-3", "team"), city.context)
    with pytest.raises(NotFound):
        await subscriptions.subscribe(host, subscriptions.Subscribe("run_" + "0" * 26, "team"), city.context)
    of_agent = await subscriptions.subscribe(host, subscriptions.Subscribe("mayor", "team"), city.context)
    assert of_agent.session == "ses_1"
    for was in (True, False):
        done = await subscriptions.unsubscribe(host, subscriptions.Unsubscribe("s-1", "team"), city.context)
        assert (done.session, done.was_subscribed) == ("ses_1", was)


async def test_an_unknown_one_is_refused(city: City, host: Any) -> None:
    with pytest.raises(NotFound, match="no session `s-9`"):
        await sessions.session_logs(host, sessions.SessionLogs("s-9"), city.context)


async def test_the_output_is_that_of_the_provider_which_has_some_or_the_recorded_end(city: City, host: Any) -> None:
    async def output(name: str) -> str:
        return (await sessions.session_logs(host, sessions.SessionLogs(name, 7), city.context)).output

    assert await output("s-1") == ""
    host.all_sessions[1] = Sees(seen(city, 2), output="light")
    assert await output("s-1") == "light"
    assert host.all_sessions[1].peeked == [("s-1", 7)]
    assert await output("s-3") == "the last words"
    assert await output("s-4") == ""


async def test_what_is_said_to_the_session_of_a_run_is_said_to_the_run(city: City, host: Any) -> None:
    city.add("sweep", agent=AGENT)
    run = city.run_now("sweep").run
    running(city, run)
    host.all_sessions[1] = Sees(seen(city, 2, LAMP_RUN_ID=run))
    ctx = changed(city.context, configured=city.configured)
    for name in (run, "ses_2", "s-2"):
        sent = await sessions.send_message(host, sessions.SendMessage(name, "and the gate?"), ctx)
        assert (sent.how, sent.run, sent.agent) == ("queued", run, None)
    complete(city, a_completion(run, outcome="failed"), session=None)
    following = city.get(run).continued_by
    assert following is not None
    sent = await sessions.send_message(host, sessions.SendMessage(run, "more"), ctx)
    assert (sent.how, sent.run) == ("queued", following)
    city.run(review.cancel, following, ctx=city.context)
    last = city.get(following).continued_by
    city.run(review.cancel, last, ctx=city.context)
    sent = await sessions.send_message(host, sessions.SendMessage(run, "and more"), ctx)
    assert (sent.how, sent.run) == ("started", city.get(last).continued_by)


async def test_to_type_into_an_agent_s_session_is_more_than_to_speak_to_a_run(city: City, host: Any) -> None:
    member = changed(city.context, actor=Actor("mia", Role.MEMBER), configured=city.configured)
    with pytest.raises(Forbidden):
        await sessions.send_message(host, sessions.SendMessage("s-1", "hello"), member)
    with pytest.raises(NotFound):
        await sessions.send_message(host, sessions.SendMessage("s-9", "hello"), member)
