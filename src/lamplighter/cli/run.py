"""`lamp run`: executions of automations."""

import json
from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.base import city, remote, settings
from lamplighter.cli.completing import names
from lamplighter.cli.operations import Subject, carries_out, do, follow
from lamplighter.cli.run_following import exit_as, fire, tell_end, watched
from lamplighter.cli.run_views import (
    amended,
    answered,
    applied,
    approved,
    claimed,
    discarded,
    listed,
    rejected,
    resolved,
    sentence,
    shown,
    shown_diff,
    state_in_words,
    unclaimed,
)
from lamplighter.kit.shapes import to_json

if TYPE_CHECKING:
    from lamplighter.services.runs.following import RunPart

run = Subject(
    "run",
    "Executions of automations.",
    {
        "list": listed,
        "show": shown,
        "explain": output.sentences,
        "diff": shown_diff,
        "apply": applied,
        "discard": discarded,
        "answer": answered,
        "approve": approved,
        "amend": amended,
        "reject": rejected,
        "claim": claimed,
        "unclaim": unclaimed,
        "resolve": resolved,
    },
)
MANY = click.option(
    "--query", metavar="QUERY", help="All runs that fit, as one bulk action, such as `state:failed since:1d`."
)
VERBOSE = click.option("--verbose", "-v", is_flag=True, help="Also each step of the run.")


@run.command("logs")
@click.argument("run_id", metavar="ID", shell_complete=names("run"))
@click.option("--follow", "-f", "follows", is_flag=True, help="Go on showing what comes, through retries to the end.")
@carries_out("run.logs")
def logs(run_id: str, *, follows: bool) -> None:
    """What it printed: all there is while it runs, the kept tail afterwards; of an agent its transcript."""
    from lamplighter.services.runs.logs import SHOW_LOGS, ShowLogs

    if follows and not output.wants_json():
        click.echo(sentence(watched(run_id, verbose=False)), err=True)
        return
    found = do(SHOW_LOGS, ShowLogs(run_id))
    if output.wants_json():
        click.echo(json.dumps(to_json(found)))
    elif found.output:
        output.text(found.output.rstrip("\n"))
    else:
        click.echo("It has printed nothing.", err=True)


@run.command("watch")
@click.argument("run_id", metavar="ID", shell_complete=names("run"))
@VERBOSE
@carries_out("run.watch")
def watch(run_id: str, *, verbose: bool) -> None:
    """Follow a run to its end, through retries: what it prints, says and does; exit 1 unless it succeeded."""
    tell_end(watched(run_id, verbose=verbose))


@run.command("follow")
@click.argument("run_id", metavar="ID", shell_complete=names("run"))
@click.option("--once", is_flag=True, help="End with this run, also if it is tried again.")
@VERBOSE
@carries_out("run.follow")
def follow_run(run_id: str, *, once: bool, verbose: bool) -> None:
    """What a run prints, says and does as it comes; with --json each part as a line. Exit 1 unless it succeeded."""
    from lamplighter.services.runs.following import FOLLOW_RUN, FollowRun
    from lamplighter.services.runs.queries import SHOW_RUN, ShowRun

    if not output.wants_json():
        tell_end(watched(run_id, verbose=verbose, once=once))
        return
    last = do(SHOW_RUN, ShowRun(run_id)).id

    def show(part: "RunPart") -> None:
        nonlocal last
        last = part.run
        click.echo(json.dumps(to_json(part)))

    follow(FOLLOW_RUN, FollowRun(last, once), show)
    exit_as(do(SHOW_RUN, ShowRun(last)))


@run.command("cancel")
@click.argument("run_id", metavar="[ID]", required=False, shell_complete=names("run"))
@MANY
@carries_out("run.cancel")
def cancel(run_id: str | None, query: str | None) -> None:
    """End a run that is under way; with --query each run that fits."""
    from lamplighter.app.inline_run import nobody_ends_it
    from lamplighter.services.runs.operations import CANCEL_RUN, CancelRun

    if run_id is None or query is not None:
        _to_many("cancel", run_id, query)
        return
    ended = do(CANCEL_RUN, CancelRun(run_id))
    text = f"Run {words.short_id(ended.id)} of {ended.automation} {state_in_words(ended.state)}."
    if remote() is None and nobody_ends_it(city(), ended):
        text += " No daemon is up: if its command still runs, the next `lamp up` ends it."
    output.record(to_json(ended), text)


@run.command("complete")
@click.argument("run_id", metavar="[ID]", required=False, shell_complete=names("run"))
@click.option(
    "--outcome", required=True, type=click.Choice(["succeeded", "failed", "needs_human"]), help="How it ended."
)
@click.option("--summary", default="", help="A few lines on what was done and found, in Markdown.")
@click.option("--completion-id", help="As the run's instructions name it; derived from the run when left out.")
@click.option("--citation", "citations", multiple=True, help="A file, link or commit that shows it; may be repeated.")
@click.option("--diff-ref", default="", help="Where the change can be seen.")
@click.option("--test-report-ref", default="", help="Where the results of tests can be seen.")
@click.option("--side-effect-ref", "effects", multiple=True, help="What was changed outside; may be repeated.")
@carries_out("run.complete")
def complete(run_id: str | None, **said: Any) -> None:
    """Report the end of an agent's run; inside a run, of that run. May be repeated with the same words."""
    from lamplighter.domain.runs.prompt import completion_id
    from lamplighter.kit.errors import UsageError
    from lamplighter.services.runs.operations import COMPLETE_RUN

    named = run_id or settings().run
    if not named:
        raise UsageError("No run is named, and this is not a run's session.", hint="Name one: `lamp run complete ID`.")
    ask = COMPLETE_RUN.asked(
        {
            "run_id": named,
            "completion_id": said["completion_id"] or settings().completion(named) or completion_id(named),
            "outcome": said["outcome"],
            "summary_markdown": said["summary"],
            "citations": list(said["citations"]),
            "diff_ref": said["diff_ref"],
            "test_report_ref": said["test_report_ref"],
            "side_effect_refs": list(said["effects"]),
        },
    )
    done = do(COMPLETE_RUN, ask)
    word = "was already recorded" if done.replayed else "is recorded"
    text = f"The completion {word}: run {words.short_id(done.run)} {done.state}."
    output.record(to_json(done), f"{text} {done.message}" if done.message else text)


