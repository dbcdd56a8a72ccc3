"""The execution stage of agent runs, ready to running; each step is resumed after a crash and none is repeated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lamplighter.domain.acts import Act
from lamplighter.domain.automations.model import AgentAction, Strategy
from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.delivery.reach import stage_of
from lamplighter.domain.runs.model import By, Mover, RunState, Stage, move
from lamplighter.domain.runs.prompt import prompt_key, session_key
from lamplighter.domain.runs.target import How, Target, Wish
from lamplighter.kit.ids import IdSource
from lamplighter.services import configurations, outbox
from lamplighter.services.runs import review
from lamplighter.store.run_rows import NewRunEvent, RunRow
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.tx import Tx

KEPT = "worktree_kept"


@dataclass(frozen=True)
class Began:
    """A session that was started for a run, and how its work is isolated from other runs."""

    session: SessionRow
    isolation: str
    why: str = ""


def begin(tx: Tx, item: Item, target: Target, worker: review.Worker, *, ids: IdSource, act: Act) -> RunRow | None:
    """Claim the run, record its target, make it running and settle its item, in one transaction.

    A target that could not be resolved fails the run. None when there is nothing to start. Raises NotClaimed.
    """
    held = review.hold(tx, item, worker, act.at)
    if held is None:
        return None
    tx.runs.add_event(
        NewRunEvent(held.run.id, act.at, "target_resolved", worker.actor, held.run.state, held.run.state,
                    target.as_json())
    )  # fmt: skip
    by = By(Mover.WORKER, worker.actor, held.run.lease.version)
    if target.failure is not None:
        ending = review.Ending(RunState.FAILED, target.failure, Stage.EXECUTION, error=target.reason)
        review.end(tx, held.run.id, ending, by, ids=ids, act=act)
        outbox.done(tx, item, act.at)
        return None
    moved = move(held.run, RunState.RUNNING, by, act.at)
    facts = replace(held.facts, node=worker.node, configuration=target.configuration)
    after = RunRow(moved.run, facts)
    tx.runs.swap(held.run, after)
    review.tell(tx, moved, {"owner": worker.owner, "lease": held.run.lease.version})
    outbox.done(tx, item, act.at)
    return after


def rig_of(tx: Tx, target: Target, row: RunRow) -> str | None:
    """The rig a run works in: its configuration's, or else its automation's."""
    chosen = configurations.known(tx).get(target.configuration or "")
    return (chosen.rig if chosen is not None else "") or row.facts.rig


def hand_on(tx: Tx, item: Item, target: Target, rig: str, *, ids: IdSource, act: Act) -> None:
    """Queue the run, with its resolved target, for a process that holds the rig. Raises NotClaimed."""
    outbox.done(tx, item, act.at)
    payload = stage_of(item.payload["run"], rig) | {"target": target.as_json()}
    tx.outbox.add(new_item(ids.make("out"), ItemKind.ENQUEUE_EXECUTE, payload, act.at))


def target_told(told: Mapping[str, Any]) -> Target:
    return Target(How(told["type"]), told["configuration"], told["reason"])


def began(tx: Tx, run: str, start: Began, act: Act) -> RunRow:
    """Record that the session runs and has its prompt. May be repeated, and may come after the run's end."""
    review.get(tx, run)
    tx.runs.lock(run)
    tx.sessions.add(start.session)
    ended = review.get(tx, run).run
    if ended.completion_id is not None:
        tx.sessions.report(run, ended.state.value, ended.summary)
    if tx.runs.began(run, start.session.id, act.at):
        data = {"key": session_key(run), "session": start.session.id, "isolation": start.isolation}
        if start.why:
            data["why"] = start.why
        tx.runs.add_event(NewRunEvent(run, act.at, "session_created", act.actor, data=data))
        tx.runs.add_event(NewRunEvent(run, act.at, "prompt_sent", act.actor, data={"key": prompt_key(run)}))
    return review.get(tx, run)


def session_ended(tx: Tx, run: str, end: SessionEnd) -> None:
    """Record the end of the run's sessions. May be repeated; the first recorded end stays."""
    for session in tx.sessions.of_run(run):
        if session.ended_at is None:
            tx.sessions.end(session.id, end)


def worktree_made(tx: Tx, run: str, worktree: Mapping[str, str]) -> None:
    tx.runs.set_worktree(run, worktree)


def worktree_settled(tx: Tx, run: str, kept: Mapping[str, Any] | None, act: Act) -> None:
    """Record what became of the worktree: `kept` says why it was not removed and what differs; None when it is gone."""
    row = tx.runs.lock(run)
    if row is None or row.facts.worktree is None:
        return
    if kept is None:
        tx.runs.set_worktree(run, None)
        return
    if not any(event.type == KEPT and event.data == kept for event in tx.runs.events(run)):
        tx.runs.add_event(NewRunEvent(run, act.at, KEPT, act.actor, data=kept))


def wish_of(action: AgentAction) -> Wish:
    return Wish(
        configuration=action.configuration,
        decide=action.strategy is Strategy.AGENT_DECIDE,
        allowed=action.configurations,
        fallback=action.fallback,
    )
