"""`lamp agent`: the long-lived workers of the city."""

import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.agent_table import COLUMNS, shown
from lamplighter.cli.base import patient_city, remote, settings, tells_problems
from lamplighter.cli.completing import names
from lamplighter.cli.numbers import Whole
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.kit.errors import Conflict
from lamplighter.kit.shapes import to_json

if TYPE_CHECKING:
    from lamplighter.services.agents.queries import AgentLogs, ListAgents, ShowAgent
    from lamplighter.services.agents.views import AgentDetail, AgentView
    from lamplighter.services.operation import Operation

FOLLOW_S = 0.3


def _list(agents: "list[AgentView]", _ask: "ListAgents") -> None:
    output.table(shown(to_json(agents)), COLUMNS, empty="No agents.")


def _show(agent: "AgentDetail", _ask: "ShowAgent") -> None:
    output.fields(
        {},
        {
            "Agent": agent.name,
            "State": output.state(agent.state),
            "Reason": words.reason(agent.reason, agent.state),
            "Rig": agent.rig,
            "Pool": agent.pool,
            "Session": agent.session,
            "Process": agent.pid,
            "Since": agent.since,
            "Last activity": agent.last_activity_at,
            "Quarantined until": agent.quarantined_until,
            "Starts lately": agent.starts_in_window or None,
            "Exit status": agent.exit_status,
            "Attached": "yes: a person looks at it, and the patrol spares it" if agent.attached else None,
        },
    )
    for member in agent.instances:
        click.echo(output.plain(f"  {member.name}  {member.state}  {member.reason}").rstrip())
    click.echo("\nWhat happened, oldest first:" if agent.actions else "\nNothing has happened to it yet.")
    rows = [{"at": one.at, "what": one.type, "message": _last_line(one.message)} for one in agent.actions]
    output.table(rows, {"WHEN": Col("at", "when"), "WHAT": "what", "MESSAGE": "message"}, empty="")


def _last_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    return lines[-1] if lines else ""


agent = Subject(
    "agent",
    "Long-lived workers, declared in city.toml and kept alive.",
    {
        "list": _list,
        "show": _show,
        "explain": output.sentences,
        "drain": lambda _done, ask: click.echo(f"Asked {ask.name} to finish."),
        "undrain": lambda _done, ask: click.echo(f"{ask.name} may go on."),
        "restart": lambda _done, ask: click.echo(f"Restarted {ask.name}."),
        "kill": lambda _done, ask: click.echo(f"Killed {ask.name}."),
        "unquarantine": lambda _done, ask: click.echo(f"The crashes of {ask.name} are forgotten."),
        "take-over": lambda _done, ask: click.echo(f"You type into the terminal of {ask.name} now."),
        "let-go": lambda _done, ask: click.echo(f"Nobody types into the terminal of {ask.name} now."),
    },
)


@agent.command("peek")
@click.argument("name", shell_complete=names("agent"))
@click.option("--lines", "-n", default=50, show_default=True, type=Whole(0, 100_000), help="0 for all.")
@carries_out("agent.peek")
def peek(name: str, lines: int) -> None:
    """The last lines of its screen or output."""
    from lamplighter.services.agents.queries import PEEK, PeekAgent

    found = do(PEEK, PeekAgent(name, lines))
    output.record(to_json(found), output.plain(found.output))


@agent.command("logs")
@click.argument("name", shell_complete=names("agent"))
@click.option("--lines", "-n", default=200, show_default=True, type=Whole(0, 100_000), help="0 for all.")
@click.option("--follow", "-f", is_flag=True, help="Go on showing what comes; Ctrl-C ends it.")
@carries_out("agent.logs")
def logs(name: str, lines: int, *, follow: bool) -> None:
    """Its output, of the present or the last session."""
    from lamplighter.services.agents.queries import LOGS, AgentLogs

    found = do(LOGS, AgentLogs(name, lines))
    if not follow:
        output.record(to_json(found), output.plain(found.output))
        return
    click.echo(output.plain(found.output))
    _follow(LOGS, AgentLogs(name, lines=0))


def _follow(logs: "Operation[AgentLogs, Any]", ask: "AgentLogs") -> None:
    before = do(logs, ask).output
    while True:
        time.sleep(FOLLOW_S)
        now = do(logs, ask).output
        new = _beyond(before, now)
        if new:
            click.echo(output.plain(new))
        before = now


def _beyond(before: str, now: str) -> str:
    """The output since `before`; all of it if the output was truncated or started anew."""
    return now.removeprefix(before).removeprefix("\n")


