"""What the queries of runs, logins, notices, agents and whatever else is on record find, and what they leave out."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from automation_city import City
from test_what_queries_find import update

from lamplighter.domain.beads.model import NewBead
from lamplighter.domain.cluster.nodes import Node, NodeState
from lamplighter.domain.events import EventFilter
from lamplighter.domain.inbox.notices import Notice, NoticeState, What
from lamplighter.domain.sessions.crashes import SessionHistory
from lamplighter.domain.sessions.logins import Login, LoginKey, LoginState
from lamplighter.domain.sessions.model import SessionName
from lamplighter.services.beads import changes as beads
from lamplighter.services.event_operations import LIST, ListEvents
from lamplighter.store.agents import AgentStart
from lamplighter.store.engine.db import stamp
from lamplighter.store.messages import Message
from lamplighter.store.owners import Owner
from lamplighter.store.rounds import Round
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.slack import Early
from lamplighter.store.trigger_events import TriggerEvent

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)


def runs(city: City, kinds: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """A run for each, with these columns."""
    found = {}
    for name, values in kinds.items():
        city.add(name.replace("_", "-"))
        found[name] = city.run_now(name.replace("_", "-")).run
        city.advance(seconds=0.001)  # ids are in order of time
        if values:
            update(city, "runs", found[name], values)
    return found


def named(found: Any, known: Mapping[str, str]) -> list[str]:
    names = {run: name for name, run in known.items()}
    return [names[one if isinstance(one, str) else one.id] for one in found]


# ── runs: what is late ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def late(city: City) -> dict[str, str]:
    """Runs whose deadline is now, and some that differ in one thing; each fewer seconds before now than the one before
    it in the table, of those that are ready.
    """
    now = city.clock.now()
    ready = {"state": "ready", "action": "exec"}
    at = lambda seconds: {"deadline_at": stamp(now - seconds * SECOND)}  # noqa: E731
    made = runs(
        city,
        {
            "first": {**ready, **at(9)},
            "agent": {**ready, "action": "agent", **at(8)},
            "cooked": {**ready, "state": "running", "action": "formula", **at(7)},
            "running": {**ready, "state": "running", **at(6)},
            "working": {**ready, "state": "running", "action": "agent", "last_activity_at": stamp(now), **at(5)},
            "ended": {**ready, "state": "failed", "ended_at": stamp(now), **at(4)},
            "waits": {**ready, **at(3)},
            "goes_on": {**ready, **at(2)},
            "now": {**ready, **at(0)},
            "later": {**ready, **at(-1)},
            "never": {**ready, "deadline_at": None},
        },
    )
    update(city, "runs", made["waits"], {"continues": made["first"]})
    update(city, "runs", made["goes_on"], {"continues": made["ended"]})
    return made


def test_overdue_are_active_runs_at_their_deadline_save_agents_at_work_and_those_that_wait_for_another(
    city: City, late: dict[str, str]
) -> None:
    overdue = lambda limit: named(city.read(lambda tx: tx.runs.overdue(city.clock.now(), limit=limit)), late)  # noqa: E731
    assert overdue(99) == ["first", "agent", "cooked", "running", "goes_on", "now"]
    assert overdue(2) == ["first", "agent"]


def test_the_next_deadline_is_that_of_a_run_which_nobody_works_on(city: City, late: dict[str, str]) -> None:
    now = city.clock.now()
    found = []
    while (at := city.read(lambda tx: tx.runs.next_deadline(before=now))) is not None:
        seconds = (now - at) // SECOND
        name = {9: "first", 8: "agent", 7: "cooked", 2: "goes_on", 0: "now"}[seconds]
        found.append(name)
        update(city, "runs", late[name], {"deadline_at": None})
    assert found == ["first", "agent", "cooked", "goes_on", "now"]


def test_stale_are_agents_runs_at_their_deadline_or_silent_which_no_person_has(
    city: City, late: dict[str, str]
) -> None:
    now = city.clock.now()
    silent = {
        "state": "running",
        "action": "agent",
        "deadline_at": stamp(now + DAY),
        "last_activity_at": stamp(now - HOUR),
    }
    late |= runs(
        city,
        {
            "silent": silent,
            "at_the_limit": silent | {"last_activity_at": stamp(now - 600 * SECOND)},
            "taken": silent | {"taken_by": "ada"},
            "not_begun": silent | {"state": "ready"},
            "command": silent | {"action": "exec"},
        },
    )
    stale = lambda limit: named(  # noqa: E731
        city.read(lambda tx: tx.runs.stale(now, silent_since=now - 600 * SECOND, limit=limit)), late
    )
    assert (stale(99), stale(1)) == (["agent", "working", "silent"], ["agent"])


# ── runs: what is kept with them ──────────────────────────────────────────────────────────────────────────────────────


def test_a_session_is_recorded_once_and_what_is_known_of_it_is_not_forgotten(city: City) -> None:
    run = runs(city, {"a": {"in_force": '{"preset": "claude"}'}})["a"]
    now = city.clock.now()
    began = lambda session, told: city.run(lambda tx: tx.runs.began(run, session, told, now))  # noqa: E731
    assert (began("ses_1", None), began("ses_2", {"preset": "codex"})) == (True, False)
    row = city.get(run)
    assert (row.session_id, row.in_force, row.prompt_sent_at, row.last_activity_at) == (
        "ses_1", {"preset": "claude"}, now, now,
    )  # fmt: skip


def test_of_two_that_go_on_with_a_run_the_first_does(city: City) -> None:
    run = runs(city, {"a": {}})["a"]
    assert city.run(lambda tx: tx.runs.continued(run, "run_1"))
    assert not city.run(lambda tx: tx.runs.continued(run, "run_2"))
    assert city.get(run).continued_by == "run_1"


def test_the_clock_of_a_run_that_waited_begins_with_its_turn(city: City) -> None:
    now = city.clock.now()
    made = runs(
        city, {"waits": {}, "free": {"deadline_at": None}, "ended": {"ended_at": stamp(now), "state": "failed"}}
    )
    span = (city.get(made["waits"]).deadline_at or now) - now
    before = city.get(made["ended"]).deadline_at
    city.advance(hours=1)
    for run in made.values():
        city.run(lambda tx, run=run: tx.runs.start_clock(run, city.clock.now()))
        city.run(lambda tx, run=run: tx.runs.go_on_with(run, "run_0"))
    assert city.get(made["waits"]).deadline_at == city.clock.now() + span
    assert (city.get(made["free"]).deadline_at, city.get(made["ended"]).deadline_at) == (None, before)
    assert [city.get(run).continues for run in made.values()] == ["run_0", "run_0", None]


def test_worktrees_and_ports_are_those_of_a_node_and_of_runs_at_work_or_ended(city: City) -> None:
    now = city.clock.now()
    over = {"state": "failed", "node": "here"}
    made = runs(
        city,
        {
            "works": {"node": "here"},
            "old": over | {"ended_at": stamp(now - HOUR)},
            "young": over | {"ended_at": stamp(now)},
            "there": over | {"ended_at": stamp(now - HOUR), "node": "there"},
            "works_there": {"node": "there"},
            "bare": over | {"ended_at": stamp(now - HOUR)},
        },
    )
    for name, run in made.items():
        tree = None if name == "bare" else {"path": f"/{name}", "branch": "b"}
        city.run(lambda tx, run=run, tree=tree: tx.runs.set_worktree(run, tree))
        if name != "bare":
            city.run(lambda tx, run=run, name=name: tx.runs.set_ports(run, f"{name}+10"))
    left = lambda limit: named(  # noqa: E731
        city.read(lambda tx: tx.runs.with_worktree("here", before=now, limit=limit)), made
    )
    assert left(9) == ["old"]
    city.advance(seconds=1)
    now = city.clock.now()
    assert (left(9), left(1)) == (["old", "young"], ["old"])
    assert city.read(lambda tx: tx.runs.in_worktrees()) == {
        "/works": made["works"], "/works_there": made["works_there"],
    }  # fmt: skip
    assert city.read(lambda tx: tx.runs.ports_taken("here")) == ["works+10"]
    newest = named(city.read(lambda tx: tx.runs.worktrees(limit=4)), made)
    assert newest == ["works_there", "there", "young", "old"]


def test_unjudged_are_runs_that_may_need_a_person_and_were_not_looked_at(city: City) -> None:
    none = {"fingerprint": None}
    made = runs(
        city,
        {
            "failed": none | {"state": "failed"},
            "asks": none | {"state": "needs_human"},
            "late": none | {"state": "timed_out"},
            "well": none | {"state": "succeeded"},
            "off": none | {"state": "canceled"},
            "judged": {"state": "failed", "fingerprint": ""},
        },
    )
    unjudged = lambda limit: named(city.run(lambda tx: tx.runs.unjudged(limit=limit)), made)  # noqa: E731
    assert (unjudged(9), unjudged(2)) == (["failed", "asks", "late"], ["failed", "asks"])
    city.run(lambda tx: tx.runs.judge(made["asks"], ""))
    assert unjudged(9) == ["failed", "late"]


def test_wisps_that_ended_are_closed_or_gone_and_our_own(city: City) -> None:
    made = runs(city, {name: {} for name in ("open", "closed", "gone", "away", "over", "none", "command")})
    waits = {"state": "running", "action": "formula", "wisp_id": "te-gone"}
    own = [city.run(beads.create, NewBead(one), prefix="te", ctx=city.context).id for one in ("open", "closed")]
    city.run(beads.close, own[1], ctx=city.context)
    for name, values in {
        "open": {"wisp_id": own[0]}, "closed": {"wisp_id": own[1]}, "gone": {}, "away": {"wisp_elsewhere": 1},
        "over": {"state": "failed"}, "none": {"wisp_id": None}, "command": {"action": "exec"},
    }.items():  # fmt: skip
        update(city, "runs", made[name], waits | values)
    found = city.read(lambda tx: tx.runs.wisps_ended(limit=9))
    assert dict(found) == {made["closed"]: True, made["gone"]: False}
    assert len(city.read(lambda tx: tx.runs.wisps_ended(limit=1))) == 1
    assert city.read(lambda tx: tx.runs.wisps_elsewhere(limit=9)) == [(made["away"], "te-gone")]
    update(city, "runs", made["away"], {"state": "failed"})
    assert city.read(lambda tx: tx.runs.wisps_elsewhere(limit=9)) == []


def test_runs_alike_are_those_of_a_fingerprint_that_ended_since(city: City) -> None:
    now = city.clock.now()
    at = lambda seconds: {"state": "failed", "fingerprint": "f1", "ended_at": stamp(now + seconds * SECOND)}  # noqa: E731
    made = runs(city, {"a": at(0), "b": at(5), "c": at(3), "other": at(4) | {"fingerprint": "f2"}})
    alike = lambda after, limit=9: named(  # noqa: E731
        city.read(lambda tx: tx.runs.alike("f1", after=stamp(now + after * SECOND), limit=limit)), made
    )
    assert (alike(-1), alike(0), alike(3), alike(5), alike(-1, 2)) == (
        ["b", "c", "a"],
        ["b", "c"],
        ["b"],
        [],
        ["b", "c"],
    )
    folded = city.read(lambda tx: tx.runs.folded("f1", after=stamp(now)))
    assert (folded.count, folded.first_at, folded.last_at, named([folded.last_run], made)) == (
        2, now + 3 * SECOND, now + 5 * SECOND, ["b"],
    )  # fmt: skip
    assert city.read(lambda tx: tx.runs.folded("f1", after=stamp(now + 5 * SECOND))) is None
    locked = city.run(lambda tx: tx.runs.lock_alike("f1", after=stamp(now), limit=9))
    assert sorted(named(locked, made)) == ["b", "c"]


def test_whoever_waits_for_a_place_is_older_and_has_looked_of_late(city: City) -> None:
    now = city.clock.now()
    waits = {"state": "ready", "reason": "limit", "last_activity_at": stamp(now - HOUR)}
    made = runs(
        city,
        {
            "first": waits,
            "gone": waits | {"last_activity_at": stamp(now - HOUR - SECOND)},
            "memory": waits | {"reason": "memory"},
            "running": waits | {"state": "running", "action": "agent"},
            "cooked": waits | {"state": "running", "action": "formula"},
            "me": waits,
            "younger": waits,
        },
    )
    found = city.read(lambda tx: tx.run_gates.waiting("limit", before=made["me"], since=now - HOUR))
    assert named(found, made) == ["first"]
    assert named(city.read(lambda tx: tx.run_gates.at_work()), made) == ["running"]


def test_what_was_said_to_a_run_is_told_once_and_goes_on_with_it(city: City) -> None:
    now = city.clock.now()
    for number, run in enumerate(("run_1", "run_1", "run_2")):
        row = Message(f"msg_{number}", run, f"text {number}", "ada", now - number * SECOND)
        city.run(lambda tx, row=row: tx.messages.add(row))
    waiting = lambda run: [one.text for one in city.read(lambda tx: tx.messages.waiting(run))]  # noqa: E731
    assert (waiting("run_1"), waiting("run_2")) == (["text 1", "text 0"], ["text 2"])
    assert city.run(lambda tx: tx.messages.take("run_1", "run_9")) == 2
    assert city.run(lambda tx: tx.messages.take("run_1", "run_8")) == 0
    assert city.run(lambda tx: tx.messages.pass_on("run_1", "run_3")) == 0
    assert city.run(lambda tx: tx.messages.pass_on("run_2", "run_3")) == 1
    assert (waiting("run_1"), waiting("run_2"), waiting("run_3")) == ([], [], ["text 2"])


def test_a_claim_is_judged_once_and_in_its_own_round(city: City) -> None:
    now = city.clock.now()
    for claim in [
        Round(run, number, f"c{number}", "{}", now) for run, number in (("run_1", 1), ("run_1", 2), ("run_2", 1))
    ]:
        city.run(lambda tx, claim=claim: tx.rounds.add(claim))
    judged = Round("run_1", 2, "c2", "{}", now, now + SECOND, passed=False, exit_code=3, why="dark", output_tail="x")
    assert city.run(lambda tx: tx.rounds.judge(judged))
    assert not city.run(lambda tx: tx.rounds.judge(replace(judged, passed=True)))
    assert [one.passed for one in city.read(lambda tx: tx.rounds.of("run_1"))] == [None, False]
    assert city.read(lambda tx: tx.rounds.of("run_1"))[1] == judged
    assert [one.passed for one in city.read(lambda tx: tx.rounds.of("run_2"))] == [None]


# ── trigger events ────────────────────────────────────────────────────────────────────────────────────────────────────


def fact(city: City, number: int, **fields: Any) -> TriggerEvent:
    now = city.clock.now()
    made = TriggerEvent(f"tev_{number}", "aut_1", "sweep", "cron", "cron", "fired", "due", now, now)
    return replace(made, **fields)


def test_a_cause_fires_its_trigger_once_and_skips_for_one_reason_are_counted_together(city: City) -> None:
    insert = lambda number, **fields: city.run(lambda tx: tx.trigger_events.insert(fact(city, number, **fields)))  # noqa: E731
    assert insert(1, dedup_key="k")
    assert not insert(2, dedup_key="k")
    assert insert(3, dedup_key="k", trigger="hook")
    assert insert(4, dedup_key="k", automation_id="aut_2", automation="other")
    of_key = lambda *key: getattr(city.read(lambda tx: tx.trigger_events.of_key(*key)), "id", None)  # noqa: E731
    assert (of_key("aut_1", "cron", "k"), of_key("aut_1", "hook", "k"), of_key("aut_1", "cron", "x")) == (
        "tev_1", "tev_3", None,
    )  # fmt: skip
    assert of_key("aut_2", "hook", "k") is None
    insert(5, status="skipped", reason="overlap")
    repeat = lambda *which: city.run(lambda tx: tx.trigger_events.repeat(*which, city.clock.now() + HOUR, count=2))  # noqa: E731
    assert (repeat("tev_5", "overlap"), repeat("tev_5", "paused"), repeat("tev_1", "due")) == (True, False, False)
    row = city.read(lambda tx: tx.trigger_events.get("tev_5"))
    assert (row.count, row.last_at) == (3, city.clock.now() + HOUR)
    insert(6, automation="other", status="skipped")
    assert city.read(lambda tx: tx.trigger_events.last_skip("sweep")).id == "tev_5"
    assert city.read(lambda tx: tx.trigger_events.last_skip("none")) is None
    history = lambda **keys: [one.id for one in city.read(lambda tx: tx.trigger_events.history("sweep", **keys))]  # noqa: E731
    assert (history(), history(before="tev_5"), history(limit=1)) == (
        ["tev_5", "tev_3", "tev_1"],
        ["tev_3", "tev_1"],
        ["tev_5"],
    )


def test_old_trigger_events_go_but_for_those_of_runs_under_way(city: City) -> None:
    began = city.clock.now()
    made = runs(city, {"active": {}, "ended": {"state": "failed", "ended_at": stamp(began)}})
    of = (None, made["active"], made["ended"], "run_gone")
    for row in [fact(city, number, run=run) for number, run in enumerate(of)]:
        city.run(lambda tx, row=row: tx.trigger_events.insert(row))
    now = city.clock.now()
    prune = lambda before, before_id, limit=9: city.run(  # noqa: E731
        lambda tx: tx.trigger_events.prune(before=before, before_id=before_id, limit=limit)
    )
    assert prune(began, "tev_~") == 0
    assert prune(now + SECOND, "tev_0") == 0
    assert prune(now + SECOND, "tev_9", 1) == 1
    assert prune(now + SECOND, "tev_9") == 3, "and that of the firing itself"
    assert city.read(lambda tx: tx.trigger_events.get("tev_1")) is not None


# ── logins ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_of_those_that_wait_for_a_login_one_tries_it(city: City) -> None:
    now = city.clock.now()
    key, other = LoginKey("here", "claude", "/h"), LoginKey("here", "claude", "/other")
    refused = Login(key, LoginState.REFUSED, now, looked_at=now)
    limited = Login(key, LoginState.LIMITED, now - HOUR, model="big")
    works = Login(other, LoginState.WORKS, now, looked_at=now)
    for one in (refused, limited, works):
        city.run(lambda tx, one=one: tx.logins.put(one))
    known = lambda: {(one.key.home, one.model): one for one in city.read(lambda tx: tx.logins.all())}  # noqa: E731
    assert [one.model for one in city.read(lambda tx: tx.logins.not_working())] == ["big", ""]
    tries = lambda one, run: city.run(lambda tx: tx.logins.try_it(one, run, now + SECOND))  # noqa: E731
    assert (tries(refused, "run_1"), tries(refused, "run_2"), tries(limited, "run_2"), tries(works, "run_2")) == (
        True, False, False, False,
    )  # fmt: skip
    tried = known()["/h", ""]
    assert (tried.trying, tried.trying_since, tried.looked_at) == ("run_1", now + SECOND, now + SECOND)
    assert tries(tried, "run_2"), "whoever tried it is known to be gone"
    assert (city.run(lambda tx: tx.logins.leave("run_1")), city.run(lambda tx: tx.logins.leave("run_2"))) == (
        False,
        True,
    )
    assert known()["/h", ""].trying is None
    city.run(lambda tx: tx.logins.looked(key, "marks", now + HOUR))
    assert (known()["/h", ""].looked_at, known()["/h", ""].marks) == (now + HOUR, "marks")
    assert (known()["/h", "big"].marks, known()["/other", ""].looked_at) == ("", now)
    assert city.run(lambda tx: tx.logins.look_again(key))
    assert known()["/h", ""].looked_at is None
    assert not city.run(lambda tx: tx.logins.look_again(other))
    assert city.run(lambda tx: tx.logins.prune(before=now)) == 0
    assert city.run(lambda tx: tx.logins.prune(before=now + SECOND)) == 1
    city.run(lambda tx: tx.logins.remove(refused))
    assert list(known()) == [("/h", "big")]


# ── notices ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_destination_is_told_of_an_occasion_once_and_what_it_said_last_is_known(city: City) -> None:
    now = city.clock.now()
    made = Notice("ntc_1", "ops", "inb_1", What.OPENED, {}, now)
    add = lambda **fields: city.run(lambda tx: tx.notices.add(replace(made, **fields)))  # noqa: E731
    assert (add(), add(id="ntc_2")) == (True, False)
    assert add(id="ntc_3", what=What.RECOVERED, state=NoticeState.SENT, sent_at=now, answer="one")
    assert add(id="ntc_4", destination="team", state=NoticeState.HELD)
    assert add(id="ntc_5", about="inb_2", state=NoticeState.FAILED, sent_at=now + HOUR, answer="two")
    assert add(id="ntc_6", about="inb_3", state=NoticeState.DROPPED)
    assert add(id="ntc_7", destination="team", about="inb_2", state=NoticeState.HELD)
    ids = lambda found: [one.id for one in found]  # noqa: E731
    assert ids(city.read(lambda tx: tx.notices.of("inb_1"))) == ["ntc_1", "ntc_3", "ntc_4"]
    assert ids(city.read(lambda tx: tx.notices.held(limit=9))) == ["ntc_4", "ntc_7"]
    assert ids(city.read(lambda tx: tx.notices.held(limit=1))) == ["ntc_4"]
    assert ids(city.read(lambda tx: tx.notices.page(before="ntc_5", limit=2))) == ["ntc_4", "ntc_3"]
    latest = city.read(lambda tx: tx.notices.latest(["ops", "team", "nobody"]))
    assert {name: one.id for name, one in latest.items()} == {"ops": "ntc_5", "team": "ntc_7"}
    assert city.read(lambda tx: tx.notices.last_sent("ops")) == now + HOUR
    assert (
        city.read(lambda tx: tx.notices.last_sent("team")),
        city.read(lambda tx: tx.notices.last_answer("ops")),
    ) == (None, "two")
    prune = lambda before_id, limit=9: city.run(lambda tx: tx.notices.prune(before_id=before_id, limit=limit))  # noqa: E731
    assert (prune("ntc_3"), prune("ntc_9", 1), prune("ntc_9")) == (0, 1, 2)
    assert ids(city.read(lambda tx: tx.notices.page())) == ["ntc_7", "ntc_4", "ntc_1"]


# ── agents, sessions, nodes ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_remembered_of_agents_are_lives_that_began_of_late_or_have_not_ended(city: City) -> None:
    now = city.clock.now()
    mayor, coder = SessionName("mayor"), SessionName("coder")

    def began(number: int, session: SessionName, at: datetime, ended: datetime | None = None) -> None:
        row = AgentStart(f"sta_{number}", session, session, f"ses_{number}", at, "wanted", ended_at=ended)
        city.run(lambda tx: tx.agents.add(row))

    began(1, mayor, now - 2 * HOUR, now - HOUR)
    began(2, mayor, now - HOUR, now - HOUR)
    began(3, mayor, now)
    began(4, coder, now - DAY)
    remembered = lambda: city.read(lambda tx: tx.agents.remembered(now - HOUR))  # noqa: E731
    assert {name: len(one.lives) for name, one in remembered().histories.items()} == {mayor: 2, coder: 1}
    assert remembered().open_ids == {mayor: "ses_3", coder: "ses_4"}
    city.run(lambda tx: tx.agents.end(mayor, now + SECOND, wished=True, exit_status=3, reason="done"))
    city.run(lambda tx: tx.agents.end(mayor, now + HOUR, wished=False, exit_status=4, reason="again"))
    latest = city.read(lambda tx: tx.agents.latest(mayor, limit=2))
    assert [(one.id, one.ended_at, one.end_reason) for one in latest] == [
        ("sta_3", now + SECOND, "done"), ("sta_2", now - HOUR, None),
    ]  # fmt: skip
    for session, until in ((mayor, now), (coder, now + SECOND)):
        noted = SessionHistory(crash_noted="ses_1", quarantine_noted=until)
        city.run(lambda tx, session=session, noted=noted: tx.agents.note(session, noted))
    assert city.read(lambda tx: tx.agents.quarantines(now)) == [(coder, now + SECOND)]
    city.run(lambda tx: tx.agents.clear(coder))
    assert city.read(lambda tx: tx.agents.quarantine(coder)) is None
    assert city.read(lambda tx: tx.agents.quarantine(mayor)) == now
    cleared = remembered().histories
    assert [one.counted for one in cleared[coder].lives] == [False]
    assert [one.counted for one in cleared[mayor].lives] == [True, True]
    prune = lambda before, limit=9: city.run(lambda tx: tx.agents.prune(before=before, limit=limit))  # noqa: E731
    assert (prune(now - HOUR), prune(now, 1), prune(now + SECOND)) == (1, 1, 1)
    assert list(remembered().histories) == [coder]


def test_a_session_ends_once_and_its_run_tells_what_came_of_it(city: City) -> None:
    now = city.clock.now()
    for number, (agent, run) in enumerate((("mayor", None), (None, "run_1"), (None, "run_1"), ("coder", None))):
        at = now + (number % 3) * SECOND
        row = SessionRow(f"ses_{number}", f"s-{number}", agent, run, "tmux", "here", number, at)
        city.run(lambda tx, row=row: tx.sessions.add(row))
    end = lambda which, at, why: city.run(lambda tx: tx.sessions.end(which, SessionEnd(at, why, 0, "bye")))  # noqa: E731
    assert (end("ses_0", now, "done"), end("ses_0", now + HOUR, "again"), end("ses_9", now, "none")) == (
        True,
        False,
        False,
    )
    ids = lambda found: [one.id for one in found]  # noqa: E731
    assert city.read(lambda tx: tx.sessions.get("ses_0")).end_reason == "done"
    assert ids(city.read(lambda tx: tx.sessions.latest())) == ["ses_2", "ses_1", "ses_3", "ses_0"]
    assert ids(city.read(lambda tx: tx.sessions.latest(agent="mayor"))) == ["ses_0"]
    assert city.read(lambda tx: tx.sessions.ids(limit=2)) == ["ses_2", "ses_1"]
    assert ids(city.read(lambda tx: tx.sessions.of_run("run_1"))) == ["ses_1", "ses_2"]
    city.run(lambda tx: tx.sessions.report("run_1", "succeeded", "Lit."))
    assert [one.outcome for one in city.read(lambda tx: tx.sessions.latest())] == ["succeeded", "succeeded", None, None]


def test_nodes_that_are_gone_go_once_nothing_runs_there_and_owners_that_are_gone_leave_their_claims(
    city: City,
) -> None:
    now = city.clock.now()
    nodes = [
        Node("here", "box", (), NodeState.ALIVE, now - DAY), Node("lost", "box", (), NodeState.LOST, now - DAY),
        Node("busy", "box", (), NodeState.LOST, now - DAY), Node("young", "box", (), NodeState.STOPPED, now),
    ]  # fmt: skip
    for node in nodes:
        city.run(lambda tx, node=node: tx.nodes.put(node))
    made = runs(
        city, {"works": {"state": "running", "node": "busy", "lease_owner": "own_gone"}, "ready": {"node": "lost"}}
    )
    city.run(lambda tx: tx.owners.register(Owner("own_1", "worker", "box", 1, now, "here")))
    city.run(lambda tx: tx.owners.register(Owner("own_2", "worker", "box", 2, now + SECOND, "there")))
    update(city, "runs", made["ready"], {"lease_owner": "own_1"})
    claimed = "UPDATE outbox SET state = :state, claimed_by = :owner, claimed_at = 1 WHERE run_id = :run"
    for run, state, owner in ((made["works"], "claimed", "own_lost"), (made["ready"], "claimed", "own_2")):
        params = {"run": run, "state": state, "owner": owner}
        city.run(lambda tx, params=params: tx.db.execute(claimed, params))
    assert city.read(lambda tx: tx.owners.stale_claims()) == ["own_gone", "own_lost"]
    assert [one.id for one in city.read(lambda tx: tx.owners.others("own_1"))] == ["own_2"]
    assert [one.id for one in city.read(lambda tx: tx.owners.on_node("here"))] == ["own_1"]
    assert city.run(lambda tx: tx.nodes.prune(before=now - DAY)) == 0
    assert city.run(lambda tx: tx.nodes.prune(before=now)) == 1
    assert [one.name for one in city.read(lambda tx: tx.nodes.all())] == ["busy", "here", "young"]
    assert city.run(lambda tx: tx.owners.remove("own_1"))
    assert not city.run(lambda tx: tx.owners.remove("own_1"))
    assert city.read(lambda tx: tx.owners.stale_claims()) == ["own_1", "own_gone", "own_lost"]


# ── beads and events ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_work_is_held_waited_for_and_collected_by_what_it_is(city: City) -> None:
    def make(title: str, **keys: Any) -> str:
        return str(city.run(beads.create, NewBead(title, **keys), prefix="te", ctx=city.context).id)

    pool = ("pool:crew",)
    held, idle, done = make("held", labels=pool), make("idle", labels=pool), make("done", labels=pool, ephemeral=True)
    city.run(beads.claim, held, "mayor", ctx=city.context)
    city.run(beads.close, done, ctx=city.context)
    assert city.read(lambda tx: (tx.beads.waiting("pool:crew"), tx.beads.waiting("pool:other"))) == (2, 0)
    assert city.read(lambda tx: (tx.beads.held_by("mayor"), tx.beads.held_by("coder"))) == ([held], [])
    assert city.read(lambda tx: tx.beads.at_work()) == {"mayor"}
    needs = make("needs", needs=(idle, done))
    far = make("far", needs=(needs,))
    assert city.read(lambda tx: (tx.beads.unmet_needs(needs), tx.beads.unmet_needs(far))) == ([idle], [needs])
    waits = lambda start, goal: city.read(lambda tx: tx.beads.waits_for(start, goal))  # noqa: E731
    assert (waits(needs, idle), waits(far, idle), waits(idle, far), waits(far, held)) == (True, True, False, False)
    kept = make("kept", ephemeral=True)
    collect = lambda before: city.run(lambda tx: tx.beads.collectable(before=before, limit=9))  # noqa: E731
    assert (collect(city.clock.now()), collect(city.clock.now() + SECOND)) == ([], [done])
    below, beside = make("below", parent=kept), make("beside")
    city.run(lambda tx: tx.beads.delete_trees([kept]))
    assert city.read(lambda tx: [tx.beads.get(one) is None for one in (kept, below, beside)]) == [True, True, False]


def test_events_are_found_by_what_they_tell_and_old_ones_go_but_for_the_newest(city: City) -> None:
    began = city.clock.now()
    for number, name in enumerate(("x.y", "x.z", "xa.y", "x.y")):
        city.emit(name, {"n": number})
        city.advance(seconds=1)
    found = lambda **keys: [  # noqa: E731
        one.payload["n"] for one in city.read(lambda tx: tx.events.latest(EventFilter(**keys), limit=9))
    ]
    assert (found(type="x.*"), found(type="x.y"), found()) == ([0, 1, 3], [0, 3], [0, 1, 2, 3])
    assert (found(actor="tester"), found(actor="other"), found(subject="other")) == ([0, 1, 2, 3], [], [])
    assert (found(since=began + SECOND), found(since=began + 9 * SECOND)) == ([1, 2, 3], [])
    seqs = [one.seq for one in city.read(lambda tx: tx.events.after(0))]
    assert found(after=seqs[1]) == [2, 3]
    following = lambda limit: [  # noqa: E731
        one.seq for one in city.read(lambda tx: tx.events.next_matching(EventFilter("x.*", after=seqs[0]), limit=limit))
    ]
    assert (following(9), following(1)) == ([seqs[1], seqs[3]], [seqs[1]])
    assert city.read(lambda tx: tx.events.types_after(seqs[0], limit=2)) == ({"x.z", "xa.y"}, seqs[2])
    assert city.read(lambda tx: tx.events.types_after(seqs[3], limit=2)) == (set(), seqs[3])
    assert city.read(lambda tx: tx.events.head()) == seqs[3]
    prune = lambda before, spared: city.run(  # noqa: E731
        lambda tx: tx.events.prune(before=before, spared_after=spared, limit=9)
    )
    assert (prune(began, seqs[3]), prune(began + DAY, seqs[0]), prune(began + DAY, seqs[0])) == (0, 1, 0)
    assert (prune(began + DAY, seqs[3]), prune(began + DAY, seqs[3])) == (2, 0)
    assert [one.seq for one in city.read(lambda tx: tx.events.after(0))] == [seqs[3]]


@pytest.mark.parametrize(("asked", "found"), [("*", 2), (None, 2), ("x.*", 1), ("x", 0), ("x.y", 1)])
def test_a_star_asks_for_events_of_every_type_as_where_an_automation_listens(
    city: City, asked: str | None, found: int
) -> None:
    city.emit("x.y")
    city.emit("z.y")
    assert len(city.do(LIST, ListEvents(type=asked))) == found


# ── what a status shows ───────────────────────────────────────────────────────────────────────────────────────────────


def test_what_comes_next_is_armed_unheld_timed_and_not_suspended(city: City) -> None:
    for name in ("first", "second", "held", "off", "suspended"):
        city.add(name, gate="cron", schedule="0 12 * * *" if name == "second" else "0 10 * * *")
    city.add("hears", gate="event", on="x.y")
    ids = {name: city.row(name).id for name in ("held", "off", "suspended")}
    change = "UPDATE triggers SET held_by = :held, armed = :armed WHERE automation_id = :id"
    city.run(lambda tx: tx.db.execute(change, {"held": "run_1", "armed": 1, "id": ids["held"]}))
    city.run(lambda tx: tx.db.execute(change, {"held": None, "armed": 0, "id": ids["off"]}))
    update(city, "automations", ids["suspended"], {"suspended": 1})
    upcoming = lambda limit: city.read(lambda tx: tx.summary.upcoming(limit=limit))  # noqa: E731
    assert [(name, at) for name, _, at in upcoming(9)] == [
        ("first", city.clock.now() + HOUR), ("second", city.clock.now() + 3 * HOUR),
    ]  # fmt: skip
    assert len(upcoming(1)) == 1


def test_starts_are_counted_that_are_of_late_and_count(city: City) -> None:
    now = city.clock.now()
    rows = [
        AgentStart("sta_1", SessionName("a"), "a", "s1", now, "wanted"),
        AgentStart("sta_2", SessionName("a"), "a", "s2", now + SECOND, "wanted", ended_at=now + HOUR),
        AgentStart("sta_3", SessionName("a"), "a", "s3", now + 2 * SECOND, "drift", counted=False),
        AgentStart("sta_4", SessionName("b"), "b", "s4", now + SECOND, "wanted"),
    ]
    for row in rows:
        city.run(lambda tx, row=row: tx.agents.add(row))
    counted = city.read(lambda tx: tx.summary.counted_starts(since=now))
    assert counted == {"a": (1, now + HOUR), "b": (1, now + SECOND)}


def test_a_city_has_a_history_once_there_is_anything_that_no_file_tells(city: City) -> None:
    has = lambda: city.read(lambda tx: (tx.summary.has_history(), tx.summary.has_owners()))  # noqa: E731
    assert has() == (False, False)
    city.add("light")
    assert has() == (True, False)
    city.run(lambda tx: tx.db.execute("UPDATE automations SET source = 'file'", {}))
    assert has() == (False, False)
    bead = city.run(beads.create, NewBead("Lamp"), prefix="te", ctx=city.context).id
    city.run(lambda tx: tx.owners.register(Owner("own_1", "worker", "box", 1, city.clock.now(), "here")))
    assert has() == (True, True)
    city.run(lambda tx: tx.beads.delete_trees([bead]))
    assert has() == (False, True)
    city.run_now("light")
    assert has() == (True, True)


def test_what_came_too_early_in_slack_waits_once_in_its_thread_and_not_for_ever(city: City) -> None:
    now = city.clock.now()
    rows = [
        Early("T1", "C1", "1.0", "3.0", "later", now),
        Early("T1", "C1", "1.0", "2.0", "sooner", now),
        Early("T1", "C1", "9.0", "2.0", "another thread", now),
        Early("T1", "C2", "1.0", "2.0", "another channel", now),
        Early("T2", "C1", "1.0", "2.0", "another workspace", now + SECOND),
    ]
    for row in (*rows, replace(rows[0], said="repeated")):
        city.run(lambda tx, row=row: tx.slack.keep_early(row))
    of = lambda *place: [one.said for one in city.read(lambda tx: tx.slack.early_of(*place))]  # noqa: E731
    assert of("T1", "C1", "1.0") == ["sooner", "later"]
    take = lambda row: city.run(lambda tx: tx.slack.take_early(row))  # noqa: E731
    assert (take(rows[1]), take(rows[1])) == (True, False)
    assert (of("T1", "C1", "1.0"), of("T1", "C1", "9.0"), of("T1", "C2", "1.0")) == (
        ["later"], ["another thread"], ["another channel"],
    )  # fmt: skip
    forget = lambda before: city.run(lambda tx: tx.slack.forget_early(before=before))  # noqa: E731
    assert (forget(now), forget(now + SECOND)) == (0, 3)
    assert of("T2", "C1", "1.0") == ["another workspace"]
    heard = lambda team, event: city.run(lambda tx: tx.slack.heard(team, event, now))  # noqa: E731
    assert (heard("T1", "Ev1"), heard("T1", "Ev1"), heard("T2", "Ev1"), heard("T1", "Ev2")) == (True, False, True, True)
    prune = lambda before, limit=9: city.run(lambda tx: tx.slack.prune(before=before, limit=limit))  # noqa: E731
    assert (prune(now), prune(now + SECOND, 1), prune(now + SECOND)) == (0, 1, 2)
    assert heard("T1", "Ev1")
