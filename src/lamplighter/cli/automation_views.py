"""How automations are shown to a person: in lists, one in full, when they fire, and what was done to them."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.operations import Show
from lamplighter.cli.output import Col
from lamplighter.cli.policies import policy_words
from lamplighter.domain.automations.spoken_reasons import said
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.shapes import to_json

if TYPE_CHECKING:
    from lamplighter.services.automations.cursors import CursorView, KeepCursor
    from lamplighter.services.automations.notes import KeepNotes, NotesView
    from lamplighter.services.automations.queries import ListAutomations
    from lamplighter.services.automations.trying import TriedView
    from lamplighter.services.automations.views import (
        AutomationDeleted,
        AutomationView,
        FiringView,
        SuspensionView,
        TriggerEventView,
    )
    from lamplighter.services.looking import PinView


def listed(found: "list[AutomationView]", ask: "ListAutomations") -> None:
    columns = {
        "NAME": "scoped_name", "STATE": Col("standing", "state"), "FIRES": "fires", "NEXT": Col("next", "when"),
        "LAST": Col("last", "when"), "RESULT": Col("result", "state", spare=1), "ACTION": "does",
    }  # fmt: skip
    rows = [{"scoped_name": one.scoped_name} | _at_a_glance(one) for one in found]
    output.table(rows, columns, empty="No automations. `lamp automation templates` shows where to start.")
    _note_lost(found)
    if len(found) == ask.limit:
        click.echo(f"These are {ask.limit}; `--after {found[-1].scoped_name}` shows what follows.", err=True)


def show_trial(found: "TriedView") -> None:
    """What a dry run found: each command with its end and what would follow, then what came in lately."""
    if output.wants_json():
        output.record(to_json(found), "")
        return
    for problem in found.problems:
        click.echo(f"{problem.key}: {problem.message}")
    for one in found.commands:
        click.echo(f"{one.of}: {one.means}")
        click.echo(f"  {one.command}")
        for line in one.output.splitlines():
            click.echo(f"  | {line}")
    for came in found.arrivals:
        click.echo(f"{came.trigger}: {'would fire' if came.fires else 'would not fire'} on {came.title} ({came.id})")
        if came.reason:
            click.echo(f"  {came.reason}")
    if not (found.problems or found.commands or found.arrivals):
        click.echo("Nothing decides beforehand: it has no precheck and no condition, and nothing came in lately.")


def shown(one: "AutomationView", _ask: Any) -> None:
    peek = _at_a_glance(one)
    output.fields(
        {},
        {
            "Automation": one.scoped_name,
            "Description": one.description,
            "State": output.state(peek["standing"], f": {one.disabled_reason}" if one.disabled_reason else ""),
            "Try": f"lamp automation enable {one.scoped_name}" if peek["standing"] == "disabled" else None,
            "Fires": peek["fires"],
            "Next": peek["next"],
            "Last fired": peek["fired"],
            "Last run": _last_run(one),
            "Action": _action(one.action, whole=True),
            "Policies": "\n".join(policy_words(one.policies)),
            "Limits": _limits(one),
            "Time zone": one.timezone,
            "Failures": f"{words.counted(one.failures, 'failure')} in a row" if one.failures else None,
            "Source": one.path or _SOURCES.get(one.source, one.source),
            "Problems": "\n".join([*one.problems, *one.warnings]),
        },
    )


def _last_run(one: "AutomationView") -> "output.State | None":
    """Such as `failed (exit 1), run b7my82`."""
    run = one.last_run
    if run is None:
        return None
    why = words.reason(run.reason, run.state)
    told = f" ({why})" if why and why != words.state(run.state) else ""
    return output.state(run.state, f"{told}, run {words.short_id(run.id)}")


def _limits(one: "AutomationView") -> str | None:
    """Those in force; a policy that was set says the same of its own."""
    if one.limits is None:
        return None
    timeout = f"{one.limits.timeout} for the action, " if one.limits.timeout else ""
    return f"{timeout}{one.limits.deadline} for the whole run"


def _note_lost(found: "list[AutomationView]") -> None:
    """Name those whose runs would not find what they need."""
    lost = [one for one in found if one.warnings]
    for one in lost[:MOST_NOTED]:
        output.note(f"{one.scoped_name}: {'; '.join(one.warnings)}")
    if len(lost) > MOST_NOTED:
        output.note(f"{len(lost) - MOST_NOTED} more name what is not there; `lamp doctor` tells of all of them.")


MOST_NOTED = 5
_SOURCES = {"api": "made by a command", "agent": "made by an agent"}


def show_times(found: "list[FiringView]", _ask: Any = None) -> None:
    rows = [to_json(one) for one in found]
    if not output.wants_json():
        rows = [row | {"when": _clock_time(row["local"]), "zone": _ZONES.get(row["zone"], row["zone"])} for row in rows]
    columns = {
        "WHEN": Col("when", "word"), "ZONE": Col("zone", spare=1), "LEFT": Col("at", "when"), "NAME": "scoped_name",
        "TRIGGER": "trigger",
    }  # fmt: skip
    output.table(rows, columns, empty="Nothing timed is due in that span.")


_ZONES = {"Etc/UTC": "UTC"}


def _clock_time(local: str) -> str:
    """Such as `Mon 2026-11-23 09:00`; the zone stands beside it."""
    at = datetime.fromisoformat(local)
    return f"{at:%a %Y-%m-%d %H:%M:%S}".removesuffix(":00")


def shown_history(found: "list[TriggerEventView]", _ask: Any) -> None:
    columns = {
        "WHEN": Col("last_at", "when"), "TRIGGER": "trigger", "STATUS": Col("status", "state"), "REASON": "reason",
        "TIMES": Col("times", "number"), "RUN": Col("run", "word"), "RUN'S STATE": Col("run_state", "state"),
    }  # fmt: skip
    rows = [
        to_json(one)
        | {"reason": said(words.reason(one.reason, one.status)), "times": one.count if one.count > 1 else None}
        for one in found
    ]
    output.table(rows, columns, empty="Nothing has fired it yet.")


def tell_suspension(found: "SuspensionView", _ask: Any) -> None:
    word = "suspended" if found.suspended else "not suspended"
    click.echo(f"{found.scoped_name} is {word} now." if found.changed else f"{found.scoped_name} was {word} already.")


def tell_pinned(one: "PinView", _ask: Any) -> None:
    click.echo(f"{one.automation} stands on top of your lists in the console.")


def tell_unpinned(one: "PinView", _ask: Any) -> None:
    click.echo(f"{one.automation} stands on top no longer.")


def listed_pins(found: "list[PinView]", _ask: Any) -> None:
    rows = [to_json(one) for one in found]
    output.table(rows, {"AUTOMATION": "automation"}, empty="You keep none on top. `lamp automation pin NAME` does.")


def tell_deleted(gone: "AutomationDeleted", _ask: Any) -> None:
    click.echo(f"Deleted {gone.scoped_name}.")


def tells(verb: str) -> Show:
    """Say in a sentence what was done, and what is left to do."""

    def tell(one: "AutomationView", _ask: Any = None) -> None:
        peek = _at_a_glance(one)
        text = f"{verb} {one.scoped_name}: {peek['fires']} ({words.state(peek['standing'])})."
        if not one.enabled:
            text += f"\nIt fires once enabled: `lamp automation enable {one.scoped_name}`."
        output.record(to_json(one), text)
        _note_missing(one)

    return tell


def _note_missing(one: "AutomationView") -> None:
    """Say that its runs would fail for want of a program; the program may still be installed before one fires."""
    from lamplighter.app.missing_programs import missing_program
    from lamplighter.cli.base import city, remote

    missing = None if remote() else missing_program(city(), one.action)
    if missing is not None:
        output.note(f"{missing} Runs of {one.scoped_name} on this machine fail until that is mended.")


def shown_cursor(found: "CursorView", ask: "KeepCursor") -> None:
    if ask.set is not None:
        click.echo(f"The cursor of {found.automation} is at {found.value}.")
    elif found.value is None:
        click.echo(f"The cursor of {found.automation} has no value yet.")
    else:
        output.text(found.value)


def shown_notes(found: "NotesView", ask: "KeepNotes") -> None:
    if ask.text is not None:
        click.echo(f"The notes of {found.automation} are at version {found.version}.")
    elif found.version == 0:
        click.echo(f"{found.automation} has no notes.")
    else:
        click.echo(output.plain(found.text))
        click.echo(
            f"\nVersion {found.version}, by {found.written_by}, {output.local_time(found.written_at)}.", err=True
        )


def _at_a_glance(one: "AutomationView") -> dict[str, Any]:
    times = [trigger.next_due_at for trigger in one.triggers if trigger.next_due_at]
    fired = [trigger.last_fired_at for trigger in one.triggers if trigger.last_fired_at]
    run = one.last_run
    begun = [run.started_at] if run is not None and run.started_at else []  # by hand, no trigger was fired
    return {
        "standing": _standing(one),
        "fires": "; ".join(trigger.human_schedule or trigger.kind for trigger in one.triggers),
        "does": _action(one.action),
        "next": _next(times) if times and _standing(one) == "on" else None,
        "fired": max(fired) if fired else None,
        "last": max([*fired, *begun]) if fired or begun else None,
        "result": run.state if run is not None else None,
    }


def _next(times: list[datetime]) -> datetime | str:
    """The first of them; one that has passed is due: at once in a city that runs, else at its start."""
    first = min(times)
    return first if first > SystemClock().now() else "due"


def _standing(one: "AutomationView") -> str:
    if one.problems:
        return "broken"
    if one.skipped:
        return "skipped"
    if one.suspended:
        return "suspended"
    return "on" if one.enabled else "disabled"


def _action(action: Mapping[str, Any] | None, *, whole: bool = False) -> str:
    if action is None:
        return ""
    kind = action["kind"]
    keys = {"exec": ("command", "exec"), "formula": ("formula", "name"), "agent": ("prompt",)}[kind]
    first = str(next((action[key] for key in keys if action.get(key)), ""))
    return f"{kind}: {first if whole else ' '.join(_its_own(first).split())}"


def _its_own(script: str) -> str:
    """A script without the lines that a crontab's jobs begin with, so that their commands can be told apart."""
    before, begins, own = f"\n{script}".rpartition("\ncd\n")
    return own if begins and all(line.startswith("export ") for line in before.split("\n") if line) else script
