"""A city with something of every kind on record, and a call of every method of every repository upon it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from automation_city import City

from lamplighter.domain.acts import Act
from lamplighter.domain.beads.model import BeadFilter, BeadStatus, NewBead
from lamplighter.domain.city.model import Configuration
from lamplighter.domain.cluster.nodes import Node, NodeState
from lamplighter.domain.delivery.effects import Effect, EffectState
from lamplighter.domain.events import EventFilter
from lamplighter.domain.runs.lease import void
from lamplighter.domain.runs.model import RunState
from lamplighter.domain.sessions.crashes import SessionHistory
from lamplighter.domain.sessions.model import SessionName
from lamplighter.services import beads, configurations, outbox
from lamplighter.services.runs import review
from lamplighter.store.agents import AgentStart
from lamplighter.store.artifacts import ArtifactRow
from lamplighter.store.owners import Owner
from lamplighter.store.run_rows import NewRunEvent, RunRow
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.triggers import BLOCKED
from lamplighter.store.tx import Tx

HERE = review.Worker("own_gone", "here")
MAYOR = SessionName("gc-town-mayor")


@dataclass(frozen=True)
class Known:
    """The names that the calls need."""

    city: City
    running: str
    ended: str
    waiting: str
    agent: str
    wisp: str
    top: str
    below: str
    wanting: str

    @property
    def later(self) -> Any:
        return self.city.clock.now() + timedelta(days=400)


def told(city: City) -> Known:
    """Fill it. What is waited for has come, what may be late is late, whoever held something is gone."""
    now = city.clock.now()
    city.add("often", gate="cooldown", interval="1h", overlap="allow", quiet_after="1h")
    city.add("daily", gate="schedule", cadence="daily", hour=10, minute=0)
    city.add("hears", gate="event", on="lamp.*", overlap="queue")
    city.add("asks", gate="condition", check="true")
    city.add("light", agent={"prompt": "Light the lamps."}, overlap="allow")
    city.add("cooks", formula="feature", overlap="allow")
    city.run(lambda tx: tx.owners.register(Owner("own_left", "worker", "box", 7, now, "here")))
    city.emit("lamp.lit", {"n": 1})
    city.tick()
    city.emit("lamp.lit", {"n": 2})
    city.tick()
    running, ended, waiting = [city.run_now("often").run for _ in range(3)]
    city.start(running, HERE)
    city.finish(ended, "failed", "exit_1")
    agent, cooked, elsewhere = city.run_now("light").run, city.run_now("cooks").run, city.run_now("cooks").run
    lost = city.run_now("often").run
    city.run(outbox.claim_due, HERE.owner, now, limit=2)
    top, below, wanting = city.run(_beads, city)
    wisp = city.run(_wisps, cooked, elsewhere, now)
    city.run(_papers, city, ended=ended, agent=agent, lost=lost)
    city.advance(days=30)
    city.run(lambda tx: tx.cities.scanned(1))
    return Known(city, running, ended, waiting, agent, wisp, top, below, wanting)


def _beads(tx: Tx, city: City) -> tuple[str, str, str]:
    act = city.act

    def make(**keys: Any) -> str:
        return beads.create(tx, NewBead(**keys), prefix="te", ids=city.ids, act=act).id

    top = make(title="Top", labels=("pool:crew", "urgent"), ephemeral=True)
    below = make(title="Below", parent=top)
    need = make(title="Need", assignee="mayor")
    wanting = make(title="Wanting", needs=(need,), labels=("urgent",))
    beads.claim(tx, need, "mayor", act=act)
    old = make(title="Old", ephemeral=True)
    beads.close(tx, old, act=act)
    return top, below, wanting


def _wisps(tx: Tx, cooked: str, elsewhere: str, now: Any) -> str:
    """One formula run whose wisp is gone, one whose wisp another store keeps; both wait for it."""
    for run, away in ((cooked, False), (elsewhere, True)):
        row = tx.runs.get(run)
        assert row is not None
        at_work = replace(row.run, state=RunState.RUNNING, started_at=now, lease=void(row.run.lease))
        tx.runs.swap(row.run, RunRow(at_work, replace(row.facts, wisp=f"te-{run}", wisp_elsewhere=away)))
    return cooked


def _papers(tx: Tx, city: City, *, ended: str, agent: str, lost: str) -> None:
    now = city.clock.now()
    tx.db.execute("DELETE FROM outbox WHERE city_id = :city AND run_id = :run", {"city": tx.city, "run": lost})
    row = tx.runs.get(agent)
    assert row is not None
    at_work = replace(row.run, state=RunState.RUNNING, started_at=now, session_id="ses_1", last_activity_at=now)
    tx.runs.swap(row.run, RunRow(at_work, replace(row.facts, node="there")))
    tx.runs.void_leases("nobody", now=now)
    orphaned = "UPDATE runs SET orphaned_at = :now WHERE city_id = :city AND id = :run"
    tx.db.execute(orphaned, {"city": tx.city, "now": 1, "run": agent})
    for run in (agent, ended):
        tx.runs.keep_enrichment(run, "{}")
        tx.runs.set_worktree(run, {"path": "/w", "branch": "b"})
    placed = "UPDATE runs SET node = 'here' WHERE city_id = :city AND id = :run"
    tx.db.execute(placed, {"city": tx.city, "run": ended})
    tx.sessions.add(SessionRow("ses_1", "gc-town-light", "light", agent, "subprocess", "there", 9, now))
    tx.sessions.add(SessionRow("ses_0", str(MAYOR), "mayor", None, "subprocess", "here", 8, now))
    tx.sessions.end("ses_0", SessionEnd(now, "its program ended", 3, "bye"))
    tx.transcripts.advance("ses_1", before=0, after=10, program="p")
    tx.transcripts.add("ses_1", 1, [("text", {"text": "begun"})], now)
    for name in ("completion", "enrichment"):
        tx.artifacts.put(ArtifactRow(ended, name, f"runs/{ended}/{name}.json", 2, "application/json", now))
    for effect, state in (("eff_1", EffectState.DONE), ("eff_2", EffectState.INTENDED)):
        tx.effects.put(Effect(effect, "notify", "r", now, ended, state))
    for number in (1, 2):
        tx.agents.add(AgentStart(f"sta_{number}", MAYOR, "mayor", f"ses_{number}", now, "wanted"))
        if number == 1:
            tx.agents.end(MAYOR, now, wished=False, exit_status=1, reason="crashed")
    tx.agents.note(MAYOR, SessionHistory((), "ses_1", now))
    tx.nodes.put(Node("here", "box:/here", ("web",), NodeState.ALIVE, now))
    tx.nodes.put(Node("gone", "box:/gone", (), NodeState.STOPPED, now))
    configurations.sync(tx, (Configuration(name="web"),), now)
    conditions = tx.triggers.conditions()
    tx.triggers.put(replace(conditions[0], zone="Europe/Athens"))
    daily = tx.triggers.of(_id(tx, "daily"))[0]
    tx.triggers.put(replace(daily, held_by=BLOCKED))


def _id(tx: Tx, name: str) -> str:
    row = tx.automations.named(name)
    assert row is not None
    return row.id


def _run(tx: Tx, run: str) -> RunRow:
    row = tx.runs.get(run)
    assert row is not None
    return row


def _swap(tx: Tx, know: Known) -> None:
    row = _run(tx, know.running)
    tx.runs.swap(row.run, RunRow(replace(row.run, error="swapped"), row.facts))


def _end(tx: Tx, know: Known) -> None:
    row = _run(tx, know.running)
    after = replace(row.run, state=RunState.FAILED, ended_at=know.later, lease=void(row.run.lease))
    tx.runs.end(row.run, RunRow(after, row.facts))


def _place(tx: Tx, _know: Known) -> None:
    for owner in ("own_left", "own_leftb"):
        tx.owners.place(owner, "there", {})


def _swap_item(tx: Tx, know: Known) -> None:
    item = tx.outbox.due(know.later, limit=1)[0]
    tx.outbox.swap(item, replace(item, last_error="swapped"), now=know.later)


def _event_of(tx: Tx, know: Known) -> TriggerEvent:
    found = tx.trigger_events.get(_run(tx, know.ended).run.trigger_event or "")
    assert found is not None
    return found


def _skip(tx: Tx, know: Known) -> str:
    made = replace(_event_of(tx, know), id="tev_skip", status="skipped", reason="overlap", dedup_key="once")
    assert tx.trigger_events.insert(made)
    return made.id


def _bead(tx: Tx, bead: str) -> Any:
    found = tx.beads.get(bead)
    assert found is not None
    return found


Call = Callable[[Tx, Known], Any]
CALLS: dict[str, Call] = {
    "agents.add": lambda tx, k: tx.agents.add(AgentStart("sta_9", MAYOR, "mayor", "ses_9", k.later, "wanted")),
    "agents.end": lambda tx, k: tx.agents.end(MAYOR, k.later, wished=True, exit_status=0, reason="asked"),
    "agents.note": lambda tx, k: tx.agents.note(MAYOR, SessionHistory((), "ses_2", k.later)),
    "agents.clear": lambda tx, _: tx.agents.clear(MAYOR),
    "agents.remembered": lambda tx, k: tx.agents.remembered(k.city.clock.now() - timedelta(days=999)),
    "agents.latest": lambda tx, _: tx.agents.latest(MAYOR),
    "agents.prune": lambda tx, k: tx.agents.prune(before=k.later, limit=99),
    "artifacts.put": lambda tx, k: tx.artifacts.put(ArtifactRow(k.ended, "completion", "k", 9, "t", k.later)),
    "artifacts.of": lambda tx, k: tx.artifacts.of(k.ended),
    "artifacts.old": lambda tx, k: tx.artifacts.old(before=k.later, limit=99),
    "artifacts.forget": lambda tx, k: tx.artifacts.forget(tx.artifacts.of(k.ended)[0]),
    "automations.insert": lambda tx, _: tx.automations.insert(
        replace(tx.automations.page()[0], id="aut_9", scoped_name="new", name="new")
    ),
    "automations.save": lambda tx, _: tx.automations.save(replace(tx.automations.page()[0], failures=7)),
    "automations.get": lambda tx, _: tx.automations.get(_id(tx, "often")),
    "automations.lock": lambda tx, _: tx.automations.lock(_id(tx, "often")),
    "automations.named": lambda tx, _: tx.automations.named("often"),
    "automations.lock_named": lambda tx, _: tx.automations.lock_named("often"),
    "automations.some": lambda tx, _: tx.automations.some([_id(tx, "often"), _id(tx, "daily")]),
    "automations.lock_some": lambda tx, _: tx.automations.lock_some([_id(tx, "often")]),
    "automations.lock_some_named": lambda tx, _: tx.automations.lock_some_named(["often", "daily"]),
    "automations.page": lambda tx, _: tx.automations.page(),
    "automations.of_files": lambda tx, _: tx.automations.of_files(),
    "automations.delete": lambda tx, _: tx.automations.delete(_id(tx, "asks")),
    "automations.count_failures": lambda tx, _: tx.automations.count_failures(_id(tx, "often"), 3),
    "automations.set_quiet": lambda tx, k: tx.automations.set_quiet(_id(tx, "often"), k.later),
    "automations.quiet": lambda tx, k: tx.automations.quiet(k.later, limit=99),
    "beads.insert": lambda tx, k: tx.beads.insert("te-new", NewBead("New"), root="te-new", run=None, now=k.later),
    "beads.track": lambda tx, k: tx.beads.track("te-track", "t", sender="s", run=k.running, now=k.later),
    "beads.close": lambda tx, k: tx.beads.close(k.below, k.later),
    "beads.insert_whole": lambda tx, k: tx.beads.insert_whole(replace(_bead(tx, k.below), id="te-whole")),
    "beads.get": lambda tx, k: tx.beads.get(k.below),
    "beads.lock": lambda tx, k: tx.beads.lock(k.below),
    "beads.root_of": lambda tx, k: tx.beads.root_of(k.below),
    "beads.save": lambda tx, k: tx.beads.save(replace(_bead(tx, k.below), title="Saved")),
    "beads.move_subtree": lambda tx, k: tx.beads.move_subtree(k.top, k.wanting),
    "beads.children": lambda tx, k: tx.beads.children(k.top),
    "beads.has_open_child": lambda tx, k: tx.beads.has_open_child(k.top),
    "beads.matching": lambda tx, _: [
        tx.beads.matching(wanted, limit=99)
        for wanted in (
            BeadFilter(),
            BeadFilter(label="urgent"),
            BeadFilter(label="exec"),
            BeadFilter(status=BeadStatus.CLOSED),
        )
    ],
    "beads.ready": lambda tx, _: [tx.beads.ready(limit=99), tx.beads.ready(label="urgent", limit=99)],
    "beads.unmet_needs": lambda tx, k: tx.beads.unmet_needs(k.wanting),
    "beads.waits_for": lambda tx, k: tx.beads.waits_for(k.wanting, _bead(tx, k.wanting).needs[0]),
    "beads.add_labels": lambda tx, k: tx.beads.add_labels(k.below, ["more"]),
    "beads.given_labels": lambda tx, k: tx.beads.given_labels(_bead(tx, _run(tx, k.ended).facts.bead or "")),
    "beads.remove_labels": lambda tx, k: tx.beads.remove_labels(k.top, ["urgent"]),
    "beads.add_needs": lambda tx, k: tx.beads.add_needs(k.below, [k.wanting]),
    "beads.remove_needs": lambda tx, k: tx.beads.remove_needs(k.wanting, _bead(tx, k.wanting).needs),
    "beads.collectable": lambda tx, k: tx.beads.collectable(before=k.later, limit=99),
    "beads.delete_trees": lambda tx, k: tx.beads.delete_trees([k.top]),
    "beads.at_work": lambda tx, _: tx.beads.at_work(),
    "beads.held_by": lambda tx, _: tx.beads.held_by("mayor"),
    "beads.waiting": lambda tx, _: tx.beads.waiting("urgent"),
    "beads.counts": lambda tx, _: tx.beads.counts(),
    "cities.ensure": lambda tx, k: tx.cities.ensure("renamed", k.later),
    "cities.find": lambda tx, _: tx.cities.find(),
    "cities.lock": lambda tx, _: tx.cities.lock(),
    "cities.take_control": lambda tx, k: tx.cities.take_control("own_1", expected=0, now=k.later),
    "cities.drop_control": lambda tx, _: tx.cities.drop_control("own_0"),
    "cities.pause": lambda tx, k: tx.cities.pause("ada", k.later),
    "cities.scanned": lambda tx, _: tx.cities.scanned(9999),
    "configurations.put": lambda tx, k: tx.configurations.put(
        replace(tx.configurations.all()[0], body={"model": "big"}), k.later
    ),
    "configurations.all": lambda tx, _: tx.configurations.all(),
    "configurations.delete": lambda tx, _: tx.configurations.delete("web"),
    "effects.lock": lambda tx, _: tx.effects.lock("eff_1"),
    "effects.put": lambda tx, k: tx.effects.put(Effect("eff_1", "notify", "r", k.later, None, tries=9)),
    "effects.forget": lambda tx, _: tx.effects.forget("eff_2"),
    "effects.of": lambda tx, k: tx.effects.of(k.ended),
    "effects.prune": lambda tx, k: tx.effects.prune(before=k.later, limit=99),
    "events.append": lambda tx, k: tx.events.append(Act("a", k.later).event("x.y")),
    "events.after": lambda tx, _: tx.events.after(0),
    "events.after_of_type": lambda tx, _: tx.events.after_of_type("lamp.lit", 0),
    "events.types_after": lambda tx, _: tx.events.types_after(0, limit=9999),
    "events.latest": lambda tx, _: tx.events.latest(EventFilter(), limit=9999),
    "events.next_matching": lambda tx, _: tx.events.next_matching(EventFilter(type="lamp.lit"), limit=99),
    "events.head": lambda tx, _: tx.events.head(),
    "events.prune": lambda tx, k: tx.events.prune(before=k.later, spared_after=99999, limit=9999),
    "nodes.put": lambda tx, k: tx.nodes.put(Node("here", "box:/x", (), NodeState.LOST, k.later)),
    "nodes.all": lambda tx, _: tx.nodes.all(),
    "nodes.mark": lambda tx, k: tx.nodes.mark("here", NodeState.LOST, k.later),
    "nodes.remove": lambda tx, _: tx.nodes.remove("gone"),
    "nodes.prune": lambda tx, k: tx.nodes.prune(before=k.later),
    "outbox.add": lambda tx, k: tx.outbox.add(replace(tx.outbox.due(k.later, limit=1)[0], id="out_9")),
    "outbox.due": lambda tx, k: [
        tx.outbox.due(k.later, limit=99),
        tx.outbox.due(k.later, limit=99, run=k.waiting),
    ],
    "outbox.next_due_at": lambda tx, _: tx.outbox.next_due_at(),
    "outbox.lock": lambda tx, k: tx.outbox.lock(tx.outbox.due(k.later, limit=1)[0].id),
    "outbox.swap": _swap_item,
    "outbox.claimed_by": lambda tx, _: tx.outbox.claimed_by(HERE.owner),
    "outbox.hung": lambda tx, k: tx.outbox.hung(k.later, limit=99),
    "outbox.pending": lambda tx, _: tx.outbox.pending(),
    "outbox.needed": lambda tx, _: tx.outbox.needed(),
    "outbox.prune": lambda tx, k: tx.outbox.prune(before=k.later, before_id="~", limit=99),
    "owners.register": lambda tx, k: tx.owners.register(Owner("own_new", "worker", "h", 1, k.later)),
    "owners.all": lambda tx, _: tx.owners.all(),
    "owners.others": lambda tx, _: tx.owners.others("own_x"),
    "owners.on_node": lambda tx, _: tx.owners.on_node("here"),
    "owners.place": _place,
    "owners.remove": lambda tx, _: [tx.owners.remove(one) for one in ("own_left", "own_leftb")],
    "owners.stale_claims": lambda tx, _: tx.owners.stale_claims(),
    "runs.insert": lambda tx, k: tx.runs.insert(
        RunRow(replace(_run(tx, k.waiting).run, id="run_9", trigger_event="tev_9"), _run(tx, k.waiting).facts),
        [NewRunEvent("run_9", k.later, "run_created", "a")],
    ),
    "runs.swap": _swap,
    "runs.end": _end,
    "runs.get": lambda tx, k: tx.runs.get(k.running),
    "runs.lock": lambda tx, k: tx.runs.lock(k.running),
    "runs.lock_some": lambda tx, k: tx.runs.lock_some([k.running, k.ended]),
    "runs.automations_of": lambda tx, k: tx.runs.automations_of([k.running, k.ended]),
    "runs.automation_of": lambda tx, k: tx.runs.automation_of(k.running),
    "runs.active_of": lambda tx, _: tx.runs.active_of(_id(tx, "often")),
    "runs.any_active": lambda tx, _: tx.runs.any_active(),
    "runs.overdue": lambda tx, k: tx.runs.overdue(k.later, limit=99),
    "runs.orphans": lambda tx, k: [
        tx.runs.orphans("here", k.later, limit=99),
        tx.runs.orphans("here", k.later, limit=9, rigs=frozenset({"web"})),
    ],
    "runs.has_orphans": lambda tx, k: tx.runs.has_orphans("here", k.later),
    "runs.stranded": lambda tx, k: tx.runs.stranded(before=k.later, limit=99),
    "runs.busy_nodes": lambda tx, _: tx.runs.busy_nodes(),
    "runs.held": lambda tx, _: tx.runs.held(),
    "runs.lost": lambda tx, k: tx.runs.lost(k.later, before=k.later, limit=99),
    "runs.wisps_ended": lambda tx, _: tx.runs.wisps_ended(limit=99),
    "runs.wisps_elsewhere": lambda tx, _: tx.runs.wisps_elsewhere(limit=99),
    "runs.void_leases": lambda tx, k: tx.runs.void_leases(HERE.owner, now=k.later),
    "runs.renew": lambda tx, k: tx.runs.renew(
        k.running, HERE.owner, _run(tx, k.running).run.lease.version, until=k.later
    ),
    "runs.states": lambda tx, k: tx.runs.states([k.running, k.ended]),
    "runs.causes": lambda tx, k: tx.runs.causes([k.running]),
    "runs.page": lambda tx, _: [
        tx.runs.page(limit=99),
        tx.runs.page(automation="often", limit=99),
        tx.runs.page(state=RunState.READY, limit=99),
    ],
    "runs.counts": lambda tx, _: tx.runs.counts(since=""),
    "runs.add_event": lambda tx, k: tx.runs.add_event(NewRunEvent(k.running, k.later, "x", "a")),
    "runs.events": lambda tx, k: tx.runs.events(k.running),
    "runs.old": lambda tx, k: tx.runs.old(before=k.later, before_id="~", limit=99),
    "runs.delete": lambda tx, k: tx.runs.delete([k.ended]),
    "runs.keep_enrichment": lambda tx, k: tx.runs.keep_enrichment(k.agent, '{"a": 1}'),
    "runs.keep_completion": lambda tx, k: tx.runs.keep_completion(k.agent, '{"a": 1}'),
    "runs.papers": lambda tx, k: tx.runs.papers(k.agent),
    "runs.began": lambda tx, k: tx.runs.began(k.running, "ses_9", k.later),
    "runs.spent": lambda tx, k: tx.runs.spent(k.agent, tokens=7, cost=1.5, now=k.later),
    "runs.set_worktree": lambda tx, k: tx.runs.set_worktree(k.agent, None),
    "runs.stale": lambda tx, k: tx.runs.stale(k.later, silent_since=k.later, limit=99),
    "runs.with_worktree": lambda tx, k: tx.runs.with_worktree("here", before=k.later, limit=99),
    "sessions.add": lambda tx, k: tx.sessions.add(SessionRow("ses_9", "n", None, None, "p", "here", 1, k.later)),
    "sessions.end": lambda tx, k: tx.sessions.end("ses_1", SessionEnd(k.later, "r", 0, "t")),
    "sessions.get": lambda tx, _: tx.sessions.get("ses_1"),
    "sessions.latest": lambda tx, _: [tx.sessions.latest(), tx.sessions.latest(agent="mayor")],
    "sessions.of_run": lambda tx, k: tx.sessions.of_run(k.agent),
    "sessions.report": lambda tx, k: tx.sessions.report(k.agent, "succeeded", "Lit."),
    "sessions.prune": lambda tx, k: tx.sessions.prune(before=k.later, limit=99),
    "transcripts.position": lambda tx, _: tx.transcripts.position("ses_1"),
    "transcripts.advance": lambda tx, _: tx.transcripts.advance("ses_1", before=10, after=20, program=None),
    "transcripts.count": lambda tx, _: tx.transcripts.count("ses_1"),
    "transcripts.add": lambda tx, k: tx.transcripts.add("ses_1", 2, [("text", {})], k.later),
    "transcripts.after": lambda tx, _: tx.transcripts.after("ses_1"),
    "trigger_events.insert": _skip,
    "trigger_events.repeat": lambda tx, k: tx.trigger_events.repeat(_skip(tx, k), "overlap", k.later),
    "trigger_events.settle": lambda tx, k: tx.trigger_events.settle(_event_of(tx, k).id, "completed", "r"),
    "trigger_events.get": _event_of,
    "trigger_events.of_key": lambda tx, k: (
        _skip(tx, k),
        tx.trigger_events.of_key(_id(tx, "often"), "manual", "once"),
    ),
    "trigger_events.some": lambda tx, k: tx.trigger_events.some([_event_of(tx, k).id]),
    "trigger_events.history": lambda tx, _: tx.trigger_events.history("often"),
    "trigger_events.last_skip": lambda tx, k: (_skip(tx, k), tx.trigger_events.last_skip("often")),
    "trigger_events.prune": lambda tx, k: tx.trigger_events.prune(before=k.later, before_id="~", limit=99),
    "triggers.put": lambda tx, _: tx.triggers.put(replace(tx.triggers.of(_id(tx, "often"))[0], event_key="k")),
    "triggers.save_state": lambda tx, _: tx.triggers.save_state(
        replace(tx.triggers.of(_id(tx, "often"))[0], last_skip="s")
    ),
    "triggers.of": lambda tx, _: tx.triggers.of(_id(tx, "often")),
    "triggers.of_some": lambda tx, _: tx.triggers.of_some([_id(tx, "often"), _id(tx, "daily")]),
    "triggers.remove": lambda tx, _: tx.triggers.remove(tx.triggers.of(_id(tx, "often"))[0]),
    "triggers.all": lambda tx, _: tx.triggers.all(),
    "clock_moves.latest_firing": lambda tx, _: tx.clock_moves.latest_firing(),
    "clock_moves.move_back": lambda tx, k: tx.clock_moves.move_back(timedelta(hours=1), k.later),
    "triggers.due": lambda tx, k: tx.triggers.due(k.later, limit=99),
    "triggers.next_due_at": lambda tx, _: tx.triggers.next_due_at(),
    "triggers.upcoming": lambda tx, _: tx.triggers.upcoming(limit=99),
    "triggers.mark_due": lambda tx, k: tx.triggers.mark_due(["lamp.*", "lamp."], k.later),
    "triggers.conditions": lambda tx, _: tx.triggers.conditions(),
    "triggers.checked": lambda tx, k: tx.triggers.checked(tx.triggers.conditions()[0], "exit 1", k.later),
    "triggers.release": lambda tx, _: tx.triggers.release([_id(tx, "hears"), _id(tx, "daily")]),
    "triggers.disarm": lambda tx, _: tx.triggers.disarm(_id(tx, "often")),
    "triggers.of_other_zone": lambda tx, _: tx.triggers.of_other_zone("UTC"),
    "triggers.release_blocked": lambda tx, _: tx.triggers.release_blocked(),
    "triggers.lowest_cursor": lambda tx, _: tx.triggers.lowest_cursor(),
}
"""By repository and method."""
