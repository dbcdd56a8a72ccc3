"""Nodes on record: who joins, who may take what, and what becomes of the runs of one that is lost."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from automation_city import City

from lamplighter.domain.cluster.nodes import NodeTaken, RigElsewhere
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.runs.model import By, Mover, RunState
from lamplighter.services import node_views, nodes, outbox, owners
from lamplighter.services.runs import executing, review
from lamplighter.store.owners import Owner
from lamplighter.store.sessions import SessionRow
from lamplighter.store.tx import Tx

GRACE = timedelta(minutes=5)


def enlisted(city: City, name: str, kind: str = "worker") -> Owner:
    found = Owner(name, kind, "box", 1, city.clock.now())
    city.run(owners.register, found)
    return found


def joined(city: City, name: str, node: str, rigs: dict[str, str] | None = None, place: str = "") -> Owner:
    owner = enlisted(city, name)
    joining = nodes.Joining(owner.id, node, "box", place or f"box:/{node}", rigs or {})
    city.run(nodes.join, joining, city.context)
    return next(one for one in city.read(lambda tx: tx.owners.all()) if one.id == name)


def claim(city: City, node: str, *rigs: str, owner: str = "own_x") -> list[Any]:
    found: list[Any] = city.run(outbox.claim_due, owner, city.clock.now(), limit=10, reach=Reach(node, frozenset(rigs)))
    return found


def state_of(city: City, node: str) -> str:
    found: str = next(row.state for row in city.read(node_views.every, city.read(lambda tx: tx.owners.all()))
                      if row.name == node)  # fmt: skip
    return found


def test_a_node_lives_with_its_processes_and_is_lost_with_the_last_of_them(city: City) -> None:
    one, other = joined(city, "own_1", "east", {"web": "/web"}), joined(city, "own_2", "east")
    assert state_of(city, "east") == "alive"
    city.run(owners.expire, one, ctx=city.context)
    assert state_of(city, "east") == "alive"
    city.run(owners.expire, other, ctx=city.context)
    assert state_of(city, "east") == "lost"
    assert [event.subject for event in city.events("node.lost")] == ["east"]


def test_a_node_whose_last_process_left_has_stopped(city: City) -> None:
    joined(city, "own_1", "east")
    city.run(owners.resign, "own_1", ctx=city.context)
    assert state_of(city, "east") == "stopped"
    joined(city, "own_2", "east")
    assert state_of(city, "east") == "alive"


def test_what_is_on_record_as_alive_without_a_living_process_is_shown_as_lost(city: City) -> None:
    joined(city, "own_1", "east")
    assert [row.state for row in city.read(node_views.every, [])] == ["lost"]


def test_a_name_leads_to_one_place(city: City) -> None:
    joined(city, "own_1", "east")
    with pytest.raises(NodeTaken):
        joined(city, "own_2", "east", place="barn:/east")


def test_processes_of_one_node_agree_on_where_a_rig_is(city: City) -> None:
    joined(city, "own_1", "east", {"web": "/a"})
    with pytest.raises(RigElsewhere):
        joined(city, "own_2", "east", {"web": "/b"})
    joined(city, "own_3", "east", {"web": "/a", "api": "/c"})
    assert next(row.rigs for row in city.read(node_views.every, [])) == ["api", "web"]


def test_an_item_goes_only_to_who_holds_its_rig(city: City) -> None:
    city.add("a", rig="web")
    city.add("b")
    run = city.run_now("a:rig:web").run
    free = city.run_now("b").run
    assert [item.payload["run"] for item in claim(city, "west", "api")] == [free]
    assert claim(city, "west", "api") == []
    assert city.read(outbox.next_due_at, reach=Reach("west", frozenset({"api"}))) is None
    assert [item.payload["run"] for item in claim(city, "west", "web")] == [run]


def test_a_retry_and_a_restored_item_need_the_rig_as_well(city: City) -> None:
    city.add("a", rig="web")
    run = city.run_now("a:rig:web").run
    city.finish(run, "failed", "exit_1")
    again = city.run(review.retry, run, ctx=city.context).id
    assert claim(city, "west", "api") == []
    city.run(lambda tx: tx.db.execute("DELETE FROM outbox WHERE run_id = :run", {"run": again}))
    city.advance(minutes=2)
    assert city.run(review.sweep, ctx=city.context) == 1
    assert claim(city, "west", "api") == []
    assert [item.payload["run"] for item in claim(city, "west", "web")] == [again]


def test_a_kind_that_is_left_out_is_not_taken(city: City) -> None:
    city.add("a")
    city.run_now("a")
    reach = Reach("west", frozenset(), frozenset({"enqueue_execute"}))
    assert city.run(outbox.claim_due, "own_x", city.clock.now(), limit=5, reach=reach) == []
    assert city.read(outbox.next_due_at, reach=reach) is None


def test_only_the_sessions_own_node_is_asked_to_stop_it(city: City) -> None:
    run = agent_run(city, review.Worker("own_1", "east"))
    city.run(review.cancel, run, ctx=city.context)
    assert [item.kind for item in claim(city, "west", "web")] == []
    assert [item.kind for item in claim(city, "east")] == ["stop_session"]


def test_what_a_dead_worker_had_not_started_goes_to_others_at_once(city: City) -> None:
    dead = joined(city, "own_1", "east")
    city.add("a")
    run = city.run_now("a").run
    assert len(claim(city, "east", owner="own_1")) == 1
    city.run(owners.expire, dead, ctx=city.context)
    (item,) = claim(city, "west", owner="own_2")
    assert (item.payload["run"], item.attempts, item.recoveries) == (run, 0, 1)


def test_runs_of_a_lost_node_fail_after_the_grace_and_not_before(city: City) -> None:
    dead = joined(city, "own_1", "east")
    city.add("a")
    run = city.run_now("a").run
    city.start(run, review.Worker("own_1", "east"))
    city.run(owners.expire, dead, ctx=city.context)
    assert end_stranded(city) == []
    city.advance(minutes=6)
    assert end_stranded(city) == [run]
    row = city.get(run)
    assert (row.state, row.reason) == (RunState.FAILED, "node_lost")
    settled = city.read(lambda tx: tx.trigger_events.get(row.trigger_event))
    assert (settled.status, settled.reason) == ("failed", "node_lost")
    assert city.read(lambda tx: tx.beads.get(row.bead)).status == "closed"
    again = city.run(review.retry, run, ctx=city.context).id
    assert [item.payload["run"] for item in claim(city, "west")] == [again]


def test_a_node_that_comes_back_in_time_goes_on_with_its_runs(city: City) -> None:
    dead = joined(city, "own_1", "east")
    city.add("a")
    run = city.run_now("a").run
    city.start(run, review.Worker("own_1", "east"))
    city.run(owners.expire, dead, ctx=city.context)
    city.advance(minutes=4)
    joined(city, "own_2", "east")
    city.advance(minutes=4)
    assert end_stranded(city) == []  # it lives: whether it has room for it yet or not
    (adopted,) = city.run(review.adopt, review.Worker("own_2", "east"), city.clock.now())
    assert adopted.id == run
    assert end_stranded(city) == []


def test_a_process_takes_up_only_runs_of_rigs_it_holds(city: City) -> None:
    dead = joined(city, "own_1", "east", {"web": "/web"})
    city.add("a", rig="web")
    run = city.run_now("a:rig:web").run
    city.start(run, review.Worker("own_1", "east"))
    city.run(owners.expire, dead, ctx=city.context)
    me = review.Worker("own_2", "east")
    assert city.run(review.adopt, me, city.clock.now(), rigs=frozenset({"api"})) == []
    assert [row.id for row in city.run(review.adopt, me, city.clock.now(), rigs=frozenset({"web"}))] == [run]


def test_the_session_of_a_lost_node_is_ended_on_record_and_to_be_stopped_should_it_return(city: City) -> None:
    dead = joined(city, "own_1", "east")
    run = agent_run(city, review.Worker("own_1", "east"))
    city.run(owners.expire, dead, ctx=city.context)
    city.advance(minutes=6)
    assert end_stranded(city) == [run]
    (session,) = city.read(lambda tx: tx.sessions.of_run(run))
    assert session.end_reason == "its node was lost"
    assert [item.last_run for item in city.run(lambda tx: tx.inbox.to_tell(limit=10))] == [run]
    assert [item.kind for item in claim(city, "east")] == ["stop_session"]


def test_what_a_dead_process_wrote_after_its_burial_is_voided_too(city: City) -> None:
    """A database may commit a last transaction of a process after its proof of life fell."""
    dead = joined(city, "own_1", "east")
    city.add("a")
    city.add("b")
    late, claimed = city.run_now("a").run, city.run_now("b").run
    city.run(owners.expire, dead, ctx=city.context)
    city.start(late, review.Worker("own_1", "east"))
    city.run(outbox.claim_due, "own_1", city.clock.now(), limit=1, run=claimed)
    assert city.read(lambda tx: tx.owners.stale_claims()) == ["own_1"]
    city.run(owners.void_stale, ctx=city.context)
    assert city.read(lambda tx: tx.owners.stale_claims()) == []
    assert [row.id for row in city.run(review.adopt, review.Worker("own_2", "east"), city.clock.now())] == [late]
    (item,) = city.run(outbox.claim_due, "own_2", city.clock.now(), limit=5)
    assert (item.payload["run"], item.attempts) == (claimed, 0)


def test_a_run_that_ended_meanwhile_is_no_error_for_who_wanted_to_end_it(city: City) -> None:
    city.add("a")
    run = city.run_now("a").run
    city.finish(run)
    ending = review.Ending(RunState.TIMED_OUT, "deadline_exceeded")
    by = By(Mover.FINALIZER, "finalizer")
    assert city.run(review.end_if_active, run, ending, by, ctx=city.context) is None


def test_nodes_long_gone_are_forgotten_unless_a_run_speaks_of_them(city: City) -> None:
    gone, other = joined(city, "own_1", "east"), joined(city, "own_2", "west")
    city.add("a")
    city.start(city.run_now("a").run, review.Worker("own_2", "west"))
    for owner in (gone, other):
        city.run(owners.expire, owner, ctx=city.context)
    city.advance(minutes=1)
    assert city.run(nodes.prune, before=city.clock.now()) == 1
    assert [row.name for row in city.read(node_views.every, [])] == ["west"]


def test_the_controller_leads_the_city_and_the_oldest_worker_without_one(city: City) -> None:
    joined(city, "own_1", "east")
    joined(city, "own_2", "east")
    assert city.read(nodes.leads, "own_1") is True
    assert city.read(nodes.leads, "own_2") is False
    enlisted(city, "own_3", "controller")
    assert city.read(nodes.leads, "own_3") is True
    assert city.read(nodes.leads, "own_1") is False
    assert city.read(nodes.leads_node, "own_1", "east") is True
    assert city.read(nodes.alone, "own_1", "east") is False


def end_stranded(city: City) -> list[str]:
    found: list[str] = city.run(nodes.end_stranded, before=city.clock.now() - GRACE, ctx=city.context)
    return found


def agent_run(city: City, worker: review.Worker) -> str:
    """A run at work in a session of its own, whatever waited in the outbox settled."""
    from lamplighter.domain.runs.target import How, Target
    from lamplighter.services.runs import enriching

    city.add("agent", agent={"prompt": "Go."})
    run = city.run_now("agent").run
    (item,) = city.run(outbox.claim_due, worker.owner, city.clock.now(), limit=5, run=run)
    city.run(enriching.enrich, item, worker, ctx=city.context)
    for waiting in city.run(outbox.claim_due, worker.owner, city.clock.now(), limit=5, run=run):
        if waiting.kind == "enqueue_execute":
            target = Target(How.DEFAULT, None, "selection_disabled")
            city.run(executing.begin, waiting, target, worker, ctx=city.context)
        else:
            city.run(outbox.done, waiting, city.clock.now())
    session = SessionRow(f"ses_{run}", run, None, run, "subprocess", worker.node, 1, city.clock.now())
    city.run(executing.began, run, executing.Began(session, "none"), city.context)
    return run


def test_a_node_that_comes_back_while_its_runs_are_given_up_has_each_or_has_it_not(
    city: City, ask_at_once: Callable[[list[Callable[..., Any]]], list[Any]]
) -> None:
    dead = joined(city, "own_1", "east")
    fired = []
    for number in range(8):
        city.add(f"a{number}")
        fired.append(city.run_now(f"a{number}").run)
        city.start(fired[-1], review.Worker("own_1", "east"))
    city.run(owners.expire, dead, ctx=city.context)
    city.advance(minutes=6)
    enlisted(city, "own_2")  # it has not said yet where it works
    now = city.clock.now()

    def give_up(tx: Tx) -> list[str]:
        return nodes.end_stranded(tx, before=now - GRACE, ctx=city.context)

    def take_up(tx: Tx) -> list[str]:
        return [row.id for row in review.adopt(tx, review.Worker("own_2", "east"), now, limit=2)]

    answers = ask_at_once([give_up, take_up, take_up, give_up, take_up])
    assert Counter(run for answer in answers for run in answer) == Counter(fired)
    for run in fired:
        row = city.get(run)
        assert (row.state, row.lease.owner) in {(RunState.FAILED, None), (RunState.RUNNING, "own_2")}


def test_several_may_end_what_is_overdue(
    city: City, ask_at_once: Callable[[list[Callable[..., Any]]], list[Any]]
) -> None:
    for number in range(5):
        city.add(f"a{number}", deadline="1m")
        city.run_now(f"a{number}")
    city.advance(minutes=2)
    ctx = city.context
    ask_at_once([lambda tx: review.time_out(tx, ctx=ctx)] * 5)
    for number in range(5):
        (row,) = city.runs_of(f"a{number}")
        assert row.state is RunState.TIMED_OUT
        told = city.read(lambda tx, run=row.id: tx.runs.events(run))
        assert [event.to_state for event in told].count("timed_out") == 1
