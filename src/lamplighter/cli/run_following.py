"""Runs followed to their end: what they print, say and do as it comes, through retries."""

import json
import sys
from typing import TYPE_CHECKING, TypeVar

import click

from lamplighter.cli import output, words
from lamplighter.cli.base import city, remote
from lamplighter.cli.operations import do, follow
from lamplighter.cli.run_views import attempt, event_words, sentence, state_in_words, tell_note
from lamplighter.kit.shapes import to_json

if TYPE_CHECKING:
    from lamplighter.services.operation import Operation
    from lamplighter.services.runs.following import RunPart
    from lamplighter.services.runs.views import RunDetail, RunView

Q = TypeVar("Q")
V = TypeVar("V", bound="RunView")


def fire(operation: "Operation[Q, V]", ask: Q, *, wait: bool, verbose: bool = False) -> None:
    """Have a run made, and print it: its result if this process executed it, or after waiting; else its state."""
    from lamplighter.app.inline_run import fired
    from lamplighter.services.runs.queries import SHOW_RUN, ShowRun

    made, executed_here = (do(operation, ask), False) if remote() is not None else fired(city(), operation, ask)
    tell_note(made)
    if executed_here:
        tell_end(do(SHOW_RUN, ShowRun(made.id)), with_output=True)
    elif wait:
        tell_end(watched(made.id, verbose=verbose))
    else:
        found = do(SHOW_RUN, ShowRun(made.id))
        short = words.short_id(made.id)
        output.record(
            to_json(found), f"Run {short} {state_in_words(found.state)}. `lamp run watch {short}` follows it."
        )


def watched(run_id: str, *, verbose: bool = False, once: bool = False) -> "RunDetail":
    """Print what the run and its retries print, say and do as it comes; returns the last of them once it has ended.

    With --json its events, each on a line of standard error.
    """
    from lamplighter.services.runs.following import FOLLOW_RUN, FollowRun
    from lamplighter.services.runs.queries import SHOW_RUN, ShowRun

    found = do(SHOW_RUN, ShowRun(run_id))
    if output.wants_json():
        return _watched_by_program(found)
    told = _Told(verbose=verbose, run=found.id)
    follow(FOLLOW_RUN, FollowRun(told.run, once), told.show)
    told.end_line()
    return do(SHOW_RUN, ShowRun(told.run))


def _watched_by_program(found: "RunDetail") -> "RunDetail":
    from lamplighter.services.runs.logs import WATCH_RUN, WatchRun
    from lamplighter.services.runs.queries import SHOW_RUN, ShowRun

    run: str | None = found.id
    while run is not None:
        follow(WATCH_RUN, WatchRun(run), lambda event: click.echo(json.dumps(to_json(event)), err=True))
        found = do(SHOW_RUN, ShowRun(run))
        run = found.retried_by
    return found


class _Told:
    """What was told of a run that is followed."""

    def __init__(self, *, verbose: bool, run: str) -> None:
        self.run = run
        self._verbose = verbose
        self._open_line = False

    def show(self, part: "RunPart") -> None:
        self.run = part.run
        if part.kind == "output":
            click.echo(output.plain(part.text), nl=False)
            self._open_line = not part.text.endswith("\n")
            return
        self.end_line()
        if part.event is not None and self._verbose:
            output.line(f"{words.clock(part.at)}  {event_words(part.event)}")
        elif part.kind == "transcript":
            output.text(part.text)
        elif part.kind == "retry":
            self.run = part.text
            _tell_retry(part.run, part.text)
        sys.stdout.flush()

    def end_line(self) -> None:
        if self._open_line:
            click.echo()
            self._open_line = False


def _tell_retry(before: str, after: str) -> None:
    from lamplighter.services.runs.queries import SHOW_RUN, ShowRun

    old, new = do(SHOW_RUN, ShowRun(before)), do(SHOW_RUN, ShowRun(after))
    at = next((words.moment(one.data.get("at")) for one in new.events if one.data and one.data.get("at")), None)
    when = f" at {words.clock(at)}" if at and new.started_at is None else ""
    click.echo(f"{sentence(old)} It is tried again{when}: run {words.short_id(new.id)}, attempt {attempt(new)}.")


def tell_end(run: "RunDetail", *, with_output: bool = False) -> None:
    printed = (run.output_tail or "").rstrip()
    more = "\n".join(part for part in (run.summary, run.error) if part and part not in printed)
    text = sentence(run)
    if run.retried_by:
        text += f" It is tried again: run {words.short_id(run.retried_by)}."
    shown = (output.plain(printed) if with_output else "", text, output.plain(more))
    output.record(to_json(run), "\n".join(part for part in shown if part))
    exit_as(run)


def exit_as(run: "RunDetail") -> None:
    if run.state not in ("succeeded", "running", "skipped"):
        click.get_current_context().exit(1)
