"""`lamp run`: executions of automations."""

import json
from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output
from lamplighter.cli.base import city, group, patient_city

if TYPE_CHECKING:
    from lamplighter.app.wiring import OpenCity

run = group("Executions of automations.")

STATES = [
    "queued", "enriching", "ready", "running", "succeeded", "failed", "needs_human", "timed_out", "canceled", "skipped",
]  # fmt: skip
COLUMNS = {
    "ID": "id", "AUTOMATION": "automation", "STATE": "state", "REASON": "reason", "BY": "by", "STARTED": "started",
    "TOOK": "took", "EXIT": "exit_code",
}  # fmt: skip


@run.command("list")
@click.option("--automation", help="Only of this automation.")
@click.option("--state", type=click.Choice(STATES), help="Only in this state.")
@click.option("--before", metavar="ID", help="Only runs older than this one: the next page.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000), help="At most so many.")
def list_runs(automation: str | None, state: str | None, before: str | None, limit: int) -> None:
    """Runs, newest first."""
    from lamplighter.app.run_list import listed

    rows = listed(city(), automation=automation, state=state, before=before, limit=limit)
    output.table(rows if output.wants_json() else [row | _at_a_glance(row) for row in rows], COLUMNS, empty="No runs.")


@run.command("show")
@click.argument("run_id", metavar="ID")
def show(run_id: str) -> None:
    """One run in full, with its timeline."""
    from lamplighter.app.run_commands import shown

    value = shown(city(), run_id)
    if output.wants_json():
        output.record(value, "")
        return
    peek = _at_a_glance(value)
    output.fields(
        value,
        {
            "Run": value["id"],
            "Automation": value["automation"],
            "State": value["state"],
            "Reason": value["reason"],
            "Error": value["error"],
            "Fired by": peek["by"],
            "Created": output.local(value["created_at"]),
            "Started": peek["started"],
            "Ended": output.local(value["ended_at"]),
            "Took": peek["took"],
            "Exit code": value["exit_code"],
            "Deadline": output.local(value["deadline_at"]),
            "Retry of": value["retry_of"],
            "Wisp": value["wisp"],
            "Session": value["session_id"],
            "Configuration": value["configuration"],
            "Cost": _cost(value),
            "Worktree": value["worktree"] and f"{value['worktree']['path']} on {value['worktree']['branch']}",
            "Changes": next((one["data"]["diff"] for one in value["events"] if one["type"] == "worktree_kept"), None),
            "Artifacts": [one["key"] for one in value["artifacts"]] or None,
            "Summary": value["summary"],
        },
    )
    click.echo()
    timeline = [
        {"at": output.local(one["at"]), "what": one["type"], "from": one["from"], "to": one["to"], "by": one["actor"]}
        for one in value["events"]
    ]
    output.table(timeline, {"AT": "at", "WHAT": "what", "FROM": "from", "TO": "to", "BY": "by"}, empty="")
    if value["output_tail"]:
        click.echo(f"\n{value['output_tail'].rstrip()}")


@run.command("logs")
@click.argument("run_id", metavar="ID")
def logs(run_id: str) -> None:
    """What it printed: all there is while it runs, the kept tail afterwards; of an agent its transcript."""
    from lamplighter.app.run_commands import output_of, transcript_of

    text = output_of(city(), run_id)
    value = {"id": run_id, "output": text, "transcript": transcript_of(city(), run_id)}
    output.record(value, output.plain(text).rstrip("\n"))


@run.command("watch")
@click.argument("run_id", metavar="ID")
def watch(run_id: str) -> None:
    """Follow a run to its end; exit 1 unless it succeeded."""
    from lamplighter.app.run_commands import watch as follow

    _ended(follow(city(), run_id, _show_event))


@run.command("cancel")
@click.argument("run_id", metavar="ID")
def cancel(run_id: str) -> None:
    """End a run that is under way."""
    from lamplighter.app.run_commands import cancel as end
    from lamplighter.app.run_commands import nobody_ends_it

    opened = city()
    value = end(opened, run_id)
    text = f"Run {run_id} is {value['state']}."
    if nobody_ends_it(opened, value):
        text += " No daemon is up: if its command still runs, the next `lamp up` ends it."
    output.record(value, text)


@run.command("complete")
@click.argument("run_id", metavar="[ID]", required=False)
@click.option(
    "--outcome", required=True, type=click.Choice(["succeeded", "failed", "needs_human"]), help="How it ended."
)
@click.option("--summary", default="", help="A few lines on what was done and found, in Markdown.")
@click.option("--completion-id", help="As the run's instructions name it; derived from the run when left out.")
@click.option("--citation", "citations", multiple=True, help="A file, link or commit that shows it; may be repeated.")
@click.option("--diff-ref", default="", help="Where the change can be seen.")
@click.option("--test-report-ref", default="", help="Where the results of tests can be seen.")
@click.option("--side-effect-ref", "effects", multiple=True, help="What was changed outside; may be repeated.")
def complete(run_id: str | None, **said: Any) -> None:
    """Report the end of an agent's run; inside a run, of that run. May be repeated with the same words."""
    from lamplighter.app.run_commands import complete as report
    from lamplighter.domain.runs.prompt import completion_id
    from lamplighter.kit.errors import UsageError

    opened = patient_city()
    named = run_id or opened.settings.run
    if not named:
        raise UsageError("No run is named, and this is not a run's session.", hint="Name one: `lamp run complete ID`.")
    done = report(
        opened,
        {
            "run_id": named,
            "completion_id": said["completion_id"] or completion_id(named),
            "outcome": said["outcome"],
            "summary_markdown": said["summary"],
            "citations": list(said["citations"]),
            "diff_ref": said["diff_ref"],
            "test_report_ref": said["test_report_ref"],
            "side_effect_refs": list(said["effects"]),
        },
    )
    word = "was already recorded" if done.replayed else "is recorded"
    value = {"run": done.run, "state": done.state.value, "replayed": done.replayed}
    output.record(value, f"The completion {word}: run {done.run} {done.state}.")


@run.command("retry")
@click.argument("run_id", metavar="ID")
@click.option("--wait", is_flag=True, help="Wait for its end; exit 1 unless it succeeded.")
def retry(run_id: str, wait: bool) -> None:  # noqa: FBT001  click passes flags by name
    """A new run of the same, linked to the old one."""
    from lamplighter.app.inline_run import retry_run

    opened = city()
    row, left_to_daemon = retry_run(opened, run_id)
    finish(opened, row.run.id, here=not left_to_daemon, wait=wait)


def finish(opened: "OpenCity", run_id: str, *, here: bool, wait: bool) -> None:
    """Print a fired run: its result if it was executed `here`, or after waiting for its end; else its present state."""
    from lamplighter.app.run_commands import shown, watch

    if here:
        _ended(shown(opened, run_id), with_output=True)
    elif wait:
        _ended(watch(opened, run_id, _show_event), with_output=True)
    else:
        value = shown(opened, run_id)
        output.record(value, f"Run {run_id} is {value['state']}. `lamp run watch {run_id}` follows it.")


def _ended(value: dict[str, Any], *, with_output: bool = False) -> None:
    peek = _at_a_glance(value)
    reason = f" ({value['reason']})" if value["reason"] not in {None, "", value["state"]} else ""
    text = f"Run {value['id']} {value['state']}{reason} after {peek['took'] or '0s'}."
    said = (value["output_tail"] or "").rstrip() if with_output else ""
    told = "\n".join(part for part in (value["summary"], value["error"]) if part and part not in said)
    text = "\n".join(part for part in (said, text, told) if part)
    output.record(value, text)
    if value["state"] not in ("succeeded", "running", "skipped"):
        click.get_current_context().exit(1)


def _show_event(event: dict[str, Any]) -> None:
    if output.wants_json():
        click.echo(json.dumps(event), err=True)
        return
    moved = event["from"] not in {None, event["to"]}
    move = f"{event['from']} → {event['to']}" if moved else event["to"] or ""
    click.echo(f"{output.local(event['at'])}  {event['type']:<20} {move}")


def _cost(value: dict[str, Any]) -> str | None:
    told = [f"{value['tokens']} tokens"] if value["tokens"] else []
    if value["cost"] is not None:
        told.append(f"{value['cost']:.4f} USD")
    return ", ".join(told) or None


def _at_a_glance(value: dict[str, Any]) -> dict[str, Any]:
    took = value["duration_s"]
    return {
        "by": value["trigger"]["kind"],
        "started": output.local(value["started_at"]),
        "took": "" if took is None else f"{took:.1f}s",
    }


def command_for(_name: str) -> click.Command:
    return run
