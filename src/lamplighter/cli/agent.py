"""`lamp agent`: the long-lived workers of the city."""

import json
import os
import signal
import sys
import time

import click

from lamplighter.cli import output
from lamplighter.cli.agent_table import COLUMNS, shown
from lamplighter.cli.base import city, group, patient_city
from lamplighter.kit.errors import Conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lamplighter.app.agents import Agents, Named

agent = group("Long-lived workers, declared in city.toml and kept alive.")

FOLLOW_S = 0.3


def _agents(*, tells_problems: bool = False) -> "Agents":
    from lamplighter.app.agents import Agents

    return Agents(city(tells_problems=tells_problems))


def _own_agents() -> "Agents":
    """For commands that agents call from inside their session: waits for an unreachable database for a while."""
    from lamplighter.app.agents import Agents

    return Agents(patient_city())


def _do(name: str, act: "Callable[[Agents, Named], object]", text: str, **fields: bool) -> None:
    """Perform one action on one agent and print the result: `fields` as JSON, or `text` for a person."""
    agents = _agents()
    act(agents, agents.named(name))
    output.record({"name": name, **fields}, text)


@agent.command("list")
@click.option("--rig", help="Only those of this rig.")
@click.option("--state", help="Only those in this state.")
def list_agents(rig: str | None, state: str | None) -> None:
    """The agents there are, and how each is."""
    rows = [
        row for row in _agents().rows() if rig in {None, row["rig"]} and state in {None, row["state"]}
    ]  # fmt: skip
    output.table(shown(rows), COLUMNS, empty="No agents.")


@agent.command("show")
@click.argument("name")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many actions.")
def show(name: str, limit: int) -> None:
    """How an agent is, and what was done to it lately, and why."""
    agents = _agents()
    story = agents.story(agents.named(name), limit=limit)
    keys = ("name", "state", "reason", "rig", "pool", "session", "pid", "starts_in_window", "exit_status")
    fields = {key.replace("_", " ").capitalize(): story.get(key) for key in keys}
    times = {"Since": "since", "Last activity": "last_activity_at", "Quarantined until": "quarantined_until"}
    fields |= {title: output.local(story.get(key)) for title, key in times.items()}
    output.fields(story, fields)
    if output.wants_json():
        return
    click.echo("\nWhat happened, oldest first:" if story["actions"] else "\nNothing has happened to it yet.")
    for row in story["actions"]:
        first = (row["message"] or "").strip().splitlines()
        text = first[-1] if first else ""
        click.echo(output.plain(f"  {output.local(row['at'])}  {row['type']:<20}  {text}").rstrip())


@agent.command("peek")
@click.argument("name")
@click.option("--lines", "-n", default=50, show_default=True, type=click.IntRange(0, 100_000), help="0 for all.")
def peek(name: str, lines: int) -> None:
    """The last lines of its screen or output."""
    agents = _agents()
    text = agents.peek(agents.named(name), lines)
    output.record({"name": name, "output": text}, output.plain(text))


@agent.command("logs")
@click.argument("name")
@click.option("--lines", "-n", default=200, show_default=True, type=click.IntRange(0, 100_000), help="0 for all.")
@click.option("--follow", "-f", is_flag=True, help="Go on showing what comes; Ctrl-C ends it.")
def logs(name: str, lines: int, *, follow: bool) -> None:
    """Its output, of the present or the last session."""
    agents = _agents()
    who = agents.named(name)
    text = agents.peek(who, lines)
    if not follow:
        output.record({"name": name, "output": text}, output.plain(text))
        return
    click.echo(output.plain(text))
    _follow(agents, who, agents.peek(who, 0))


def _follow(agents: "Agents", who: "Named", before: str) -> None:
    while True:
        time.sleep(FOLLOW_S)
        now = agents.peek(who, 0)
        new = _beyond(before, now)
        if new:
            click.echo(output.plain(new))
        before = now


def _beyond(before: str, now: str) -> str:
    """The output since `before`; all of it if the output was truncated or started anew."""
    return now.removeprefix(before).removeprefix("\n")