@agent.command("attach")
@click.argument("name", shell_complete=names("agent"))
@carries_out("agent.attach")
def attach(name: str) -> None:
    """See it live in this terminal; with tmux, type to it too. The patrol spares it meanwhile."""
    from lamplighter.services.agents.queries import ATTACH, AttachAgent

    found = do(ATTACH, AttachAgent(name))
    if output.wants_json():
        click.echo(json.dumps(to_json(found)))
        return
    sys.stdout.flush()
    os.execvp(found.command[0], list(found.command))  # noqa: S606  the command takes over the terminal


@agent.command("nudge")
@click.argument("name", shell_complete=names("agent"))
@click.argument("message", nargs=-1, required=True)
@carries_out("agent.nudge")
def nudge(name: str, message: tuple[str, ...]) -> None:
    """Type MESSAGE and Enter into its session."""
    from lamplighter.services.agents.operations import NUDGE, NudgeAgent

    done = do(NUDGE, NudgeAgent(name, " ".join(message)))
    output.record(to_json(done), f"Nudged {name}.")


@agent.command("suspend")
@click.argument("name", shell_complete=names("agent"))
@carries_out("agent.suspend")
def suspend(name: str) -> None:
    """Stop it and start it no more, until `resume`; written into city.toml."""
    from lamplighter.services.agents.operations import SUSPEND, SuspendAgent

    _switch(SUSPEND, SuspendAgent(name), "suspended")


@agent.command("resume")
@click.argument("name", shell_complete=names("agent"))
@carries_out("agent.resume")
def resume(name: str) -> None:
    """Lift its suspension."""
    from lamplighter.services.agents.operations import RESUME, ResumeAgent

    _switch(RESUME, ResumeAgent(name), "not suspended")


def _switch(operation: "Operation[Any, Any]", ask: Any, word: str) -> None:
    tells_problems()
    done = do(operation, ask)
    text = f"Agent {ask.name} is {word} now." if done.changed else f"Agent {ask.name} was {word} already."
    output.record(to_json(done), text)
    if done.suspended:
        from lamplighter.cli.suspend import note_left

        note_left(lambda agent: ask.name in {agent.name, agent.pool})


# ── from inside a session ─────────────────────────────────────────────────────────────────────────────────────────────


def _self(name: str | None) -> tuple[str | None, str | None]:
    """The agent's name and, if it is the one whose session this is, the name of that session."""
    env = settings().env
    return (name, None) if name else (env.get("LAMP_AGENT") or env.get("GC_AGENT"), env.get("LAMP_SESSION"))


@agent.command("drain-check")
@click.argument("name", required=False, shell_complete=names("agent"))
@carries_out("agent.drain-check")
def drain_check(name: str | None) -> None:
    """Ends with 0 if the agent is asked to finish, else with 1; prints nothing."""
    from lamplighter.services.agents.queries import DRAIN_CHECK, DrainCheck

    found = do(DRAIN_CHECK, DrainCheck(*_self(name)))
    if output.wants_json():
        click.echo(json.dumps(to_json(found)))
    if not found.draining:
        click.get_current_context().exit(1)


@agent.command("drain-ack")
@click.argument("name", required=False, shell_complete=names("agent"))
@carries_out("agent.drain-ack")
def drain_ack(name: str | None) -> None:
    """Say that the agent has finished: its session may end now."""
    from lamplighter.services.agents.operations import DRAIN_ACK, DrainAck

    done = do(DRAIN_ACK, DrainAck(*_self(name)))
    output.record(to_json(done), f"{done.name} has finished.")


@agent.command("request-restart")
@click.argument("name", required=False, shell_complete=names("agent"))
@click.option("--no-wait", is_flag=True, help="Return at once.")
@carries_out("agent.request-restart")
def request_restart(name: str | None, *, no_wait: bool) -> None:
    """Ask for a fresh session, and wait for the end of this one; work stays on the hook."""
    from lamplighter.services.agents.operations import REQUEST_RESTART, RequestRestart

    done = do(REQUEST_RESTART, RequestRestart(*_self(name)))
    output.record(to_json(done), f"{done.name} gets a fresh session.")
    sys.stdout.flush()
    if no_wait:
        return
    if remote() is None and not patient_city().is_kept:
        raise Conflict("No controller runs this city.", hint="The request stands; `lamp up` fulfils it.")
    signal.pause()


def command_for(_name: str) -> click.Command:
    return agent
