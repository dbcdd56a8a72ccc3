"""What runs print and what happens to them: the output so far, and the events as they come."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.model import ActionKind
from lamplighter.domain.runs.model import TERMINAL, Run
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.host import Host
from lamplighter.services.operation import Http, effect, stream
from lamplighter.services.runs import review, transcripts
from lamplighter.services.runs.queries import RUN_ID, ShowRun, show_run
from lamplighter.services.runs.views import RunEventView
from lamplighter.store.transcripts import TranscriptEvent
from lamplighter.store.tx import Tx

POLL = timedelta(milliseconds=100)


@record
class TranscriptEventView:
    at: datetime
    kind: str
    body: Mapping[str, Any] = given("What was said or done, in the keys of its kind.", whole=True)


@record
class RunLogs:
    """`transcript` is what the run's agent said and did, as far as it is recorded."""

    id: str
    output: str
    transcript: Sequence[TranscriptEventView]


@record
class ShowLogs:
    """What it printed: all there is while it runs, the kept tail afterwards; of an agent its transcript."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


@record
class WatchRun:
    """Follow a run to its end; exit 1 unless it succeeded."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


async def show_logs(host: Host, ask: ShowLogs, _ctx: Context) -> RunLogs:
    """Raises RunUnknown."""
    row, events = await host.store.read(_recorded, ask.run)
    if row.action == ActionKind.AGENT.value:
        lines = [transcripts.told(one) for one in events]
        output = "\n".join(line for line in lines if line) or row.output_tail
    elif row.state in TERMINAL:
        output = row.output_tail
    else:
        output = (await host.secrets.mask())(await host.commands.tail(ask.run))
    return RunLogs(ask.run, output or "", [TranscriptEventView(one.at, one.kind, one.body) for one in events])


def _recorded(tx: Tx, run: str) -> tuple[Run, list[TranscriptEvent]]:
    return review.get(tx, run), transcripts.of_run(tx, run)


async def watch_run(host: Host, ask: WatchRun, ctx: Context) -> AsyncIterator[RunEventView]:
    """The run's events, those of the past first; ends with the run. Raises RunUnknown."""
    shown, over, nothing = 0, False, asyncio.Event()
    while not over:
        found = await host.store.read(show_run, ShowRun(ask.run), ctx)
        for event in found.events[shown:]:
            yield event
        shown, over = len(found.events), found.state in TERMINAL
        if not over:
            await host.clock.wait(nothing, at_most=POLL)


SHOW_LOGS = effect("run.logs", Verb.READ, ShowLogs, RunLogs, show_logs, http=Http("GET", "/runs/{run}/logs"))
WATCH_RUN = stream("run.watch", Verb.READ, WatchRun, RunEventView, watch_run, http=Http("GET", "/runs/{run}/watch"))
