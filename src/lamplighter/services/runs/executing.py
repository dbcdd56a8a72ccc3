"""The execution stage of agent runs, ready to running; each step is resumed after a crash and none is repeated."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import Any

from lamplighter.domain.automations.model import AgentAction, Strategy
from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.delivery.reach import stage_of
from lamplighter.domain.runs.at_work import AGENT, LOOK_EVERY
from lamplighter.domain.runs.model import MESSAGE, Run, RunState, Stage
from lamplighter.domain.runs.prompt import prompt_key, session_key
from lamplighter.domain.runs.target import Ask, Candidate, How, Target, Wish, resolve
from lamplighter.domain.sessions.logins import CHECK_EVERY, Login, Wait
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.records import record
from lamplighter.services import configurations, outbox, session_ends
from lamplighter.services.context import Context
from lamplighter.services.runs import review, starting
from lamplighter.services.runs.bounds import HELD, Bounds, lock
from lamplighter.services.runs.bounds import Wait as BoundsWait
from lamplighter.services.runs.bounds import hold as keep_waiting
from lamplighter.services.runs.ending import FALLBACK_TAKEN
from lamplighter.services.slack import opening
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.tx import Tx

KEPT = "worktree_kept"


@record
class Began:
    """A session that was started for a run, and how its work is isolated from other runs."""

    session: SessionRow
    isolation: str
    why: str = ""
    in_force: Mapping[str, str] | None = None
    """What the run was started with; None if that was recorded before."""


@record
class Admitted:
    """How a run starts: the login it tries for all that wait, and the deadline of one that was held."""

    tries: Login | None = None
    fallback: bool = False
    deadline_at: datetime | None = None

    @property
    def in_force(self) -> dict[str, str]:
        """What is known before the session is made; it is recorded again, with the rest, when the session is."""
        tries = {} if self.tries is None else {"tries_login": "yes"}
        return tries | ({"fallback": FALLBACK_TAKEN} if self.fallback else {})


NO_MORE = Admitted()


@record
class BeforeStart:
    """What is looked up before a run starts: the rig it works in, and the logins that do not work."""

    rig: str | None
    not_working: tuple[Login, ...] = field(default=())


@record
class LookedUp:
    """Where a run works, or what a model is asked for it; `before` is None while that is open."""

    target: Target | Ask
    known: Mapping[str, Candidate]
    before: BeforeStart | None = None


def begin(  # noqa: PLR0913  a run, its target, who takes it and what bounds it
    tx: Tx,
    item: Item,
    target: Target,
    worker: review.Worker,
    admitted: Admitted = NO_MORE,
    *,
    ctx: Context,
    bounds: Bounds | None = None,
) -> Run | None:
    """Claim the run, record its target, make it running and settle its item, in one transaction.

    A target that could not be resolved fails the run, and a budget of the day that is used up skips it. None when there
    is nothing to start, when it has to wait, or when another run tries the login meanwhile. Raises NotClaimed.
    """
    lock(tx, bounds)
    ready = RunState.READY
    resolved = NewRunEvent(
        item.payload["run"], ctx.now, "target_resolved", worker.actor, ready, ready, target.as_json()
    )  # fmt: skip
    if target.failure is not None:
        ending = review.Ending(RunState.FAILED, target.failure, Stage.EXECUTION, error=target.reason)
        review.refuse(tx, item, ending, worker, ctx=ctx, event=resolved)
        return None
    before = tx.runs.lock(item.payload["run"])  # before the item: the usual lock order
    if before is not None and before.state is RunState.READY:
        if starting.kept_back(tx, item, before, worker, bounds, ctx=ctx):
            return None
        if admitted.tries is not None and not tx.logins.try_it(admitted.tries, before.id, ctx.now):
            outbox.later(tx, item, ctx.now + CHECK_EVERY, ctx.now)
            return None
        at = admitted.deadline_at or before.deadline_at
        told = {**admitted.in_force, **({} if bounds is None else bounds.told)} or None
        before = replace(
            before, configuration=target.configuration, deadline_at=at, in_force=told, error="", lifts_at=None
        )
    mine = outbox.mine(tx, item)
    begun = starting.begin(tx, mine, mine, before, worker, ctx.now, first=[resolved])
    if begun is not None:
        opening.wanted(tx, begun, ctx)
    return begun


def look_up(tx: Tx, wish: Wish, row: Run) -> LookedUp:
    known = configurations.candidates(tx)
    target = resolve(wish, known)
    return LookedUp(target, known, None if isinstance(target, Ask) else before_start(tx, target, row))


def before_start(tx: Tx, target: Target, row: Run) -> BeforeStart:
    """The rig is that of the run's configuration, or else its automation's."""
    chosen = configurations.known(tx).get(target.configuration or "")
    rig = (chosen.rig if chosen is not None else "") or row.rig
    return BeforeStart(rig, tuple(tx.logins.not_working()))


def hold(tx: Tx, item: Item, wait: Wait, deadline_at: datetime, *, ctx: Context) -> None:
    """Keep a run `ready` until then, with the reason; its deadline is set anew when it is let go. Raises NotClaimed."""
    before = tx.runs.lock(item.payload["run"])
    if before is None or before.state is not RunState.READY:
        outbox.done(tx, item, ctx.now)
        return
    why = wait.why
    after = replace(
        before, reason=why.state.value, error=why.detail, lifts_at=why.until or wait.until, deadline_at=deadline_at
    )
    tx.runs.swap(before, after)
    if before.reason != after.reason:
        data = {"reason": after.reason, "preset": why.key.preset, "home": why.key.home}
        if why.until is not None:
            data["until"] = rfc3339(why.until)
        tx.runs.add_event(NewRunEvent(before.id, ctx.now, HELD, ctx.actor.name, data=data))
    outbox.later(tx, item, wait.until, ctx.now)


def wait_for_agent(tx: Tx, item: Item, why: str, bounds: Bounds, *, ctx: Context) -> None:
    """Keep a run `ready` that is to be told to an agent, with the reason, and look again soon. Raises NotClaimed."""
    before = tx.runs.lock(item.payload["run"])
    if before is None or before.state is not RunState.READY:
        outbox.done(tx, item, ctx.now)
        return
    told = BoundsWait(AGENT, f"It waits for the agent {why}.", ctx.now + LOOK_EVERY)
    keep_waiting(tx, item, before, told, bounds, ctx=ctx)


def hand_on(tx: Tx, item: Item, target: Target, rig: str, *, ctx: Context) -> None:
    """Queue the run, with its resolved target, for a process that holds the rig. Raises NotClaimed."""
    outbox.done(tx, item, ctx.now)
    payload = stage_of(item.payload["run"], rig) | {"target": target.as_json()}
    tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.ENQUEUE_EXECUTE, payload, ctx.now))


def target_told(told: Mapping[str, Any]) -> Target:
    return Target(How(told["type"]), told["configuration"], told["reason"])


def began(tx: Tx, run: str, start: Began, ctx: Context) -> Run:
    """Record that the session runs and has its prompt. May be repeated, and may come after the run's end."""
    review.get(tx, run)
    tx.runs.lock(run)
    tx.sessions.add(start.session)
    ended = review.get(tx, run)
    if ended.completion_id is not None:
        tx.sessions.report(run, ended.state.value, ended.summary)
    if tx.runs.began(run, start.session.id, start.in_force, ctx.now):
        number = ended.round
        said = messages_of(tx, ended) if number == 1 and ended.given is None else []
        if ended.given is not None and ended.given.get("text"):
            said = [("message", ended.given)]
        if said:
            tx.transcripts.add(start.session.id, tx.transcripts.count(start.session.id) + 1, said, ctx.now)
        data = {"key": session_key(run, number), "session": start.session.id, "isolation": start.isolation}
        if start.why:
            data["why"] = start.why
        tx.runs.add_event(NewRunEvent(run, ctx.now, "session_created", ctx.actor.name, data=data))
        tx.runs.add_event(
            NewRunEvent(run, ctx.now, "prompt_sent", ctx.actor.name, data={"key": prompt_key(run, number)})
        )
    return review.get(tx, run)


