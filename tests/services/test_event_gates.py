"""Event gates: the durable cursor, batches, chains of causes, and what waits through an outage."""

from automation_city import City

from lamplighter.domain.runs.model import RunState
from lamplighter.services.automations import editing
from lamplighter.services.context import acting
from lamplighter.services.runs import cooking, review
from lamplighter.store.engine.numbering import number_committed
from lamplighter.store.tx import Tx
from lamplighter.store.url import PostgresUrl

OUTAGE = 10_000


def seqs(city: City, run: str) -> list[int]:
    event = city.read(lambda tx: tx.trigger_events.get(tx.runs.get(run).trigger_event))
    return [one["seq"] for one in event.payload["events"]]


def test_a_new_event_trigger_starts_at_the_head(city: City) -> None:
    city.emit("x.y")
    city.add("hears", gate="event", on="x.y")
    assert city.tick().fired == []
    city.emit("x.y")
    assert len(city.tick().fired) == 1


def test_case_22_the_same_event_never_fires_twice_also_after_a_restart(city: City) -> None:
    city.add("hears", gate="event", on="x.y")
    city.emit("x.y")
    (run,) = city.tick().fired
    city.finish(run)
    assert city.tick().fired == []
    city.position = 0  # a new scheduler that looks at the whole log again
    assert city.tick().fired == []
    assert len(city.runs_of("hears")) == 1


def test_events_during_a_run_wait_for_its_end_and_come_as_one_batch(city: City) -> None:
    city.add("hears", gate="event", on="x.*")
    city.emit("x.y", {"n": 1})
    (first,) = city.tick().fired
    for number in (2, 3):
        city.emit("x.z", {"n": number})
        assert city.tick().fired == []
    assert city.trigger("hears").held_by == first
    city.finish(first)
    (second,) = city.tick().fired
    assert len(seqs(city, first)) == 1
    assert len(seqs(city, second)) == 2
    assert seqs(city, first) + seqs(city, second) == sorted(seqs(city, first) + seqs(city, second))


def test_a_batch_of_one_gives_a_run_each(city: City) -> None:
    city.add("hears", gate="event", on="x.y", batch=1, overlap="allow")
    for _ in range(3):
        city.emit("x.y")
    fired = []
    while found := city.tick().fired:
        fired += found
    assert [len(seqs(city, run)) for run in fired] == [1, 1, 1]


def test_a_match_on_the_payload_passes_the_others_over_for_good(city: City) -> None:
    city.add("hears", gate="event", on="x.y", match={"level": "high"})
    city.emit("x.y", {"level": "low"})
    assert city.tick().fired == []
    cursor = city.trigger("hears").state.event_cursor
    assert cursor == city.read(lambda tx: tx.events.head())
    city.emit("x.y", {"level": "high"})
    assert len(city.tick().fired) == 1


def test_two_automations_that_listen_to_each_other_come_to_rest(city: City) -> None:
    city.add("ping", gate="event", on="pong.said")
    city.add("pong", gate="event", on="ping.said")
    city.emit("ping.said")
    turns = 0
    while fired := city.tick().fired:
        turns += 1
        assert turns < 20
        for run in fired:
            row = city.get(run)
            said = f"{row.automation}.said"
            city.emit(said, by_run=run)
            city.finish(run)
    assert [row.automation for row in city.runs_of("pong")] == ["pong"]
    assert [row.causes for row in city.runs_of("ping")] == [("pong",)]


def test_an_automation_that_listens_to_automations_does_not_feed_itself(city: City) -> None:
    city.add("watch", gate="event", on="automation.*")
    city.add("work", gate="cooldown", interval="1h")
    turns = 0
    while fired := city.tick().fired:
        turns += 1
        assert turns < 10
        for run in fired:
            city.finish(run)
    assert len(city.runs_of("work")) == 1
    assert len(city.runs_of("watch")) <= 3


