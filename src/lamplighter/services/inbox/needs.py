"""What needs a person, found in runs, agents, automations and the outbox; opening an item for it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.automations.decisions import SkipReason
from lamplighter.domain.automations.model import AgentAction
from lamplighter.domain.delivery.outbox import Item, ItemKind
from lamplighter.domain.inbox import fingerprint
from lamplighter.domain.inbox.items import Kind, Need
from lamplighter.domain.runs.model import ATTENTION, RESOLVED, Run, RunState
from lamplighter.kit.clock import rfc3339
from lamplighter.services.context import Context
from lamplighter.store.automations import AutomationRow
from lamplighter.store.tx import Tx

TOPIC = "inbox"
BY_FAILURES = "it failed "
"""How the reason of an automation begins that its failures disabled."""
LONGEST_QUESTION = 300
FROM_AGENTS = "agent"
PLAN = "plan"
"""The reason of a run that ended with a plan for a person to decide about."""


def open_item(tx: Tx, need: Need, *, ctx: Context) -> None:
    """Insert an item for it; nothing where an open one is there."""
    tx.inbox.open(need.item(ctx.ids.make("inb"), ctx.now))
    tx.wake(TOPIC)


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def judgement(run: Run, *, tried_again: bool) -> str | None:
    """The fingerprint of an ended run: empty if it needs nobody, None for ends that never do."""
    if run.state in ATTENTION:
        over = tried_again or run.continued_by is not None or run.reason.startswith(RESOLVED)
        return "" if over else _fingerprint(run)
    return _fingerprint(run) if _is_stuck(run) else None


def open_of_run(tx: Tx, run: Run, *, ctx: Context) -> bool:
    """Open an item for an ended run that was judged; False if it needs nobody."""
    if not run.fingerprint:
        return False
    need = None if tx.inbox.has_opened(run.fingerprint) else of_run(run)
    if need is not None:
        open_item(tx, need, ctx=ctx)
    return True


def of_run(run: Run) -> Need | None:
    """None if it needs nobody."""
    if not run.fingerprint:
        return None
    at = run.ended_at or run.created_at
    return Need(_kind(run), run.fingerprint, run.automation, at, facts_of(run), run.id)


def facts_of(run: Run) -> dict[str, Any]:
    """What the sentence of its item is made from."""
    reason = None if run.reason == run.state.value else run.reason
    facts: dict[str, Any] = {"reason": reason, "error": fingerprint.last_line(run.error) or _question(run)}
    if run.state is RunState.NEEDS_HUMAN:
        facts = _asked(run)
    return {key: value for key, value in facts.items() if value}


def _kind(run: Run) -> Kind:
    return Kind(run.state.value)


def _fingerprint(run: Run) -> str:
    if run.state is RunState.NEEDS_HUMAN:
        return fingerprint.of_question(run.id)
    return fingerprint.of_failure(run.automation, run.state.value, run.reason, run.error)


def _is_stuck(run: Run) -> bool:
    """Skipped for what only a person can mend."""
    return run.state is RunState.SKIPPED and run.reason == SkipReason.PROJECT_MISSING


def _asked(run: Run) -> dict[str, Any]:
    """What the run asks, by its question, or by the last it said where it only ended so."""
    asked = run.question or {}
    more = {key: asked.get(key) for key in ("choices", "without_answer")}
    plan = run.reason == PLAN
    answerable = run.action == AgentAction.kind and not plan
    return {"question": _question(run), "answerable": answerable, "plan": plan, **more}


def _question(run: Run) -> str:
    asked = str((run.question or {}).get("text") or "")
    words = " ".join((asked or run.summary or run.error).split())
    return words if len(words) <= LONGEST_QUESTION else f"{words[:LONGEST_QUESTION]}…"


# ── automations ───────────────────────────────────────────────────────────────────────────────────────────────────


def of_automation(row: AutomationRow) -> list[Need]:
    return [need for need in (disabled(row), quiet(row), broken(row), draft(row)) if need is not None]


def disabled(row: AutomationRow) -> Need | None:
    if row.enabled or row.definition is None or not row.disabled_reason.startswith(BY_FAILURES):
        return None
    need = _of(row, Kind.DISABLED, row.updated_at, reason=row.disabled_reason)
    return replace(need, since=row.armed_at + timedelta(microseconds=1))  # an earlier one ended when it was armed


def quiet(row: AutomationRow) -> Need | None:
    if row.quiet_since is None or row.quiet_at is not None or not row.armed:
        return None
    return _of(row, Kind.QUIET, row.quiet_since, message=f"nothing had fired for long at {rfc3339(row.quiet_since)}")


def broken(row: AutomationRow) -> Need | None:
    if row.definition is not None or not row.problems:
        return None
    return _of(row, Kind.BROKEN, row.updated_at, error=fingerprint.last_line(row.problems[0]), path=row.path or "")


def draft(row: AutomationRow) -> Need | None:
    """One that an agent made and that is not enabled; once somebody enabled it, the item of it is settled."""
    if row.source != FROM_AGENTS or row.enabled or row.definition is None or row.disabled_reason:
        return None
    return _of(row, Kind.DRAFT, row.created_at)


def _of(row: AutomationRow, kind: Kind, at: datetime, **facts: str) -> Need:
    return Need(kind, f"automation:{row.id}:{kind.value}", row.scoped_name, at, facts)


# ── agents, outbox, configuration ─────────────────────────────────────────────────────────────────────────────────


def quarantined(agent: str, session: str, why: str, at: datetime) -> Need:
    return Need(Kind.QUARANTINED, f"agent:{session}", agent, at, {"error": why, "session": session})


def waiting(agent: str, session: str, what: str, since: datetime) -> Need:
    """An agent whose program stands at a permission prompt."""
    return Need(Kind.WAITING, f"prompt:{session}", agent, since, {"question": what, "session": session})


def given_up(item: Item, at: datetime) -> Need | None:
    """None for an item whose run failed with it, and for a notice: that run, or the destination, needs the person."""
    if item.gives_up_run or item.kind == ItemKind.SEND_NOTICE:
        return None
    facts = {"error": fingerprint.last_line(item.last_error) or "no reason is on record", "item": item.id}
    run = item.payload.get("run")
    named = run if isinstance(run, str) else None
    return Need(Kind.OUTBOX, fingerprint.of_outbox(item.kind, item.last_error), item.kind, at, facts, named)


def silent(destination: str, why: str, at: datetime, *, declared: bool = True) -> Need:
    """A destination that takes no notices, or that is named and not declared."""
    facts: dict[str, object] = {"error": fingerprint.last_line(why)} | ({} if declared else {"undeclared": True})
    return Need(Kind.DESTINATION, f"destination:{destination}", destination, at, facts)


CONFIG = "config"


def refused(city: str, why: str, at: datetime) -> Need:
    return Need(Kind.CONFIG, CONFIG, city, at, {"error": why.splitlines()[0] if why else ""})