def messages_of(tx: Tx, row: Run) -> list[tuple[str, Mapping[str, Any]]]:
    """What people told a run that goes on with another one, as events of its transcript."""
    if row.trigger_kind != MESSAGE or row.trigger_event is None:
        return []
    event = tx.trigger_events.get(row.trigger_event)
    payload = {} if event is None else dict(event.payload or {})
    return [
        ("message", {"text": one["text"], "by": one["by"]}) for one in payload.get("payload", {}).get("messages", ())
    ]


def session_ended(tx: Tx, run: str, end: SessionEnd) -> None:
    """Record the end of the run's sessions. May be repeated; the first recorded end stays."""
    for session in tx.sessions.of_run(run):
        if session.ended_at is None and tx.sessions.end(session.id, end):
            session_ends.tell(tx, session.id, end.at, run=run)


def worktree_made(tx: Tx, run: str, worktree: Mapping[str, str]) -> None:
    tx.runs.set_worktree(run, worktree)


def worktree_settled(tx: Tx, run: str, kept: Mapping[str, Any] | None, ctx: Context) -> None:
    """Record what became of the worktree: `kept` says why it was not removed and what differs; None when it is gone."""
    row = tx.runs.lock(run)
    if row is None or row.worktree is None:
        return
    if kept is None:
        tx.runs.set_worktree(run, None)
        return
    if not any(event.type == KEPT and event.data == kept for event in tx.runs.events(run)):
        tx.runs.add_event(NewRunEvent(run, ctx.now, KEPT, ctx.actor.name, data=kept))


def wish_of(action: AgentAction) -> Wish:
    return Wish(
        configuration=action.configuration,
        decide=action.strategy is Strategy.AGENT_DECIDE,
        allowed=action.configurations,
        fallback=action.fallback,
    )