def test_ten_thousand_events_of_an_outage_are_delivered_each_once_and_in_order(city: City) -> None:
    city.add("hears", gate="event", on="x.y", batch=1000)
    city.tick()

    def append(tx: Tx) -> None:
        ctx = acting("tester", city.clock.now())
        for number in range(OUTAGE):
            tx.events.append(ctx.event("x.y", payload={"n": number}))

    city.run(append)
    if isinstance(city.place, PostgresUrl):
        while city.run(lambda tx: number_committed(tx.db)):
            pass
    heard: list[int] = []
    for _ in range(50):
        for run in city.tick().fired:
            event = city.read(lambda tx, run=run: tx.trigger_events.get(tx.runs.get(run).trigger_event))
            heard += [one["payload"]["n"] for one in event.payload["events"]]
            city.finish(run)
        if len(heard) >= OUTAGE:
            break
    assert heard == list(range(OUTAGE))
    assert city.tick().fired == []


def test_events_while_disabled_are_not_made_up_for(city: City) -> None:
    city.add("hears", gate="event", on="x.y")
    city.run(editing.set_enabled, "hears", enabled=False, rules=city.rules, ctx=city.context)
    city.emit("x.y")
    assert city.tick().fired == []
    city.run(editing.set_enabled, "hears", enabled=True, rules=city.rules, ctx=city.context)
    assert city.tick().fired == []
    city.emit("x.y")
    assert len(city.tick().fired) == 1


def test_a_formula_run_carries_the_labels_of_the_seed(city: City) -> None:
    from lamplighter.domain.beads.formulas import Formula, Step, plan
    from lamplighter.services import outbox
    from lamplighter.services.beads import changes as beads

    city.add("build", gate="event", on="x.y", formula="feature", pool="crew", rig="web")
    city.emit("x.y")
    (run,) = city.tick().fired
    planned = plan(Formula("feature", "", None, (), (Step("a", "A"),), ""), title=None, values={})
    worker = review.Worker("own_1", "here")
    (item,) = city.run(outbox.claim_due, worker.owner, city.clock.now(), limit=1, run=run)
    row = city.run(cooking.cook, item, planned, worker, prefix="w", ctx=city.context)
    wisp = city.read(beads.get, row.wisp)
    (seq,) = seqs(city, run)
    assert set(wisp.labels) == {
        "automation-run:build:rig:web", f"run:{run}", "pool:web/crew", "automation:build:rig:web", f"seq:{seq}",
    }  # fmt: skip
    assert row.state is RunState.RUNNING
    assert row.lease.owner is None
    assert len(city.events("automation.completed")) == 1
    (step,) = city.read(lambda tx: tx.beads.children(wisp.id))
    assert city.run(cooking.end_wisps, ctx=city.context) == []
    city.run(beads.close, step.id, ctx=city.context)
    assert len(city.run(cooking.end_wisps, ctx=city.context)) == 1
    assert (city.get(run).state, city.get(run).reason) == (RunState.SUCCEEDED, "wisp_closed")


def test_a_wisp_nobody_closes_is_timed_out_after_a_day_and_blocks_no_longer(city: City) -> None:
    from lamplighter.domain.beads.formulas import Formula, Step, plan
    from lamplighter.services import outbox

    city.add("build", gate="cooldown", interval="1h", formula="feature")
    (run,) = city.tick().fired
    planned = plan(Formula("feature", "", None, (), (Step("a", "A"),), ""), title=None, values={})
    worker = review.Worker("own_1", "here")
    (item,) = city.run(outbox.claim_due, worker.owner, city.clock.now(), limit=1, run=run)
    city.run(cooking.cook, item, planned, worker, prefix="t", ctx=city.context)
    city.advance(hours=2)
    assert city.tick().fired == []
    city.advance(hours=22)
    assert len(city.run(review.time_out, ctx=city.context)) == 1
    assert (city.get(run).state, city.get(run).reason) == (RunState.TIMED_OUT, "deadline_exceeded")
    assert len(city.tick().fired) == 1