@run.command("ask")
@click.argument("run_id", metavar="[ID]", required=False)
@click.option("--question", required=True, help="The question, with all that is needed to answer it.")
@click.option("--choice", "choices", multiple=True, help="An answer you propose; may be repeated.")
@click.option("--without-answer", default="", help="What happens if nobody answers.")
@click.option("--summary", default="", help="A few lines on what was done and found so far, in Markdown.")
@carries_out("run.ask")
def ask_person(run_id: str | None, question: str, choices: tuple[str, ...], without_answer: str, summary: str) -> None:
    """Ask a person what an agent's run cannot decide; it ends, and goes on when it is answered."""
    from lamplighter.kit.errors import UsageError
    from lamplighter.services.runs.operations import ASK_PERSON

    named = run_id or settings().run
    if not named:
        raise UsageError("No run is named, and this is not a run's session.", hint="Name one: `lamp run ask ID`.")
    asked = {"run_id": named, "question": question, "choices": list(choices), "without_answer": without_answer}
    done = do(ASK_PERSON, ASK_PERSON.asked(asked | {"summary_markdown": summary}))
    word = "was already asked" if done.replayed else "is asked"
    text = f"The question {word}: run {words.short_id(done.run)} {done.state}. It goes on when a person answers it."
    output.record(to_json(done), text)


@run.command("take")
@click.argument("run_id", metavar="ID", shell_complete=names("run"))
@click.option("--tmux", is_flag=True, help="Open it in a tmux session, which outlives this terminal.")
@carries_out("run.take")
def take(run_id: str, *, tmux: bool) -> None:
    """Take over an agent's run: its program is ended and opened here, in the same conversation and place.

    The run's clock stands until `lamp run give`. With --json nothing is opened; the command line is printed instead.
    """
    from lamplighter.app.taking import in_tmux, need_tmux, open_here, opening, until_yours
    from lamplighter.services.runs.taking import TAKE_RUN, TakeRun

    city()  # its program is opened on this machine: a city elsewhere is refused before anything is done
    if tmux:
        need_tmux()
    taken = do(TAKE_RUN, TakeRun(run_id))
    if tmux and not output.wants_json():
        in_tmux(city(), taken.id, f"lamp-{words.short_id(taken.id)}")
    found = opening(city(), until_yours(city(), taken.id))
    if output.wants_json():
        told = {"run": found.run, "directory": str(found.directory), "command": list(found.command)}
        click.echo(json.dumps(told | {"resumed": found.resumed, "taken_by": taken.taken_by}))
        return
    short = words.short_id(found.run)
    anew = "" if found.resumed else " Its program cannot resume a conversation, so it begins anew."
    click.echo(f"Run {short} is yours, and its clock stands.{anew} `lamp run give {short}` gives it back.", err=True)
    open_here(city(), found)


@run.command("give")
@click.argument("run_id", metavar="ID", shell_complete=names("run"))
@click.argument("text", metavar="[TEXT]", default="")
@carries_out("run.give")
def give(run_id: str, text: str) -> None:
    """Give a run back that a person took: its agent goes on without one, told TEXT, in the same conversation."""
    from lamplighter.app.taking import is_open
    from lamplighter.services.runs.taking import GIVE_RUN, GiveRun

    found = do(GIVE_RUN, GiveRun(run_id, text))
    short = words.short_id(found.id)
    told = f"Run {short} goes on. `lamp run watch {short}` follows it."
    if remote() is None and is_open(city(), found.id):
        told = f"Run {short} goes on as soon as its program is closed here. `lamp run watch {short}` follows it."
    output.record(to_json(found), told)


@run.command("retry")
@click.argument("run_id", metavar="[ID]", required=False, shell_complete=names("run"))
@click.option("--wait", is_flag=True, help="Wait for its end; exit 1 unless it succeeded.")
@MANY
@carries_out("run.retry")
def retry(run_id: str | None, wait: bool, query: str | None) -> None:  # noqa: FBT001  click passes flags by name
    """A new run of the same, linked to the old one; with --query one of each run that fits."""
    from lamplighter.kit.errors import UsageError
    from lamplighter.services.runs.operations import RETRY_RUN, RetryRun

    if wait and query is not None:
        raise UsageError("--wait is for one run.", hint="`lamp bulk show last` says how far a bulk action is.")
    if run_id is None or query is not None:
        _to_many("retry", run_id, query)
        return
    fire(RETRY_RUN, RetryRun(run_id), wait=wait)


def _to_many(action: str, run_id: str | None, query: str | None) -> None:
    """Raises UsageError unless there is a query and no run."""
    from lamplighter.cli.bulk import in_bulk
    from lamplighter.kit.errors import UsageError

    if run_id is not None or query is None:
        raise UsageError(
            "Name a run, or give --query; one of both.", hint=f"`lamp run {action} ID`, or `lamp bulk` for several ids."
        )
    in_bulk(action, query)


def command_for(_name: str) -> click.Command:
    return run
