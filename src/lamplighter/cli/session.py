"""`lamp session`: the runtime containers of agents and runs."""

from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.base import city, group
from lamplighter.kit.errors import NotFound

session = group("Sessions: what runs for agents and runs, and what ran.")

COLUMNS = {
    "ID": "id", "NAME": "name", "AGENT": "agent", "RUN": "run", "STATE": "state", "PID": "pid", "STARTED": "started",
    "ENDED": "ended", "EXIT": "exit_status", "WHY": "end_reason",
}  # fmt: skip


@session.command("list")
@click.option("--agent", help="Only those of this agent.")
@click.option("--all", "every", is_flag=True, help="Ended ones too.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000), help="At most so many ended.")
def list_sessions(agent: str | None, limit: int, *, every: bool) -> None:
    """What runs now; with --all also what ended, the newest first."""
    rows = _living()
    if every:
        ended = city().store.read(lambda tx: tx.sessions.latest(agent=agent, limit=limit))
        known = {row["id"] for row in rows}
        rows += [row.as_json() | {"state": "ended"} for row in ended if row.id not in known]
    rows = [row for row in rows if agent in {None, row["agent"]}]
    for row in rows:
        row |= {"started": output.local(row["started_at"]), "ended": output.local(row["ended_at"])}
    output.table(rows, COLUMNS, empty="No sessions.")


@session.command("show")
@click.argument("name")
def show(name: str) -> None:
    """One session, by its id or its name; NAME alone means the present one, else the last."""
    found = _find(name)
    output.fields(found, {key.replace("_", " ").capitalize(): value for key, value in found.items() if key != "meta"})


@session.command("logs")
@click.argument("name")
@click.option("--lines", "-n", default=200, show_default=True, type=click.IntRange(0, 100_000), help="0 for all.")
def logs(name: str, lines: int) -> None:
    """Its output; of an ended one the last of what it said."""
    from lamplighter.app.agents import Agents
    from lamplighter.domain.sessions.model import SessionName

    found = _find(name)
    text = found.get("output_tail") or ""
    if found["state"] != "ended":
        said = Agents(city()).speak_to_each(lambda provider: provider.peek(SessionName(found["name"]), lines))
        text = next((one for one in said if one), "")
    output.record({"name": found["name"], "id": found["id"], "output": text}, output.plain(text))


def _living() -> list[dict[str, Any]]:
    from lamplighter.app.agents import Agents
    from lamplighter.domain.sessions import meta
    from lamplighter.kit.clock import rfc3339

    told = Agents(city()).speak_to_each(lambda provider: provider.seen())
    seen = {one.session_id: one for each in told for one in each.values()}
    return [
        {
            "id": one.session_id,
            "name": one.name,
            "agent": one.meta.get(meta.AGENT),
            "run": one.meta.get(meta.RUN),
            "state": "running" if one.alive else "dead",
            "pid": one.pid,
            "started_at": None if one.started_at is None else rfc3339(one.started_at),
            "last_activity_at": None if one.last_activity is None else rfc3339(one.last_activity),
            "ended_at": None,
            "exit_status": one.exit_status,
            "end_reason": None,
            "attached": one.attached,
            "meta": dict(one.meta),
        }
        for one in seen.values()
    ]


def _find(name: str) -> dict[str, Any]:
    for row in _living():
        if name in {row["id"], row["name"]}:
            return row
    kept = city().store.read(
        lambda tx: (
            tx.sessions.get(name) or next((row for row in tx.sessions.latest(limit=10_000) if row.name == name), None)
        )
    )
    if kept is None:
        raise NotFound(f"There is no session `{name}`.", hint="`lamp session list --all` shows those there were.")
    return kept.as_json() | {"state": "ended"}


def command_for(_name: str) -> click.Command:
    return session
