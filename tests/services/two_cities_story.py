"""A city with something of every kind on record, and a call of every method of every repository upon it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from automation_city import City

from lamplighter.domain.access import Role
from lamplighter.domain.beads.model import BeadFilter, BeadStatus, NewBead
from lamplighter.domain.city.model import Configuration
from lamplighter.domain.cluster.nodes import Node, NodeState
from lamplighter.domain.delivery.effects import Effect, EffectState
from lamplighter.domain.delivery.outbox import ItemState
from lamplighter.domain.delivery_fields import Provider
from lamplighter.domain.events import EventFilter
from lamplighter.domain.inbox.items import InboxItem, Kind, Need, State
from lamplighter.domain.inbox.notices import Notice, NoticeState, What
from lamplighter.domain.runs.bulk import BulkAction, BulkOutcome, BulkState, BulkVerb
from lamplighter.domain.runs.lease import void
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.runs.query import parse
from lamplighter.domain.secrets import Sealed
from lamplighter.domain.sessions.crashes import SessionHistory
from lamplighter.domain.sessions.logins import Login, LoginKey, LoginState
from lamplighter.domain.sessions.model import SessionName
from lamplighter.services import configurations, outbox
from lamplighter.services.beads import changes as beads
from lamplighter.services.context import acting
from lamplighter.services.runs import review
from lamplighter.store.agents import AgentStart
from lamplighter.store.artifacts import ArtifactRow
from lamplighter.store.audit import AuditRow
from lamplighter.store.bulk_actions import BulkItem
from lamplighter.store.cities import organization_of
from lamplighter.store.connections import ConnectionRow
from lamplighter.store.cursors import Cursor
from lamplighter.store.deliveries import DeliveryRow, Gathering, Verdict
from lamplighter.store.disabled_destinations import Disabled
from lamplighter.store.idempotency import Slot
from lamplighter.store.looks import Look
from lamplighter.store.members import MemberRow
from lamplighter.store.messages import Message
from lamplighter.store.notes import Notes
from lamplighter.store.organizations import Invitation, OrganizationRow
from lamplighter.store.owners import Owner
from lamplighter.store.polls import PollRow
from lamplighter.store.rollups import Rollup
from lamplighter.store.rounds import Round
from lamplighter.store.run_days import day_named
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.saved_views import SavedView
from lamplighter.store.secrets import SecretRow
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.slack import Early, Installation, Person, Thread
from lamplighter.store.subscriptions import Subscription
from lamplighter.store.tokens import TokenRow
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.triggers import BLOCKED
from lamplighter.store.tx import Tx

HERE = review.Worker("own_gone", "here")
EARLY = datetime(2020, 1, 1, tzinfo=UTC)
MAYOR = SessionName("gc-town-mayor")
SLOT = Slot("ada", "bead.create", "k")


def a_bulk(now: Any, bulk: str = "blk_1", **more: Any) -> BulkAction:
    told: dict[str, Any] = {
        "action": BulkVerb.RETRY, "said": {}, "query": None, "creator": "ann", "role": Role.OWNER, "token": None,
        "run_id": None, "session": None, "surface": "cli", "state": BulkState.WORKING, "total": 2,
    }  # fmt: skip
    return BulkAction(id=bulk, created_at=now, **{**told, **more})


def a_token(now: Any) -> TokenRow:
    return TokenRow("tok_1", "ada", "ci", "hash", "abcd", ("read",), now, "ada", None)


def a_connection(now: Any) -> ConnectionRow:
    return ConnectionRow("gh", Provider.GITHUB, "", (), (), (), now, "ada")


def a_poll(now: Any) -> PollRow:
    return PollRow("gh", "acme/web", "https://api.github.com", "", {}, now)


def an_app(now: Any) -> Installation:
    return Installation("T1", "City", "U0", "B0", "", "", "approval", 1, 0, now, "ada")


def a_person(now: Any) -> Person:
    return Person("T1", "U1", "ada", "link", None, now)


def a_thread(now: Any, run: str, thread: str = "1.0") -> Thread:
    return Thread(f"slt_{thread}", "T1", "C1", thread, "U1", run, now)


def an_early(now: Any) -> Early:
    return Early("T1", "C1", "1.0", "2.0", "{}", now)


def a_delivery(now: Any, delivery: str = "dlv_1") -> DeliveryRow:
    return DeliveryRow(delivery, "gh", delivery, {}, "{}", now, state="processed")


def a_verdict(now: Any) -> Verdict:
    return Verdict("dlv_1", "aut_1", "webhook", "fix", "fired", "", "run_1", now)


def a_secret(now: Any) -> SecretRow:
    return SecretRow("GATE", "key", "nonce", "text", now, "ada", now, "ada")


def a_login(now: Any) -> Login:
    return Login(LoginKey("here", "claude", "/h"), LoginState.REFUSED, now, trying="run_x", trying_since=now)


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

    def automation(self, tx: Tx) -> str:
        return tx.runs.automation_of(self.agent) or ""

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
    ctx = city.context

    def make(**keys: Any) -> str:
        return beads.create(tx, NewBead(**keys), prefix="te", ctx=ctx).id

    top = make(title="Top", labels=("pool:crew", "urgent"), ephemeral=True)
    below = make(title="Below", parent=top)
    need = make(title="Need", assignee="mayor")
    wanting = make(title="Wanting", needs=(need,), labels=("urgent",))
    beads.claim(tx, need, "mayor", ctx=ctx)
    old = make(title="Old", ephemeral=True)
    beads.close(tx, old, ctx=ctx)
    return top, below, wanting


def _wisps(tx: Tx, cooked: str, elsewhere: str, now: Any) -> str:
    """One formula run whose wisp is gone, one whose wisp another store keeps; both wait for it."""
    for run, away in ((cooked, False), (elsewhere, True)):
        row = tx.runs.get(run)
        assert row is not None
        at_work = replace(row, state=RunState.RUNNING, started_at=now, lease=void(row.lease))
        tx.runs.swap(row, replace(at_work, wisp=f"te-{run}", wisp_elsewhere=away))
    return cooked


def _papers(tx: Tx, city: City, *, ended: str, agent: str, lost: str) -> None:  # noqa: PLR0915  all that there is
    now = city.clock.now()
    tx.db.execute("DELETE FROM outbox WHERE city_id = :city AND run_id = :run", {"city": tx.city, "run": lost})
    row = tx.runs.get(agent)
    assert row is not None
    at_work = replace(row, state=RunState.RUNNING, started_at=now, session_id="ses_1", last_activity_at=now)
    tx.runs.swap(row, replace(at_work, node="there"))
    tx.runs.void_leases("nobody", now=now)
    orphaned = "UPDATE runs SET orphaned_at = :now WHERE city_id = :city AND id = :run"
    tx.db.execute(orphaned, {"city": tx.city, "now": 1, "run": agent})
    tx.connections.add(a_connection(now))
    tx.polls.add(a_poll(now))
    tx.slack.put(an_app(now))
    tx.slack.put_person(a_person(now))
    tx.slack.add_thread(a_thread(now, ended))
    tx.slack.keep_early(an_early(now))
    tx.slack.came("T1", now)
    tx.slack.heard("T1", "Ev1", now)
    tx.deliveries.add([a_delivery(now)])
    tx.deliveries.judge(a_verdict(now))
    tx.deliveries.gather(Gathering(row.automation_id, "webhook", "e", "gat_1", ("dlv_1",), now, now))
    tx.run_fields.add(ended, [("repo", "acme/web")])
    tx.secrets.put(a_secret(now))
    tx.notes.add(Notes(row.automation_id, 1, "Mind the oil.", "ann", now))
    tx.cursors.put(Cursor(row.automation_id, "text", "page-7", 1, "ann", now))
    tx.conversations.put(row.automation_id, "42", agent)
    tx.run_days.add(agent, row.automation_id, day_named(now), tokens=5, cost=0.25)
    tx.run_gates.lock()
    tx.bulk_actions.add(a_bulk(now), [ended, agent])
    tx.looks.put("ann", Look(now, None))
    tx.looks.pin("ann", "often")
    tx.saved_views.put(SavedView("ann", "mine", "state:failed", is_shared=True, saved_at=now))
    tx.messages.add(Message("msg_1", agent, "Hello.", "ann", now))
    tx.rollups.add([Rollup(now, "often", "failed", "", 2, 1, 1, 7, 0.5, 3)])
    tx.rounds.add(Round(agent, 1, "c1", "{}", now))
    tx.db.execute(
        "UPDATE runs SET pending = 'c1', ports = '20000+10' WHERE city_id = :city AND id = :run",
        {"city": tx.city, "run": agent},
    )
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
    tx.logins.put(a_login(now))
    tx.logins.put(replace(a_login(now), key=LoginKey("here", "codex", "/h"), state=LoginState.WORKS))
    tx.members.add(MemberRow("ada", Role.OWNER, now, "ada"))
    tx.tokens.add(a_token(now))
    tx.audit.add(AuditRow("adt_1", now, "ada", None, "cli", "bead.create", "x", {"a": 1}))
    tx.idempotency.take(SLOT, "asked", now)
    tx.idempotency.keep(SLOT, "{}")
    for name in ("completion", "enrichment"):
        tx.artifacts.put(ArtifactRow(ended, name, f"runs/{ended}/{name}.json", 2, "application/json", now))
    for effect, state in (("eff_1", EffectState.DONE), ("eff_2", EffectState.INTENDED)):
        tx.effects.put(Effect(effect, "notify", "r", now, ended, state))
    for number in (1, 2):
        tx.agents.add(AgentStart(f"sta_{number}", MAYOR, "mayor", f"ses_{number}", now, "wanted"))
        if number == 1:
            tx.agents.end(MAYOR, now, wished=False, exit_status=1, reason="crashed")
    tx.agents.note(MAYOR, SessionHistory((), "ses_1", now))
    tx.notices.add(replace(_notice("ntc_1", "inb_1", now), answer="204"))
    tx.disabled_destinations.put(Disabled("team", "x", "410", now))
    tx.subscriptions.put(Subscription("ses_1", "team", "ann", now))
    tx.subscriptions.put(Subscription("ses_0", "team", "ann", now, notice="ntc_1"))
    tx.notices.add(replace(_notice("ntc_2", "inb_2", now), state=NoticeState.SENT, sent_at=now))
    tx.inbox.open(_new_item("settled", now))
    settled = tx.inbox.lock("inb_settled")
    assert settled is not None
    tx.inbox.save(replace(settled, state=State.SETTLED, settled_at=now, settled_by="ada", settled_how="dismissed"))
    tx.inbox.see("inb_settled", "ada", now)
    tx.db.execute(
        "UPDATE runs SET fingerprint = NULL, state = 'timed_out' WHERE city_id = :city AND id = :run",
        {"city": tx.city, "run": lost},
    )
    tx.db.execute(
        "UPDATE outbox SET state = 'failed' WHERE city_id = :city AND state = 'claimed' AND id = "
        "(SELECT max(id) FROM outbox WHERE city_id = :city AND state = 'claimed')",
        {"city": tx.city},
    )
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


def _run(tx: Tx, run: str) -> Run:
    row = tx.runs.get(run)
    assert row is not None
    return row


def _swap(tx: Tx, know: Known) -> None:
    row = _run(tx, know.running)
    tx.runs.swap(row, replace(row, error="swapped"))


def _end(tx: Tx, know: Known) -> None:
    row = _run(tx, know.running)
    after = replace(row, state=RunState.FAILED, ended_at=know.later, lease=void(row.lease))
    tx.runs.end(row, after)


def _place(tx: Tx, _know: Known) -> None:
    for owner in ("own_left", "own_leftb"):
        tx.owners.place(owner, "there", {})


def _swap_item(tx: Tx, know: Known) -> None:
    item = tx.outbox.due(know.later, limit=1)[0]
    tx.outbox.swap(item, replace(item, last_error="swapped"), now=know.later)


def _event_of(tx: Tx, know: Known) -> TriggerEvent:
    found = tx.trigger_events.get(_run(tx, know.ended).trigger_event or "")
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


def _item(tx: Tx) -> InboxItem:
    return tx.inbox.open_ones()[0]


def _new_item(fingerprint: str, at: Any) -> InboxItem:
    return Need(Kind.QUIET, fingerprint, "often", at).item(f"inb_{fingerprint}", at)


def _notice(notice: str, about: str, at: Any) -> Notice:
    return Notice(notice, "team", about, What.OPENED, {}, at, NoticeState.HELD)


def _alike(tx: Tx, know: Known) -> str:
    return _run(tx, know.ended).fingerprint or ""


def _open_anew(tx: Tx, know: Known) -> bool:
    return tx.inbox.open_left_out(_new_item("settled", know.later), since=know.later - timedelta(days=900))


Call = Callable[[Tx, Known], Any]
CALLS: dict[str, Call] = {
    "agents.add": lambda tx, k: tx.agents.add(AgentStart("sta_9", MAYOR, "mayor", "ses_9", k.later, "wanted")),
    "agents.end": lambda tx, k: tx.agents.end(MAYOR, k.later, wished=True, exit_status=0, reason="asked"),
    "agents.note": lambda tx, k: tx.agents.note(MAYOR, SessionHistory((), "ses_2", k.later)),
    "agents.clear": lambda tx, _: tx.agents.clear(MAYOR),
    "agents.remembered": lambda tx, k: tx.agents.remembered(k.city.clock.now() - timedelta(days=999)),
    "agents.quarantine": lambda tx, _: tx.agents.quarantine(MAYOR),
    "agents.quarantines": lambda tx, k: tx.agents.quarantines(k.later - timedelta(days=900)),
    "agents.latest": lambda tx, _: tx.agents.latest(MAYOR),
    "agents.prune": lambda tx, k: tx.agents.prune(before=k.later, limit=99),
    "artifacts.put": lambda tx, k: tx.artifacts.put(ArtifactRow(k.ended, "completion", "k", 9, "t", k.later)),
    "artifacts.of": lambda tx, k: tx.artifacts.of(k.ended),
    "artifacts.of_some": lambda tx, k: tx.artifacts.of_some([k.ended]),
    "artifacts.old": lambda tx, k: tx.artifacts.old(before=k.later, limit=99),
    "artifacts.forget": lambda tx, k: tx.artifacts.forget(tx.artifacts.of(k.ended)[0]),
    "automations.insert": lambda tx, _: tx.automations.insert(
        replace(tx.automations.page()[0], id="aut_9", scoped_name="new", name="new")
    ),
    "automations.save": lambda tx, _: tx.automations.save(replace(tx.automations.page()[0], failures=7)),
    "automations.is_there": lambda tx, _: tx.automations.is_there("often"),
    "automations.get": lambda tx, _: tx.automations.get(_id(tx, "often")),
    "automations.lock": lambda tx, _: tx.automations.lock(_id(tx, "often")),
    "automations.named": lambda tx, _: tx.automations.named("often"),
    "automations.lock_named": lambda tx, _: tx.automations.lock_named("often"),
    "automations.some": lambda tx, _: tx.automations.some([_id(tx, "often"), _id(tx, "daily")]),
    "automations.lock_some": lambda tx, _: tx.automations.lock_some([_id(tx, "often")]),
    "automations.lock_some_named": lambda tx, _: tx.automations.lock_some_named(["often", "daily"]),
    "automations.page": lambda tx, _: tx.automations.page(),
    "automations.naming": lambda tx, _: tx.automations.naming("hook"),
    "automations.of_files": lambda tx, _: tx.automations.of_files(),
    "automations.delete": lambda tx, _: tx.automations.delete(_id(tx, "asks")),
    "automations.count_failures": lambda tx, _: tx.automations.count_failures(_id(tx, "often"), 3),
    "automations.set_quiet": lambda tx, k: tx.automations.set_quiet(_id(tx, "often"), k.later),
    "automations.noted": lambda tx, _: tx.automations.noted(),
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
    "beads.given_labels": lambda tx, k: tx.beads.given_labels(_bead(tx, _run(tx, k.ended).bead or "")),
    "beads.remove_labels": lambda tx, k: tx.beads.remove_labels(k.top, ["urgent"]),
    "beads.add_needs": lambda tx, k: tx.beads.add_needs(k.below, [k.wanting]),
    "beads.remove_needs": lambda tx, k: tx.beads.remove_needs(k.wanting, _bead(tx, k.wanting).needs),
    "beads.collectable": lambda tx, k: tx.beads.collectable(before=k.later, limit=99),
    "beads.delete_trees": lambda tx, k: tx.beads.delete_trees([k.top]),
    "beads.at_work": lambda tx, _: tx.beads.at_work(),
    "beads.held_by": lambda tx, _: tx.beads.held_by("mayor"),
    "beads.waiting": lambda tx, _: tx.beads.waiting("urgent"),
    "cities.ensure": lambda tx, k: tx.cities.ensure("renamed", k.later),
    "cities.find": lambda tx, _: tx.cities.find(),
    "cities.lock": lambda tx, _: tx.cities.lock(),
    "cities.take_control": lambda tx, k: tx.cities.take_control("own_1", expected=0, now=k.later),
    "cities.drop_control": lambda tx, _: tx.cities.drop_control("own_0"),
    "cities.pause": lambda tx, k: tx.cities.pause("ada", k.later),
    "cities.scanned": lambda tx, _: tx.cities.scanned(9999),
    "cities.traced": lambda tx, _: tx.cities.traced(),
    "cities.trace": lambda tx, _: tx.cities.trace(7, expected=tx.cities.traced()),
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
    "members.add": lambda tx, k: tx.members.add(MemberRow("ada", Role.MEMBER, k.later, "ben")),
    "members.all": lambda tx, _: tx.members.all(),
    "members.lock": lambda tx, _: tx.members.lock("ada"),
    "members.set_role": lambda tx, _: tx.members.set_role("ada", Role.MEMBER),
    "members.remove": lambda tx, _: tx.members.remove("ada"),
    "logins.all": lambda tx, _: tx.logins.all(),
    "logins.not_working": lambda tx, _: tx.logins.not_working(),
    "logins.put": lambda tx, k: tx.logins.put(replace(a_login(k.later), key=LoginKey("here", "goose", "/h"))),
    "logins.try_it": lambda tx, k: tx.logins.try_it(a_login(k.later), "run_y", k.later),
    "logins.leave": lambda tx, _: tx.logins.leave("run_x"),
    "logins.look_again": lambda tx, _: tx.logins.look_again(LoginKey("here", "claude", "/h")),
    "logins.looked": lambda tx, k: tx.logins.looked(LoginKey("here", "claude", "/h"), "m", k.later),
    "logins.remove": lambda tx, k: tx.logins.remove(a_login(k.later)),
    "logins.prune": lambda tx, k: tx.logins.prune(before=k.later),
    "beads.like": lambda tx, k: tx.beads.like(k.top, limit=9),
    "runs.beginning": lambda tx, k: tx.runs.beginning(k.running[:9], limit=9),
    "runs.ending": lambda tx, k: tx.runs.ending(k.running[-6:], limit=9),
    "runs.newest": lambda tx, _: (tx.runs.newest(), tx.runs.newest(automation="light")),
    "runs.retried_by": lambda tx, k: tx.runs.retried_by(k.automation(tx), k.ended),
    "sessions.ids": lambda tx, _: tx.sessions.ids(limit=9),
    "summary.latest_runs": lambda tx, _: tx.summary.latest_runs(["failed", "running"], since="", limit=9),
    "summary.logins": lambda tx, _: tx.summary.logins(),
    "connections.add": lambda tx, k: tx.connections.add(replace(a_connection(k.later), name="other")),
    "connections.all": lambda tx, _: tx.connections.all(),
    "connections.get": lambda tx, _: tx.connections.get("gh"),
    "connections.some": lambda tx, _: tx.connections.some(["gh"]),
    "connections.versions": lambda tx, _: tx.connections.versions(["gh"]),
    "connections.lock": lambda tx, _: tx.connections.lock("gh"),
    "connections.rotated": lambda tx, k: tx.connections.rotated("gh", k.later, k.later),
    "connections.came": lambda tx, k: tx.connections.came(tx.connections.versions(["gh"])["gh"], k.later),
    "connections.delete": lambda tx, _: tx.connections.delete("gh"),
    "slack.put": lambda tx, k: tx.slack.put(replace(an_app(k.later), name="other")),
    "slack.all": lambda tx, _: tx.slack.all(),
    "slack.get": lambda tx, _: tx.slack.get("T1"),
    "slack.remove": lambda tx, _: tx.slack.remove("T1"),
    "slack.heard": lambda tx, k: [tx.slack.heard("T1", one, k.later) for one in ("Ev1", "Ev2")],
    "slack.prune": lambda tx, k: tx.slack.prune(before=k.later, limit=9),
    "slack.put_person": lambda tx, k: tx.slack.put_person(replace(a_person(k.later), member="bo")),
    "slack.person": lambda tx, _: tx.slack.person("T1", "U1"),
    "slack.people": lambda tx, _: tx.slack.people(),
    "slack.add_thread": lambda tx, k: tx.slack.add_thread(a_thread(k.later, k.running, "2.0")),
    "slack.thread": lambda tx, _: tx.slack.thread("slt_1.0"),
    "slack.lock_thread": lambda tx, _: tx.slack.lock_thread("slt_1.0"),
    "slack.find_thread": lambda tx, _: tx.slack.find_thread("T1", "C1", "1.0"),
    "slack.followed_in": lambda tx, _: tx.slack.followed_in("T1", "C1"),
    "slack.came": lambda tx, k: tx.slack.came("T1", k.later),
    "slack.looked": lambda tx, k: tx.slack.looked("T1", 1, k.later),
    "slack.failed": lambda tx, k: tx.slack.failed("T1", "away", k.later),
    "slack.unstreamed": lambda tx, k: tx.slack.unstreamed("T1", "refused", k.later),
    "slack.scoped": lambda tx, _: tx.slack.scoped("T1", "chat:write"),
    "slack.contact": lambda tx, _: tx.slack.contact("T1"),
    "slack.contacts": lambda tx, _: tx.slack.contacts(),
    "slack.talks": lambda tx, _: tx.slack.talks(),
    "slack.of_run": lambda tx, k: tx.slack.of_run(k.ended),
    "slack.is_thread": lambda tx, _: tx.slack.is_thread("T1", "C1", "1.0"),
    "slack.keep_early": lambda tx, k: tx.slack.keep_early(replace(an_early(k.later), message="3.0")),
    "slack.early_of": lambda tx, _: tx.slack.early_of("T1", "C1", "1.0"),
    "slack.take_early": lambda tx, k: tx.slack.take_early(an_early(k.later)),
    "slack.forget_early": lambda tx, k: tx.slack.forget_early(before=k.later + timedelta(days=1)),
    "slack.save_thread": lambda tx, k: tx.slack.save_thread(replace(a_thread(k.later, k.running), number=3)),
    "slack.delete_of_runs": lambda tx, k: tx.slack.delete_of_runs([k.ended]),
    "deliveries.add": lambda tx, k: tx.deliveries.add([a_delivery(k.later, one) for one in ("dlv_1", "dlv_2")]),
    "polls.add": lambda tx, k: (
        tx.polls.add(replace(a_poll(k.later), connection="other"))
        if tx.connections.add(replace(a_connection(k.later), name="other"))
        else None
    ),
    "polls.all": lambda tx, _: tx.polls.all(),
    "polls.get": lambda tx, _: tx.polls.get("gh"),
    "polls.lock": lambda tx, _: tx.polls.lock("gh"),
    "polls.save": lambda tx, k: tx.polls.save(replace(a_poll(k.later), problem="new")),
    "deliveries.is_known": lambda tx, _: tx.deliveries.is_known("gh", "dlv_1"),
    "deliveries.get": lambda tx, _: tx.deliveries.get("dlv_1"),
    "deliveries.exists": lambda tx, _: tx.deliveries.exists("dlv_1"),
    "deliveries.newest": lambda tx, _: tx.deliveries.newest(limit=9),
    "deliveries.size": lambda tx, _: tx.deliveries.size(["dlv_1"]),
    "deliveries.lock": lambda tx, _: tx.deliveries.lock("dlv_1"),
    "deliveries.some": lambda tx, _: tx.deliveries.some(["dlv_1"]),
    "deliveries.page": lambda tx, _: tx.deliveries.page(connection="gh", before=None, limit=9),
    "deliveries.span": lambda tx, _: tx.deliveries.span(connection=None, first="", last="~", limit=9),
    "deliveries.processed": lambda tx, k: tx.deliveries.processed(replace(a_delivery(k.later), title="new")),
    "deliveries.judge": lambda tx, k: tx.deliveries.judge(replace(a_verdict(k.later), verdict="loop")),
    "deliveries.verdicts": lambda tx, _: tx.deliveries.verdicts(["dlv_1"]),
    "deliveries.gathering": lambda tx, k: tx.deliveries.gathering(k.automation(tx), "webhook", "e"),
    "deliveries.gather": lambda tx, k: tx.deliveries.gather(
        Gathering(k.automation(tx), "webhook", "e", "gat_2", ("dlv_1", "dlv_2"), k.later, k.later)
    ),
    "deliveries.let_go": lambda tx, k: tx.deliveries.let_go(
        Gathering(k.automation(tx), "webhook", "e", "gat_1", (), k.later, k.later)
    ),
    "deliveries.prune": lambda tx, _: tx.deliveries.prune(before_id="dlv_9", limit=9),
    "run_fields.add": lambda tx, k: tx.run_fields.add(k.ended, [("repo", "acme/shop")]),
    "run_fields.delete_of_runs": lambda tx, k: tx.run_fields.delete_of_runs([k.ended]),
    "secrets.put": lambda tx, k: tx.secrets.put(replace(a_secret(k.later), nonce="other")),
    "secrets.all": lambda tx, _: tx.secrets.all(),
    "secrets.get": lambda tx, _: tx.secrets.get("GATE"),
    "secrets.swap": lambda tx, k: tx.secrets.swap(a_secret(k.later), Sealed("key", "new", "text")),
    "secrets.delete": lambda tx, _: tx.secrets.delete("GATE"),
    "tokens.add": lambda tx, k: tx.tokens.add(replace(a_token(k.later), id="tok_2", hash="other")),
    "tokens.all": lambda tx, _: tx.tokens.all(),
    "tokens.of": lambda tx, _: tx.tokens.of("ada"),
    "tokens.by_hash": lambda tx, _: tx.tokens.by_hash("hash"),
    "tokens.held": lambda tx, _: tx.tokens.held("tok_1"),
    "tokens.lock": lambda tx, _: tx.tokens.lock("tok_1"),
    "tokens.revoke": lambda tx, k: tx.tokens.revoke("tok_1", k.later),
    "tokens.used": lambda tx, k: tx.tokens.used("tok_1", k.later),
    "audit.add": lambda tx, k: tx.audit.add(AuditRow("adt_2", k.later, "x", None, "cli", "o", None, {})),
    "audit.page": lambda tx, _: (tx.audit.page(limit=9), tx.audit.page(actor="ada", limit=9)),
    "idempotency.take": lambda tx, k: tx.idempotency.take(SLOT, "asked", k.city.clock.now() - timedelta(days=30)),
    "idempotency.keep": lambda tx, _: tx.idempotency.keep(SLOT, "[]"),
    "idempotency.prune": lambda tx, k: tx.idempotency.prune(k.later),
    "events.append": lambda tx, k: tx.events.append(acting("a", k.later).event("x.y")),
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
    "rollups.add": lambda tx, _: tx.rollups.add([replace(one, runs=1) for one in tx.rollups.since(EARLY)]),
    "rollups.by_key": lambda tx, _: [tx.rollups.by_key(EARLY, model=one) for one in (False, True)],
    "rollups.since": lambda tx, _: [tx.rollups.since(EARLY), tx.rollups.since(EARLY, automation="often")],
    "rollups.days_of": lambda tx, k: tx.rollups.days_of(["often"], [EARLY, k.later]),
    "rollups.prune": lambda tx, k: tx.rollups.prune(before=k.later, limit=99),
    "rollups.position": lambda tx, _: tx.rollups.position(),
    "rollups.advance": lambda tx, _: tx.rollups.advance(5, expected=0),
    "summary.has_history": lambda tx, _: tx.summary.has_history(),
    "runs.some": lambda tx, k: tx.runs.some([k.running, k.ended]),
    "organizations.own": lambda tx, _: tx.organizations.own(),
    "organizations.is_home": lambda tx, _: tx.organizations.is_home(),
    "organizations.cities": lambda tx, _: tx.organizations.cities(),
    "organizations.lock": lambda tx, _: tx.organizations.lock(organization_of(tx.city)),
    "organizations.cities_of": lambda tx, _: tx.organizations.cities_of(organization_of(tx.city)),
    "organizations.members_of": lambda tx, _: tx.organizations.members_of(organization_of(tx.city)),
    "organizations.counts": lambda tx, k: tx.organizations.counts(organization_of(tx.city), k.later),
    "organizations.invitations": lambda tx, _: tx.organizations.invitations("nobody's"),
    "organizations.use_up": lambda tx, k: tx.organizations.use_up(
        Invitation(a_token(k.later), organization_of(tx.city), Role.OWNER), k.later
    ),
    "organizations.add": lambda tx, k: tx.organizations.add(OrganizationRow("org_new", "new", k.later, tx.city)),
    "organizations.rename": lambda tx, _: tx.organizations.rename("renamed"),
    "organizations.set_home": lambda tx, _: (tx.organizations.set_home("cty_9"), tx.organizations.own()),
    "organizations.move": lambda tx, k: (
        tx.organizations.add(OrganizationRow("org_new", "new", k.later, tx.city)),
        tx.organizations.move(tx.city, "org_new"),
        tx.organizations.move("cty_1", "org_new"),
        tx.organizations.own(),
    ),
    "organizations.end": lambda tx, _: (tx.organizations.end(organization_of(tx.city)), tx.organizations.own()),
    "outbox.add": lambda tx, k: tx.outbox.add(replace(tx.outbox.due(k.later, limit=1)[0], id="out_9")),
    "outbox.due": lambda tx, k: [
        tx.outbox.due(k.later, limit=99),
        tx.outbox.due(k.later, limit=99, run=k.waiting),
    ],
    "outbox.next_due_at": lambda tx, _: tx.outbox.next_due_at(),
    "outbox.get": lambda tx, k: tx.outbox.get(tx.outbox.due(k.later, limit=1)[0].id),
    "outbox.lock": lambda tx, k: tx.outbox.lock(tx.outbox.due(k.later, limit=1)[0].id),
    "outbox.swap": _swap_item,
    "outbox.claimed_by": lambda tx, _: tx.outbox.claimed_by(HERE.owner),
    "outbox.hung": lambda tx, k: tx.outbox.hung(k.later, limit=99),
    "outbox.given_up": lambda tx, _: tx.outbox.given_up(),
    "outbox.page": lambda tx, _: tx.outbox.page(ItemState.PENDING, limit=99),
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
        replace(_run(tx, k.waiting), id="run_9", trigger_event="tev_9"),
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
    "runs.next_deadline": lambda tx, k: tx.runs.next_deadline(before=k.later),
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
    "runs.renew": lambda tx, k: tx.runs.renew(k.running, HERE.owner, _run(tx, k.running).lease.version, until=k.later),
    "runs.states": lambda tx, k: tx.runs.states([k.running, k.ended]),
    "runs.last_of": lambda tx, _: tx.runs.last_of([_id(tx, "often")]),
    "runs.causes": lambda tx, k: tx.runs.causes([k.running]),
    "outbox.open_items": lambda tx, _: tx.outbox.open_items(),
    "summary.active_runs": lambda tx, _: tx.summary.active_runs(),
    "runs.search_ids": lambda tx, k: tx.runs.search_ids(parse("state:failed -rig:x", k.later), limit=99, most=99),
    "runs.search": lambda tx, k: tx.runs.search(parse("state:failed -rig:x", k.later), limit=99),
    "runs.page": lambda tx, _: [
        tx.runs.page(limit=99),
        tx.runs.page(automation="often", limit=99),
        tx.runs.page(state=RunState.READY, limit=99),
    ],
    "runs.folded": lambda tx, k: tx.runs.folded(_alike(tx, k), after=-1),
    "runs.alike": lambda tx, k: tx.runs.alike(_alike(tx, k), after=-1, limit=99),
    "runs.lock_alike": lambda tx, k: tx.runs.lock_alike(_alike(tx, k), after=-1, limit=99),
    "runs.unjudged": lambda tx, _: tx.runs.unjudged(limit=99),
    "runs.judge": lambda tx, k: tx.runs.judge(k.ended, "judged"),
    "runs.retried": lambda tx, k: tx.runs.retried([k.ended, k.running]),
    "runs.succeeded_since": lambda tx, k: tx.runs.succeeded_since("often", k.ended, k.later - timedelta(days=900)),
    "notices.add": lambda tx, k: tx.notices.add(_notice("ntc_9", "run_9", k.later)),
    "notices.save": lambda tx, k: tx.notices.save(replace(_notice("ntc_1", "inb_1", k.later), attempts=7)),
    "notices.get": lambda tx, _: tx.notices.get("ntc_1"),
    "notices.of": lambda tx, _: tx.notices.of("inb_1"),
    "notices.held": lambda tx, _: tx.notices.held(limit=99),
    "notices.page": lambda tx, _: tx.notices.page(),
    "notices.latest": lambda tx, _: tx.notices.latest(["team"]),
    "notices.last_sent": lambda tx, _: tx.notices.last_sent("team"),
    "notices.last_answer": lambda tx, _: tx.notices.last_answer("team"),
    "disabled_destinations.put": lambda tx, k: tx.disabled_destinations.put(Disabled("duty", "x", "410", k.later)),
    "disabled_destinations.get": lambda tx, _: tx.disabled_destinations.get("team"),
    "disabled_destinations.all": lambda tx, _: tx.disabled_destinations.all(),
    "disabled_destinations.delete": lambda tx, _: tx.disabled_destinations.delete("team"),
    "subscriptions.put": lambda tx, k: tx.subscriptions.put(Subscription("ses_1", "duty", "ben", k.later)),
    "subscriptions.of": lambda tx, _: tx.subscriptions.of("ses_1"),
    "subscriptions.all": lambda tx, _: tx.subscriptions.all(limit=99),
    "subscriptions.waiting": lambda tx, _: tx.subscriptions.waiting(["ses_1"]),
    "subscriptions.queued": lambda tx, k: tx.subscriptions.queued(
        Subscription("ses_1", "team", "ann", k.later), "ntc_9"
    ),
    "subscriptions.notified": lambda tx, k: tx.subscriptions.notified("ntc_1", k.later),
    "subscriptions.told_by": lambda tx, _: tx.subscriptions.told_by("ntc_1", "ntc_9"),
    "subscriptions.delete": lambda tx, _: tx.subscriptions.delete("ses_1", "team"),
    "subscriptions.prune": lambda tx, k: tx.subscriptions.prune(before=k.later),
    "notices.prune": lambda tx, _: tx.notices.prune(before_id="~", limit=99),
    "looks.get": lambda tx, _: tx.looks.get("ann"),
    "looks.put": lambda tx, k: tx.looks.put("ann", Look(k.later, None)),
    "looks.pins": lambda tx, _: tx.looks.pins("ann"),
    "looks.pin": lambda tx, _: tx.looks.pin("ann", "other"),
    "looks.unpin": lambda tx, _: tx.looks.unpin("ann", "often"),
    "inbox.open": lambda tx, k: tx.inbox.open(_new_item("new", k.later)),
    "inbox.has_opened": lambda tx, _: tx.inbox.has_opened("new"),
    "inbox.open_left_out": _open_anew,
    "inbox.save": lambda tx, _: tx.inbox.save(replace(_item(tx), count=9)),
    "inbox.get": lambda tx, _: tx.inbox.get(_item(tx).id),
    "inbox.lock": lambda tx, _: tx.inbox.lock(_item(tx).id),
    "inbox.named": lambda tx, _: tx.inbox.named("inb_"),
    "inbox.lock_open": lambda tx, k: tx.inbox.lock_open(_alike(tx, k)),
    "inbox.open_of": lambda tx, k: tx.inbox.open_of(_alike(tx, k)),
    "inbox.open_ones": lambda tx, _: tx.inbox.open_ones(),
    "inbox.page": lambda tx, _: [tx.inbox.page(), tx.inbox.page(state=State.SETTLED)],
    "inbox.settle_of_subject": lambda tx, k: tx.inbox.settle_of_subject(
        "often", ["failed"], by="x", how="resolved", now=k.later
    ),
    "inbox.settled_until": lambda tx, _: tx.inbox.settled_until("settled"),
    "inbox.left_out": lambda tx, _: tx.inbox.left_out(after="", limit=99),
    "inbox.to_tell": lambda tx, _: tx.inbox.to_tell(limit=99),
    "inbox.counting": lambda tx, _: tx.inbox.counting(after="", limit=99),
    "inbox.prune": lambda tx, k: tx.inbox.prune(before=k.later, limit=99),
    "inbox.see": lambda tx, k: tx.inbox.see(_item(tx).id, "eva", k.later),
    "inbox.seen": lambda tx, _: tx.inbox.seen([one.id for one in tx.inbox.page()], "ada"),
    "runs.add_event": lambda tx, k: tx.runs.add_event(NewRunEvent(k.running, k.later, "x", "a")),
    "runs.events": lambda tx, k: tx.runs.events(k.running),
    "runs.old": lambda tx, k: tx.runs.old(before=k.later, before_id="~", limit=99),
    "runs.delete": lambda tx, k: tx.runs.delete([k.ended]),
    "runs.keep_enrichment": lambda tx, k: tx.runs.keep_enrichment(k.agent, '{"a": 1}'),
    "runs.keep_completion": lambda tx, k: tx.runs.keep_completion(k.agent, '{"a": 1}'),
    "runs.papers": lambda tx, k: tx.runs.papers(k.agent),
    "runs.called": lambda tx, k: tx.runs.called([k.agent, k.running]),
    "runs.continued": lambda tx, k: tx.runs.continued(k.ended, "run_9"),
    "runs.worktrees": lambda tx, _: tx.runs.worktrees(limit=9),
    "runs.ports_taken": lambda tx, _: tx.runs.ports_taken("there"),
    "runs.set_ports": lambda tx, k: tx.runs.set_ports(k.agent, "20010+10"),
    "notes.add": lambda tx, k: tx.notes.add(Notes(k.automation(tx), 2, "More.", "ann", k.later)),
    "notes.latest": lambda tx, k: tx.notes.latest(k.automation(tx)),
    "notes.get": lambda tx, k: tx.notes.get(k.automation(tx), 1),
    "notes.prune": lambda tx, k: tx.notes.prune(k.automation(tx), up_to=1),
    "cursors.put": lambda tx, k: tx.cursors.put(Cursor(k.automation(tx), "text", "page-8", 2, "ann", k.later)),
    "cursors.get": lambda tx, k: tx.cursors.get(k.automation(tx)),
    "conversations.put": lambda tx, k: tx.conversations.put(k.automation(tx), "42", k.ended),
    "conversations.run_of": lambda tx, k: tx.conversations.run_of(k.automation(tx), "42"),
    "conversations.delete_of_runs": lambda tx, k: tx.conversations.delete_of_runs([k.agent]),
    "run_days.add": lambda tx, k: tx.run_days.add(
        k.agent, k.automation(tx), day_named(k.city.clock.now() - timedelta(days=30)), tokens=1, cost=0.5
    ),
    "run_days.spent": lambda tx, k: [
        tx.run_days.spent(k.city.clock.now() - timedelta(days=30), k.later, automation=one)
        for one in (None, k.automation(tx))
    ],
    "run_days.delete_of_runs": lambda tx, k: tx.run_days.delete_of_runs([k.agent]),
    "run_gates.lock": lambda tx, _: tx.run_gates.lock(),
    "run_gates.at_work": lambda tx, _: tx.run_gates.at_work(),
    "run_gates.waiting": lambda tx, k: tx.run_gates.waiting("limit", before=k.agent, since=EARLY),
    "bulk_actions.add": lambda tx, k: tx.bulk_actions.add(a_bulk(k.later, "blk_2"), [k.agent]),
    "bulk_actions.get": lambda tx, _: tx.bulk_actions.get("blk_1"),
    "bulk_actions.lock": lambda tx, _: tx.bulk_actions.lock("blk_1"),
    "bulk_actions.page": lambda tx, _: [
        tx.bulk_actions.page(state=one, before=None, limit=9) for one in (None, BulkState.WORKING)
    ],
    "bulk_actions.newest_ids": lambda tx, _: tx.bulk_actions.newest_ids(limit=9),
    "bulk_actions.save": lambda tx, k: tx.bulk_actions.save(a_bulk(k.later, state=BulkState.DONE, done=2)),
    "bulk_actions.waiting": lambda tx, _: tx.bulk_actions.waiting("blk_1", range(9), limit=9),
    "bulk_actions.settle": lambda tx, k: tx.bulk_actions.settle(
        "blk_1", BulkItem(0, k.agent, BulkOutcome.REFUSED, "why", at=k.later)
    ),
    "bulk_actions.results": lambda tx, _: [
        tx.bulk_actions.results("blk_1", outcome=one, after=None, limit=9) for one in (None, BulkOutcome.WAITING)
    ],
    "bulk_actions.prune": lambda tx, k: [
        tx.bulk_actions.save(a_bulk(k.later, state=BulkState.DONE, ended_at=EARLY)),
        tx.bulk_actions.prune(before=k.later, before_id="blk_9", limit=9),
    ],
    "saved_views.put": lambda tx, k: tx.saved_views.put(
        SavedView("ann", "mine", "state:running", is_shared=False, saved_at=k.later)
    ),
    "saved_views.shown_to": lambda tx, _: tx.saved_views.shown_to("ben"),
    "saved_views.others_of": lambda tx, _: tx.saved_views.others_of("ann", "another"),
    "saved_views.delete": lambda tx, _: tx.saved_views.delete("ann", "mine"),
    "automations.with_words": lambda tx, _: tx.automations.with_words(["o", "t"], limit=9),
    "rollups.by_hour": lambda tx, _: tx.rollups.by_hour(EARLY),
    "messages.pass_on": lambda tx, k: tx.messages.pass_on(k.agent, k.running),
    "messages.add": lambda tx, k: tx.messages.add(Message("msg_9", k.agent, "Go on.", "ann", k.later)),
    "messages.waiting": lambda tx, k: tx.messages.waiting(k.agent),
    "messages.take": lambda tx, k: tx.messages.take(k.agent, "run_9"),
    "messages.delete_of_runs": lambda tx, k: tx.messages.delete_of_runs([k.agent]),
    "rounds.add": lambda tx, k: tx.rounds.add(Round(k.agent, 2, "c2", "{}", k.later)),
    "rounds.judge": lambda tx, k: tx.rounds.judge(Round(k.agent, 1, "c1", "{}", k.later, k.later, True, 0)),
    "rounds.of": lambda tx, k: tx.rounds.of(k.agent),
    "rounds.delete_of_runs": lambda tx, k: tx.rounds.delete_of_runs([k.agent]),
    "runs.began": lambda tx, k: tx.runs.began(k.running, "ses_9", None, k.later),
    "runs.spent": lambda tx, k: tx.runs.spent(k.agent, tokens=7, cost=1.5, now=k.later),
    "runs.go_on_with": lambda tx, k: tx.runs.go_on_with(k.agent, k.agent),
    "runs.start_clock": lambda tx, k: tx.runs.start_clock(k.agent, k.later),
    "runs.set_worktree": lambda tx, k: tx.runs.set_worktree(k.agent, None),
    "runs.stale": lambda tx, k: tx.runs.stale(k.later, silent_since=k.later, limit=99),
    "runs.in_worktrees": lambda tx, _: tx.runs.in_worktrees(),
    "runs.with_worktree": lambda tx, k: tx.runs.with_worktree("here", before=k.later, limit=99),
    "sessions.add": lambda tx, k: tx.sessions.add(SessionRow("ses_9", "n", None, None, "p", "here", 1, k.later)),
    "sessions.end": lambda tx, k: tx.sessions.end("ses_1", SessionEnd(k.later, "r", 0, "t")),
    "sessions.lock": lambda tx, _: tx.sessions.lock("ses_1"),
    "sessions.get": lambda tx, _: tx.sessions.get("ses_1"),
    "sessions.latest": lambda tx, _: [tx.sessions.latest(), tx.sessions.latest(agent="mayor")],
    "sessions.delete_of_runs": lambda tx, k: tx.sessions.delete_of_runs([k.agent]),
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
    "clock_moves.database_time": lambda tx, _: tx.clock_moves.database_time() and None,
    "clock_moves.latest_firing": lambda tx, _: tx.clock_moves.latest_firing(),
    "clock_moves.move_back": lambda tx, k: tx.clock_moves.move_back(timedelta(hours=1), k.later),
    "triggers.due": lambda tx, k: tx.triggers.due(k.later, limit=99),
    "triggers.next_due_at": lambda tx, _: tx.triggers.next_due_at(),
    "triggers.mark_due": lambda tx, k: tx.triggers.mark_due(["lamp.*", "lamp."], k.later),
    "triggers.of_connection": lambda tx, _: tx.triggers.of_connection("gh"),
    "triggers.conditions": lambda tx, _: tx.triggers.conditions(),
    "triggers.checked": lambda tx, k: tx.triggers.checked(tx.triggers.conditions()[0], "exit 1", k.later),
    "triggers.release": lambda tx, _: tx.triggers.release([_id(tx, "hears"), _id(tx, "daily")]),
    "triggers.disarm": lambda tx, _: tx.triggers.disarm(_id(tx, "often")),
    "triggers.of_other_zone": lambda tx, _: tx.triggers.of_other_zone("UTC"),
    "triggers.release_blocked": lambda tx, _: tx.triggers.release_blocked(),
    "triggers.lowest_cursor": lambda tx, _: tx.triggers.lowest_cursor(),
    "summary.city": lambda tx, _: tx.summary.city(),
    "summary.runs": lambda tx, _: tx.summary.runs(since=""),
    "summary.attention": lambda tx, k: tx.summary.attention(k.later),
    "summary.upcoming": lambda tx, _: tx.summary.upcoming(limit=99),
    "summary.beads": lambda tx, _: tx.summary.beads(),
    "summary.last_event": lambda tx, _: tx.summary.last_event(),
    "summary.nodes": lambda tx, _: tx.summary.nodes(),
    "summary.has_owners": lambda tx, _: tx.summary.has_owners(),
    "summary.counted_starts": lambda tx, k: tx.summary.counted_starts(since=k.later - timedelta(days=9)),
}
"""By repository and method."""