@agent.command("attach")
@click.argument("name")
def attach(name: str) -> None:
    """See it live in this terminal; with tmux, type to it too. The patrol spares it meanwhile."""
    agents = _agents()
    command = agents.attach_command(agents.named(name))
    if output.wants_json():
        click.echo(json.dumps({"name": name, "command": list(command)}))
        return
    sys.stdout.flush()
    os.execvp(command[0], command)  # noqa: S606  the command takes over the terminal


@agent.command("nudge")
@click.argument("name")
@click.argument("message", nargs=-1, required=True)
def nudge(name: str, message: tuple[str, ...]) -> None:
    """Type MESSAGE and Enter into its session."""
    _do(name, lambda agents, who: agents.nudge(who, " ".join(message)), f"Nudged {name}.", nudged=True)


@agent.command("drain")
@click.argument("name")
def drain(name: str) -> None:
    """Ask it to finish what it does; when it has, it gets a fresh session."""
    _do(name, lambda agents, who: agents.drain(who), f"Asked {name} to finish.", draining=True)


@agent.command("undrain")
@click.argument("name")
def undrain(name: str) -> None:
    """Take back what `drain` asked."""
    _do(name, lambda agents, who: agents.undrain(who), f"{name} may go on.", draining=False)


@agent.command("restart")
@click.argument("name")
def restart(name: str) -> None:
    """Give it a fresh session now; returns when that runs."""
    agents = _agents()
    done = agents.restart(agents.named(name))
    output.record({"name": name, **done}, f"Restarted {name}.")


@agent.command("kill")
@click.argument("name")
def kill(name: str) -> None:
    """End its session at once; a running controller starts it again."""
    _do(name, lambda agents, who: agents.kill(who), f"Killed {name}.", killed=True)


@agent.command("suspend")
@click.argument("name")
def suspend(name: str) -> None:
    """Stop it and start it no more, until `resume`; written into city.toml."""
    _switch(name, suspended=True)


@agent.command("resume")
@click.argument("name")
def resume(name: str) -> None:
    """Lift its suspension."""
    _switch(name, suspended=False)


def _switch(name: str, *, suspended: bool) -> None:
    agents = _agents(tells_problems=True)
    changed = agents.switch(agents.named(name), suspended=suspended)
    word = "suspended" if suspended else "not suspended"
    text = f"Agent {name} is {word} now." if changed else f"Agent {name} was {word} already."
    output.record({"name": name, "suspended": suspended, "changed": changed}, text)


@agent.command("unquarantine")
@click.argument("name")
def unquarantine(name: str) -> None:
    """Forget its crashes: it may be started again at once."""
    _do(name, lambda agents, who: agents.unquarantine(who), f"The crashes of {name} are forgotten.", quarantined=False)


# ── from inside a session ─────────────────────────────────────────────────────────────────────────────────────────────


@agent.command("drain-check")
@click.argument("name", required=False)
def drain_check(name: str | None) -> None:
    """Succeeds when the agent is asked to finish; says nothing."""
    agents = _own_agents()
    draining = agents.is_draining(agents.named(name))
    if output.wants_json():
        click.echo(json.dumps({"draining": draining}))
    if not draining:
        click.get_current_context().exit(1)


@agent.command("drain-ack")
@click.argument("name", required=False)
def drain_ack(name: str | None) -> None:
    """Say that the agent has finished: its session may end now."""
    agents = _own_agents()
    who = agents.named(name)
    agents.acknowledge(who)
    output.record({"name": who.name, "acknowledged": True}, f"{who.name} has finished.")


@agent.command("request-restart")
@click.argument("name", required=False)
@click.option("--no-wait", is_flag=True, help="Return at once.")
def request_restart(name: str | None, *, no_wait: bool) -> None:
    """Ask for a fresh session, and wait for the end of this one; work stays on the hook."""
    agents = _own_agents()
    who = agents.named(name)
    agents.request_restart(who)
    output.record({"name": who.name, "requested": True}, f"{who.name} gets a fresh session.")
    sys.stdout.flush()
    if no_wait:
        return
    if not agents.is_kept:
        raise Conflict("No controller runs this city.", hint="The request stands; `lamp up` fulfils it.")
    signal.pause()


def command_for(_name: str) -> click.Command:
    return agent
