"""`lamp worker`: a process that executes runs, on the controller's machine or on another."""

from pathlib import Path

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand
from lamplighter.kit.errors import UsageError


@click.command("worker", cls=LampCommand, context_settings=CONTEXT)
@click.option(
    "--rig", "rigs", multiple=True, metavar="NAME=PATH",
    help="A rig this worker holds, and where it is here; again for more. All whose directory is here, when left out.",
)  # fmt: skip
@click.option(
    "--name", metavar="NODE", help="The node's name; else what this directory is known by, else the host's name."
)
def worker(rigs: tuple[str, ...], name: str | None) -> None:
    """Run only the run pipeline, on PostgreSQL, beside the city's controller or alone; as many as wanted.

    Stops on Ctrl-C or SIGTERM; its runs under way end as interrupted.
    """
    from lamplighter.app.settings import from_environment
    from lamplighter.app.worker_process import Wanted, Working, run_worker
    from lamplighter.kit import log

    wanted = Wanted(_parsed(rigs), name)
    log.set_up()

    def started(report: Working) -> None:
        node = report.node
        if output.wants_json():
            shown = {"city": report.city, "root": str(report.root), "store": report.store}
            output.record(shown | {"node": node.name, "rigs": list(node.rigs)}, "")
            return
        holds = f"{'rig' if len(node.rigs) == 1 else 'rigs'} {', '.join(node.rigs)}" if node.rigs else "no rigs"
        lit = click.style("A worker is at work", fg="yellow", bold=True)
        click.echo(f"{lit} for city `{report.city}` ({report.root}): node `{node.name}`, {holds}.")
        click.echo(f"Store: {report.store}")
        click.echo("Stop:  Ctrl-C")

    run_worker(from_environment(click.get_current_context().find_root().meta.get("lamp.city")), wanted, started=started)
    if not output.wants_json():
        click.echo("Worker stopped.")


def _parsed(rigs: tuple[str, ...]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for text in rigs:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise UsageError(f"--rig: `{text}` is not NAME=PATH.", hint="For example: --rig web=/srv/web")
        if name in found:
            raise UsageError(f"--rig: `{name}` is given twice.")
        where = Path(path).expanduser().resolve()
        if not where.is_dir():
            raise UsageError(f"--rig: {where} is not a directory.", hint="Clone or mount the project there first.")
        found[name] = where
    return found


def command_for(_name: str) -> click.Command:
    return worker
