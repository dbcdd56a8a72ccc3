"""`lamp cost`: what runs cost."""

from typing import Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.operations import command_of
from lamplighter.services.table import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.rollups import CostLine, CostView, ShowCost


def _show(found: "CostView", _ask: "ShowCost") -> None:
    first = {"day": "DAY", "automation": "AUTOMATION", "model": "MODEL"}[found.by.value]
    columns = {first: "key", "RUNS": "runs", "COST": "cost", "TOKENS": "tokens", "TIME": "time", "ENDED": "ended"}
    lines = [line for line in found.lines if line.runs]  # days without runs are in the JSON, for charts
    rows = [_cells(line, found.by.value) for line in [*lines, found.total]] if lines else []
    nothing = f"No run since {found.since} has been counted; runs are counted two minutes after their end."
    output.table(rows, columns, empty=nothing)
    if found.total.agent_runs:
        runs = "agent run" if found.total.agent_runs == 1 else "agent runs"
        click.echo(f"{found.total.told} of {found.total.agent_runs} {runs} told their cost.")


def _cells(line: "CostLine", by: str) -> dict[str, Any]:
    named = line.key or ("not known" if by == "model" else "")
    return {
        "key": named,
        "runs": line.runs,
        "cost": f"{line.cost:.2f}" if line.told else "",
        "tokens": line.tokens or "",
        "time": words.span(line.duration_s) if line.duration_s else "",
        "ended": ", ".join(f"{count} {words.state(outcome)}" for outcome, count in line.outcomes.items()),
    }


def command_for(_name: str) -> click.Command:
    return command_of(find("cost.show"), _show)
