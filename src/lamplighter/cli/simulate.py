"""`lamp simulate`: what would fire in the coming days, as a list that stays short, or as the grid of a week."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.automation_views import show_times
from lamplighter.cli.base import CONTEXT, LampCommand
from lamplighter.cli.completing import names
from lamplighter.cli.numbers import Number, Whole
from lamplighter.cli.operations import carries_out, do
from lamplighter.cli.output import Col
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import UsageError

if TYPE_CHECKING:
    from lamplighter.services.automations.views import FiringView

DENSE = 12
"""A trigger that fires more often in the span is told in one line."""
LOOKED_AT = 500
COUNTED = 20_000
MOST = 100_000
WEEK = 7


@click.command("simulate", cls=LampCommand, context_settings=CONTEXT)
@click.argument("name", required=False, shell_complete=names("automation"))
@click.option("--rig", help="The automation of this rig; the same as NAME:rig:RIG.", shell_complete=names("rig"))
@click.option("--days", default=7.0, show_default=True, type=Number(0, 3660), help="So far ahead.")
@click.option("--from", "start", metavar="DATE", help="From then on, such as 2026-12-24; now when left out.")
@click.option("--limit", default=500, show_default=True, type=Whole(1, 100_000), help="At most so many.")
@click.option("--all", "every", is_flag=True, help="Each time on a line of its own, also of what fires often.")
@click.option("--calendar", is_flag=True, help="Weeks as grids: a row for each automation, a column for each day.")
@carries_out("city.simulate")
def simulate(name: str | None, rig: str | None, days: float, start: str | None, limit: int, **how: bool) -> None:
    """What would fire, in order, if nothing else happened. Conditions and events cannot be predicted.

    What fires often is told in one line.
    """
    from lamplighter.services.automations.queries import SIMULATE, Simulate

    begin = None if start is None else _day(start)
    if how["calendar"] and not output.wants_json():
        found = do(SIMULATE, Simulate(days, begin, MOST, name, rig, each=COUNTED))
        _show_weeks(found, (begin or SystemClock().now()).astimezone().date(), days)
        return
    if how["every"] or output.wants_json():
        found = do(SIMULATE, Simulate(days, begin, limit + 1, name, rig))
        show_times(found[:limit])
    else:
        found = _grouped(do(SIMULATE, Simulate(days, begin, MOST, name, rig, each=LOOKED_AT)), limit)
    if len(found) > limit:
        last = found[limit - 1].local.replace("T", " ")
        click.echo(f"More follows after {last}: these are the first {limit}; --limit shows more.", err=True)


def _grouped(found: "list[FiringView]", limit: int) -> "list[FiringView]":
    """Print the dense triggers in one line each, then all other firings; returns the latter."""
    by_trigger: dict[tuple[str, str], list[FiringView]] = {}
    for one in found:
        by_trigger.setdefault((one.scoped_name, one.trigger), []).append(one)
    dense = {key: times for key, times in by_trigger.items() if len(times) > DENSE}
    single = [one for one in found if (one.scoped_name, one.trigger) not in dense]
    if dense:
        rows = [_often(*key, times) for key, times in dense.items()]
        columns = {
            "NAME": "name", "TRIGGER": "trigger", "FIRES": "every", "TIMES": Col("times", "word"),
            "FIRST": Col("first", "when"),
        }  # fmt: skip
        output.table(rows, columns, empty="")
        if single:
            click.echo()
    if single or not dense:
        show_times(single[:limit])
    return single


def _often(name: str, trigger: str, times: "Sequence[FiringView]") -> dict[str, Any]:
    gaps = [after.at - before.at for before, after in pairwise(times)]
    usual = sorted(gaps)[len(gaps) // 2]
    even = max(gaps) - min(gaps) <= timedelta(seconds=1)
    count = f"over {len(times):,}" if len(times) >= LOOKED_AT else f"{len(times):,}"
    every = f"every {words.span(usual)}" if even else f"mostly every {words.span(usual)}"
    return {"name": name, "trigger": trigger, "every": every, "times": count, "first": times[0].at}


def _show_weeks(found: "Sequence[FiringView]", first: date, days: float) -> None:
    """A grid for each week from the first day on; a cell has the one time of a day, or how often it fires."""
    if not found:
        click.echo("Nothing timed is due in that span.")
        return
    by_day: dict[str, dict[date, list[str]]] = {}
    for one in found:
        day, _, clock = one.local.partition("T")
        by_day.setdefault(one.scoped_name, {}).setdefault(date.fromisoformat(day), []).append(clock[:5])
    full = {name for name, times in by_day.items() if sum(map(len, times.values())) >= COUNTED}
    uncounted = {name: max(by_day[name]) for name in full}
    if len(found) >= MOST:
        uncounted |= {name: min(uncounted.get(name, date.max), max(map(max, by_day.values()))) for name in by_day}
    end = first + timedelta(days=max(1, round(days)))
    while first < end:
        _show_week(by_day, uncounted, first)
        first += timedelta(days=WEEK)
        if first < end:
            click.echo()


def _show_week(by_day: Mapping[str, Mapping[date, Sequence[str]]], uncounted: Mapping[str, date], first: date) -> None:
    """`uncounted` has the day from which on an automation that fires very often was not counted any more."""
    days = [first + timedelta(days=n) for n in range(WEEK)]
    heads = {f"{day:%a} {day.day:>2}": Col(day.isoformat(), "word", always=True) for day in days}
    rows = [
        {"name": name}
        | {
            day.isoformat(): "…" if day >= uncounted.get(name, date.max) else _in_a_day(times.get(day, ()))
            for day in days
        }
        for name, times in by_day.items()
    ]
    click.echo(click.style(f"{days[0]:%-d %B} to {days[-1]:%-d %B %Y}", bold=True))
    output.table(rows, {"NAME": "name", **heads}, empty="")


def _in_a_day(times: Sequence[str]) -> str:
    if not times:
        return "·"
    if len(times) == 1:
        return times[0]
    return f"{len(times)}x"


def _day(text: str) -> datetime:
    """Parse a date or time in the local zone; a date alone means its midnight. Raises UsageError."""
    try:
        return datetime.fromisoformat(text).astimezone().astimezone(UTC)
    except ValueError:
        raise UsageError(f"`{text}` is not a date.", hint="Such as 2026-12-24 or 2026-12-24T08:00.") from None


def command_for(_name: str) -> click.Command:
    return simulate
