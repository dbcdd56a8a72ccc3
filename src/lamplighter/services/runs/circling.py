"""An agent that goes round in circles: it is told so once, in a round of its own, and the next time its run fails."""

from lamplighter.domain.runs.lease import fence
from lamplighter.domain.runs.model import Run
from lamplighter.domain.sessions.circles import message
from lamplighter.kit.records import changed
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.context import Context
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx

FOUND = "stuck_found"
TOLD = "stuck_told"


def found(tx: Tx, held: Run, told: str, *, ctx: Context) -> bool:
    """Record that the agent is to be told, before its program is stopped for it; False if it was told before.

    May be repeated. Raises LeaseLost, RunUnknown.
    """
    run = _held(tx, held)
    on_record = [event for event in tx.runs.events(run.id) if event.type == FOUND]
    if any(event.data["round"] < run.round for event in on_record):
        return False
    if not on_record and not run.ended:
        data = {"round": run.round, "why": told}
        tx.runs.add_event(NewRunEvent(run.id, ctx.now, FOUND, ctx.actor.name, run.state, run.state, data))
    return True


def is_to_be_told(tx: Tx, run: Run) -> bool:
    """Whether a process died after `found` and before `tell`."""
    return any(event.type == FOUND and event.data["round"] == run.round for event in tx.runs.events(run.id))


def tell(tx: Tx, held: Run, *, ctx: Context) -> Run:
    """Send the run into its next round, after its program was stopped. Raises LeaseLost, RunUnknown.

    A run that has ended, or whose agent claims success meanwhile, is left as it is.
    """
    run = _held(tx, held)
    if run.ended or run.pending is not None or not is_to_be_told(tx, run):
        return run
    after = changed(run, round=run.round + 1, session_id=None, prompt_sent_at=None, last_activity_at=ctx.now)
    tx.runs.swap(run, after)
    data = {"round": after.round}
    tx.runs.add_event(NewRunEvent(run.id, ctx.now, TOLD, ctx.actor.name, run.state, run.state, data))
    why = told_in(tx, run.id, run.round)
    payload = {"run": run.id, "round": run.round, "why": why}
    tx.events.append(ctx.event("run.stuck", subject=run.automation, message=why[:300], payload=payload))
    return after


def told_in(tx: Tx, run: str, number: int) -> str:
    """How it went round in circles in that round; empty if it did not."""
    for event in tx.runs.events(run):
        if event.type == FOUND and event.data["round"] == number:
            return str(event.data["why"])
    return ""


def message_after(tx: Tx, run: Run) -> str:
    """What its program is told in the round after the one in which it went round in circles."""
    return message(told_in(tx, run.id, run.round - 1))


def rounds(tx: Tx, run: str) -> int:
    """How many rounds of the run ended in this way: they are none of those that a verification allows."""
    return sum(event.type == TOLD for event in tx.runs.events(run))


def _held(tx: Tx, held: Run) -> Run:
    run = tx.runs.lock(held.id)
    if run is None:
        raise RunUnknown(held.id)
    if not run.ended:
        fence(run.lease, held.lease.version)
    return run
