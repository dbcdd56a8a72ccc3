"""For each kind of inbox item: what brings it about, what brings it about again, and what puts an end to it.

`MATRIX` says of each kind and each cell that it is tried, or why it cannot be; `test_inbox.py` walks it.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from automation_city import City

from lamplighter.domain.automations.layers import Definitions, FileProblem
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.inbox.items import Kind
from lamplighter.domain.runs.model import By, Mover, RunState
from lamplighter.domain.sessions.crashes import SessionHistory
from lamplighter.domain.sessions.model import SessionName
from lamplighter.services import outbox, outbox_operations, sessions
from lamplighter.services.automations import due, editing
from lamplighter.services.automations.definitions import sync
from lamplighter.services.automations.operations import CREATE, CreateAutomation
from lamplighter.services.inbox import needs, settling, telling
from lamplighter.services.runs import people, review
from lamplighter.store.agents import AgentStart

MAYOR = SessionName("gc-town-mayor")
Act = Callable[[City], Any]


@dataclass(frozen=True)
class Cause:
    """`again` brings the same about once more; `mend` puts an end to it, which its transaction or the sweep sees."""

    arise: Act
    again: Act
    mend: Act


def _named(city: City, **keys: Any) -> None:
    if city.read(lambda tx: tx.automations.named("nightly")) is None:
        city.add("nightly", **({"auto_disable_after": 0, "overlap": "allow"} | keys))


def _fails(city: City) -> Any:
    _named(city)
    return _ended(city, "failed", "exit_1", f"cannot reach 10.0.0.{len(city.runs_of('nightly'))}")


def _succeeds(city: City) -> Any:
    return city.finish(city.run_now("nightly").run)


def _ended(city: City, state: str, reason: str, error: str) -> Any:
    run = city.start(city.run_now("nightly").run)
    mover = Mover.FINALIZER if state == "timed_out" else Mover.COMPLETION if state == "needs_human" else Mover.WORKER
    ending = review.Ending(RunState(state), reason, error=error, summary="Which branch?")
    return city.run(review.end, run.id, ending, By(mover, "worker", run.lease.version), ctx=city.context)


def _times_out(city: City) -> Any:
    _named(city)
    return _ended(city, "timed_out", "deadline_exceeded", "killed after 7200.0 s")


def _asks(city: City) -> Any:
    _named(city)
    return _ended(city, "needs_human", "", "")


def _resolves(city: City) -> None:
    for run in city.runs_of("nightly"):
        if run.state is RunState.NEEDS_HUMAN:
            city.run(people.resolve, run.id, people.Resolution(RunState.SUCCEEDED), ctx=city.context)


def _misses_its_project(city: City) -> Any:
    _named(city)
    return _ended(city, "skipped", "project_missing", "/srv/app is not a directory")


def _is_disabled(city: City) -> None:
    _named(city, gate="cooldown", interval="1m", auto_disable_after=1)
    city.advance(minutes=2)
    [run] = city.tick().fired
    city.finish(run, "failed", "exit_1")


def _is_enabled(city: City) -> None:
    city.run(editing.set_enabled, "nightly", enabled=True, rules=city.rules, ctx=city.context)


def _falls_silent(city: City) -> None:
    _named(city, quiet_after="1h")
    city.advance(hours=2)
    city.run(due.raise_quiet, limit=10, rules=city.rules, ctx=city.context)


def _breaks(city: City) -> None:
    broken = FileProblem("automations/nightly/automation.toml", "gate", "is missing", name="nightly")
    city.run(sync, Definitions((), (broken,)), city.rules, ctx=city.context)


def _file_goes(city: City) -> None:
    city.run(sync, Definitions((), ()), city.rules, ctx=city.context)


def _is_proposed(city: City) -> None:
    if city.read(lambda tx: tx.automations.named("nightly")) is None:
        city.do(CREATE, CreateAutomation({"name": "nightly", "exec": "true", "gate": "manual"}), surface="tool")


def _is_quarantined(city: City) -> None:
    now = city.clock.now()
    event = city.context.event("agent.quarantined", subject="mayor", message="started 5 times")
    city.run(lambda tx: tx.agents.add(AgentStart(city.ids.make("ast"), MAYOR, "mayor", "ses", now, "wanted")))
    noted = SessionHistory((), "", now + timedelta(hours=1))
    city.run(sessions.record, [sessions.Noted(MAYOR, noted, (event,))])


def _is_lifted(city: City) -> None:
    city.run(sessions.unquarantine, MAYOR, city.context.event("agent.unquarantined", subject="mayor"))


def _is_given_up(city: City) -> None:
    now = city.clock.now()
    item = new_item(city.ids.make("out"), ItemKind.WRITE_ARTIFACT, {"run": "run_gone", "artifact": "completion"}, now)
    city.run(lambda tx: tx.outbox.add(item))
    [claimed] = city.run(outbox.claim_due, "own_1", now, limit=9)
    city.run(outbox.failed, claimed, "No space left on /var/1", permanent=True, ctx=city.context)


def _is_delivered(city: City) -> None:
    for one in city.read(lambda tx: tx.outbox.given_up()):
        city.do(outbox_operations.RETRY, outbox_operations.RetryOutbox(one.item.id))
    for item in city.run(outbox.claim_due, "own_1", city.clock.now(), limit=9):
        city.run(outbox.done, item, city.clock.now())


def _is_refused(city: City) -> None:
    need = needs.refused("test", "city.toml: agents: is wrong", city.clock.now())
    city.run(needs.open_item, need, ctx=city.context)


def _is_accepted(city: City) -> None:
    city.run(settling.of_accepted, ctx=city.context)


def _stands_at_a_prompt(city: City) -> None:
    standing = {MAYOR: sessions.Standing("mayor", "May I run `make`?", city.clock.now())}
    city.run(sessions.record, [sessions.Prompted(standing, city.clock.now(), "controller")])


def _goes_on(city: City) -> None:
    city.run(sessions.record, [sessions.Prompted({}, city.clock.now(), "controller")])


def _takes_none(city: City) -> None:
    city.run(telling.disable, "pager", "target", "It answered 410 Gone", ctx=city.context)


def _takes_one(city: City) -> None:
    city.run(telling.takes_notices, "pager", ctx=city.context)


def _fails_by_hand(city: City) -> None:
    city.finish(city.run_now("nightly").run, "failed", "exit_1")


def _stays_silent(city: City) -> None:
    city.advance(hours=2)
    city.run(due.raise_quiet, limit=10, rules=city.rules, ctx=city.context)


def _is_proposed_again(city: City) -> None:
    with contextlib.suppress(editing.NameTaken):
        city.do(CREATE, CreateAutomation({"name": "nightly", "exec": "true", "gate": "manual"}), surface="tool")


CAUSES: dict[Kind, Cause] = {
    Kind.FAILED: Cause(_fails, _fails, _succeeds),
    Kind.TIMED_OUT: Cause(_times_out, _times_out, _succeeds),
    Kind.NEEDS_HUMAN: Cause(_asks, _asks, _resolves),
    Kind.SKIPPED: Cause(_misses_its_project, _misses_its_project, _succeeds),
    Kind.DISABLED: Cause(_is_disabled, _fails_by_hand, _is_enabled),
    Kind.QUIET: Cause(_falls_silent, _stays_silent, _succeeds),
    Kind.BROKEN: Cause(_breaks, _breaks, _file_goes),
    Kind.DRAFT: Cause(_is_proposed, _is_proposed_again, _is_enabled),
    Kind.QUARANTINED: Cause(_is_quarantined, _is_quarantined, _is_lifted),
    Kind.WAITING: Cause(_stands_at_a_prompt, _stands_at_a_prompt, _goes_on),
    Kind.OUTBOX: Cause(_is_given_up, _is_given_up, _is_delivered),
    Kind.CONFIG: Cause(_is_refused, _is_refused, _is_accepted),
    Kind.DESTINATION: Cause(_takes_none, _takes_none, _takes_one),
}


# ── the matrix ────────────────────────────────────────────────────────────────────────────────────────────────────


class Cell(StrEnum):
    """What is tried of each kind."""

    OPENS = "opens once"
    FOLDS = "folds"
    SETTLES = "settles by its cause"
    RETURNS = "opens anew when it comes back"
    DISMISSED = "stays dismissed until it happens again"
    SNOOZED = "is snoozed and comes back"
    KILLED_OPENING = "killed while it opens"
    KILLED_SETTLING = "killed while it settles"
    REBUILT = "is rebuilt from runs, agents and automations"


@dataclass(frozen=True)
class CannotBe:
    """Why there is nothing to try."""

    why: str


TRIED = None
_ALL: Mapping[Cell, CannotBe | None] = dict.fromkeys(Cell, TRIED)
MATRIX: Mapping[Kind, Mapping[Cell, CannotBe | None]] = {
    Kind.FAILED: _ALL,
    Kind.TIMED_OUT: _ALL,
    Kind.NEEDS_HUMAN: {**_ALL, Cell.FOLDS: CannotBe("each question is an item of its own, to be answered by itself")},
    Kind.SKIPPED: _ALL,
    Kind.DISABLED: _ALL,
    Kind.QUIET: _ALL,
    Kind.BROKEN: _ALL,
    Kind.DRAFT: {
        **_ALL,
        Cell.RETURNS: CannotBe("what a person enabled has its name taken: no agent proposes it again"),
    },
    Kind.QUARANTINED: _ALL,
    Kind.WAITING: {**_ALL, Cell.REBUILT: CannotBe("only the agent's screen tells it; the patrol reads that each time")},
    Kind.OUTBOX: _ALL,
    Kind.CONFIG: {
        **_ALL,
        Cell.REBUILT: CannotBe("only the files tell it; the daemon's sweep reads what became of them"),
    },
    Kind.DESTINATION: {
        **_ALL,
        Cell.REBUILT: CannotBe("only sending tells it; the next notice that fails opens it again"),
    },
}
"""Each kind has a row, and each row every cell: a kind or a cell without one fails."""
