"""`lamp simulate`: what would fire in the coming days."""

from datetime import UTC, datetime

import click

from lamplighter.cli.automation import show_times
from lamplighter.cli.base import CONTEXT, LampCommand, city
from lamplighter.kit.errors import UsageError


@click.command("simulate", cls=LampCommand, context_settings=CONTEXT)
@click.option("--days", default=7.0, show_default=True, type=click.FloatRange(0, 3660), help="So far ahead.")
@click.option("--from", "start", metavar="DATE", help="From then on, such as 2026-12-24; now when left out.")
@click.option("--limit", default=500, show_default=True, type=click.IntRange(1, 100_000), help="At most so many.")
def simulate(days: float, start: str | None, limit: int) -> None:
    """What would fire, in order, if nothing else happened. Conditions and events cannot be foretold."""
    from lamplighter.app.automation_commands import upcoming

    opened = city()
    begin = opened.clock.now() if start is None else _day(start)
    found = upcoming(opened, start=begin, days=days, limit=limit + 1)
    show_times(found[:limit])
    if len(found) > limit:
        last = found[limit - 1]["local"].replace("T", " ")
        click.echo(f"More follows after {last}: these are the first {limit}; --limit shows more.", err=True)


def _day(text: str) -> datetime:
    """Parse a date or time in the local zone; a date alone means its midnight. Raises UsageError."""
    try:
        return datetime.fromisoformat(text).astimezone().astimezone(UTC)
    except ValueError:
        raise UsageError(f"`{text}` is not a date.", hint="Such as 2026-12-24 or 2026-12-24T08:00.") from None


def command_for(_name: str) -> click.Command:
    return simulate
