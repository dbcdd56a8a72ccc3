"""The sweep of the inbox: opens what a crash or an older program left out, counts anew, settles what is over."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lamplighter.domain.inbox.items import Need, State
from lamplighter.domain.runs.model import Run
from lamplighter.kit.records import changed
from lamplighter.services.context import Context
from lamplighter.services.inbox import needs, settling
from lamplighter.store.tx import Tx

AT_ONCE = 200
NEW_FOR = timedelta(days=1)
"""What the sweep opens about something older than this is listed and told to nobody: it is history, not news."""


@dataclass(frozen=True)
class Swept:
    """How many items were opened and settled; `last` is where the next page begins, None if there is none."""

    opened: int = 0
    settled: int = 0
    last: str | None = None


def judge_runs(tx: Tx, _after: str, *, ctx: Context) -> Swept:
    """Judge ended runs that the program which ended them did not judge, and open what they need; a batch at once."""
    runs = tx.runs.unjudged(limit=AT_ONCE)
    retried = tx.runs.retried(run.id for run in runs) if runs else set()
    opened = 0
    for run in runs:
        judged = changed(run, fingerprint=needs.judgement(run, tried_again=run.id in retried))
        tx.runs.judge(run.id, judged.fingerprint or "")
        opened += _open_of_run(tx, judged, ctx)
    return Swept(opened, last=runs[-1].id if len(runs) == AT_ONCE else None)


def open_of_runs(tx: Tx, after: str, *, ctx: Context) -> Swept:
    """Open items for runs that none stands for, as after the table was lost; a page of fingerprints at once."""
    found = tx.inbox.left_out(after=after, limit=AT_ONCE)
    opened = 0
    for fingerprint in found:
        last = tx.runs.alike(fingerprint, after=settling.covered(tx, fingerprint), limit=1)
        opened += sum(_open_of_run(tx, run, ctx) for run in last)
    return Swept(opened, last=found[-1] if len(found) == AT_ONCE else None)


def open_of_automations(tx: Tx, after: str, *, ctx: Context) -> Swept:
    rows = tx.automations.noted(after=after, limit=AT_ONCE)
    opened = sum(_open(tx, need, ctx) for row in rows for need in needs.of_automation(row))
    return Swept(opened, last=rows[-1].id if len(rows) == AT_ONCE else None)


def open_of_rest(tx: Tx, _after: str, *, ctx: Context) -> Swept:
    """Quarantined agents, and what was given up in the outbox."""
    found: list[Need] = []
    for session, until in tx.agents.quarantines(ctx.now):
        starts = tx.agents.latest(session, limit=1)
        if starts:
            why = starts[0].failure or starts[0].end_reason or f"not started again before {until:%Y-%m-%d %H:%M} UTC"
            found.append(needs.quarantined(starts[0].agent, session, why, starts[0].started_at))
    for one in tx.outbox.given_up():
        need = needs.given_up(one.item, one.settled_at)
        if need is not None:
            found.append(need)
    return Swept(sum(_open(tx, need, ctx) for need in found))


def settle_over(tx: Tx, after: str, *, ctx: Context) -> Swept:
    """Settle the open items that are over, and count the runs of the others; a page at once."""
    found = tx.inbox.open_ones(after=after, limit=AT_ONCE)
    settled = 0
    for item in found:
        how = settling.over(tx, item, ctx.now)
        if how is None and settling.recounted(tx, item) == item:
            continue
        locked = tx.inbox.lock(item.id)
        if locked is None or locked.state is not State.OPEN:
            continue
        if how is not None:
            settling.settle(tx, locked, how, ctx=ctx)
            settled += 1
        else:
            now = settling.recounted(tx, locked)
            again = locked.of_runs and now.count > locked.count  # some are told by count
            tx.inbox.save(changed(now, told="") if again else now)
    return Swept(settled=settled, last=found[-1].fingerprint if len(found) == AT_ONCE else None)


def _open_of_run(tx: Tx, run: Run, ctx: Context) -> bool:
    need = needs.of_run(run)
    return need is not None and _open(tx, need, ctx)


def _open(tx: Tx, need: Need, ctx: Context) -> bool:
    """Open an item that was left out, unless one that covers it was settled, or it is over already."""
    item = need.item(ctx.ids.make("inb"), ctx.now)
    if settling.over(tx, item, ctx.now) is not None:
        return False
    if not tx.inbox.open_left_out(item, since=need.since or need.at):
        return False
    if _is_history(need.at, ctx.now):
        opened = tx.inbox.lock(item.id)
        if opened is not None:
            tx.inbox.save(changed(opened, told=State.OPEN.value))
    tx.wake(needs.TOPIC)
    return True


def _is_history(at: datetime, now: datetime) -> bool:
    return now - at > NEW_FOR


Pass = Callable[..., Swept]
REBUILD: Sequence[Pass] = (judge_runs, open_of_runs, open_of_automations, open_of_rest, settle_over)
"""The passes of the first sweep of a process, in their order: it looks for runs that no item stands for, too."""
SWEEP: Sequence[Pass] = (judge_runs, open_of_automations, open_of_rest, settle_over)
"""The passes of every other sweep. Each is called with where its next page begins, until it names none."""
