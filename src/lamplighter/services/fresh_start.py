"""Cleanup of a copied city's rows: processes, runs and sessions under way belong to the original and end here."""

from collections.abc import Sequence

from lamplighter.domain.runs.model import ACTIVE, By, Mover, RunState, Stage
from lamplighter.services import owners, session_ends
from lamplighter.services.context import Context
from lamplighter.services.runs import executing, review
from lamplighter.store.sessions import SessionEnd
from lamplighter.store.tx import Tx

AT_ONCE = 200
REASON = "interrupted"
ERROR = "its city was copied; the run goes on in the original, if anywhere"
SESSION_REASON = "its city was copied"


def forget_processes(tx: Tx, ctx: Context) -> None:
    """Remove all registered processes and nodes, and make all tokens void: those of the original do not work here."""
    for token in tx.tokens.all():
        tx.tokens.revoke(token.id, ctx.now)
    for owner in tx.owners.all():
        owners.expire(tx, owner, ctx=ctx)
    for node in tx.nodes.all():
        tx.nodes.remove(node.name)


def open_runs(tx: Tx) -> list[str]:
    """The ids of all runs under way."""
    return [run for state in ACTIVE for run in _of_state(tx, state)]


def end_runs(tx: Tx, found: Sequence[str], *, ctx: Context) -> None:
    """Fail these runs and end their sessions. May be repeated: a run that has ended stays as it is."""
    for run in found:
        ending = review.Ending(RunState.FAILED, REASON, Stage.FINALIZER, error=ERROR)
        review.end_if_active(tx, run, ending, By(Mover.FINALIZER, ctx.actor.name), ctx=ctx)
        executing.session_ended(tx, run, SessionEnd(ctx.now, SESSION_REASON))


def _of_state(tx: Tx, state: RunState) -> list[str]:
    found: list[str] = []
    while page := tx.runs.page(state=state, before=found[-1] if found else None, limit=AT_ONCE):
        found += [row.id for row in page]
    return found


def end_open_sessions(tx: Tx, ctx: Context) -> int:
    """End the records of agent sessions under way, because they are not adopted here; returns how many."""
    open_ids = tx.agents.remembered(ctx.now).open_ids
    for name, session in open_ids.items():
        if tx.sessions.end(session, SessionEnd(ctx.now, SESSION_REASON)):
            session_ends.tell(tx, session, ctx.now)
        tx.agents.end(name, ctx.now, wished=True, exit_status=None, reason=SESSION_REASON)
    return len(open_ids)
