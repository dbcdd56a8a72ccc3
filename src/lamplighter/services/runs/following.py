"""A run as it goes on: what its program prints, what its agent says and does, its events; through its retries."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.model import ActionKind
from lamplighter.domain.runs.model import TERMINAL
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.host import Host
from lamplighter.services.operation import Http, stream
from lamplighter.services.runs import transcripts
from lamplighter.services.runs.queries import RUN_ID, ShowRun, show_run
from lamplighter.services.runs.views import RunDetail, RunEventView
from lamplighter.store.transcripts import TranscriptEvent
from lamplighter.store.tx import Tx

POLL = timedelta(milliseconds=150)
LOOKS_AFTER_END = 15
"""A program may still say something after it has reported, and what it said is read when it ends; it is waited for so
many looks.
"""
OVERLAP = 2000
"""So much of what was shown last is looked for in output whose beginning was cut off meanwhile."""


@dataclass(frozen=True)
class RunPart:
    """Something of a run: its `kind` is `event`, `output`, `transcript`, or `retry` when another run tries it again."""

    run: str
    kind: str
    at: datetime
    text: str = given("What was printed, said or done; the id of the next run for `retry`.", default="")
    event: RunEventView | None = given("The event, of that kind.", default=None)


@dataclass(frozen=True)
class FollowRun:
    """What a run prints, says and does as it comes, through its retries to the end; exit 1 unless it succeeded."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")
    once: bool = given("End with this run, also if it is tried again.", default=False)


@dataclass
class _Shown:
    """How much of one run was told."""

    run: str
    events: int = 0
    said: int = 0
    output: str = ""
    after_end: int = 0
    """How often it was looked at since it ended."""


async def follow_run(host: Host, ask: FollowRun, ctx: Context) -> AsyncIterator[RunPart]:
    """Those of the past first. Ends with the last retry. Raises RunUnknown."""
    nothing, shown, done = asyncio.Event(), _Shown(ask.run), False
    while not done:
        found, said, has_program = await host.store.read(_looked, shown.run, ctx)
        has_ended = found.state in TERMINAL
        shown.after_end += has_ended
        over = has_ended and (not has_program or shown.after_end > LOOKS_AFTER_END)
        output = found.output_tail or "" if over else await _printed(host, found)
        at = ctx.now if found.ended_at is None else found.ended_at
        for part in _new(shown, found, said, output, at, over=over):
            yield part
        done = over and (ask.once or found.retried_by is None)
        if not over:
            await host.clock.wait(nothing, at_most=POLL)
        elif not done and found.retried_by is not None:
            yield RunPart(found.id, "retry", found.ended_at or ctx.now, found.retried_by)
            shown = _Shown(found.retried_by)


def _looked(tx: Tx, run: str, ctx: Context) -> tuple[RunDetail, list[TranscriptEvent], bool]:
    """The run, what its agent said, and whether the agent's program is still on record as running."""
    found = show_run(tx, ShowRun(run), ctx)
    if found.action != ActionKind.AGENT.value:
        return found, [], False
    return found, transcripts.of_run(tx, run), any(one.ended_at is None for one in tx.sessions.of_run(run))


async def _printed(host: Host, run: RunDetail) -> str:
    """What its command printed so far; an agent's output is its transcript."""
    if run.action == ActionKind.AGENT.value:
        return ""
    return (await host.secrets.mask())(await host.commands.tail(run.id))


def _new(
    shown: _Shown, found: RunDetail, said: list[TranscriptEvent], output: str, now: datetime, *, over: bool
) -> Iterator[RunPart]:
    events = list(found.events[shown.events :])
    end = next((n for n, one in enumerate(events) if one.to_state in TERMINAL), len(events))
    for event in events[:end]:
        yield RunPart(found.id, "event", event.at, event.type, event)
    for one in said[shown.said :]:
        text = transcripts.told(one)
        if text:
            yield RunPart(found.id, "transcript", one.at, text)
    fresh = beyond(shown.output, output) if not said else ""
    if fresh:
        yield RunPart(found.id, "output", now, fresh)
    told = events[: len(events) if over else end]
    for event in told[end:]:  # the end of the run after all that it said
        yield RunPart(found.id, "event", event.at, event.type, event)
    shown.events, shown.said = shown.events + len(told), len(said)
    shown.output = output or shown.output


def beyond(before: str, now: str) -> str:
    """What of `now` was not in `before`; its beginning may have been cut off, so the end of `before` is looked for."""
    if now.startswith(before):
        return now[len(before) :]
    last = before[-OVERLAP:]
    while last:
        at = now.rfind(last)
        if at >= 0:
            return now[at + len(last) :]
        last = last[len(last) // 2 + 1 :] if len(last) > 80 else ""
    return "" if before.endswith(now) else now


FOLLOW_RUN = stream("run.follow", Verb.READ, FollowRun, RunPart, follow_run, http=Http("GET", "/runs/{run}/follow"))
