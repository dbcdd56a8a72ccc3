"""Taking over the jobs of other programs: each becomes a stored automation."""

from collections.abc import Sequence
from dataclasses import dataclass

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.crontab import CronJob, read_crontab
from lamplighter.kit.shapes import given
from lamplighter.services.automations import editing, snapshots
from lamplighter.services.automations.editing import DefinitionInvalid
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Need, transaction
from lamplighter.store.tx import Tx

SOURCE = "import"


@dataclass(frozen=True)
class ImportCron:
    """Take over a crontab line by line: each line becomes a stored automation, and what cannot be carried is told.

    A line that was taken over before is left as it is. The crontab itself is never changed.
    """

    text: str = given("The text of the crontab.")
    enable: bool = given("Enable them at once; otherwise a person does, one by one.", default=False)
    system: bool = given("Each line has a user's name after the times, as in /etc/crontab.", default=False)


@dataclass(frozen=True)
class ImportedLine:
    line: int
    name: str
    """The automation's."""
    schedule: str
    command: str
    """What it runs, with what cron would have set."""
    new: bool
    """False if it was taken over before."""
    notes: list[str]
    """What is different now."""


@dataclass(frozen=True)
class LeftLine:
    line: int
    text: str
    why: str


@dataclass(frozen=True)
class CronImported:
    taken: list[ImportedLine]
    left: list[LeftLine]
    enabled: bool


def import_cron(tx: Tx, ask: ImportCron, ctx: Context) -> CronImported:
    jobs, left = read_crontab(ask.text, system=ask.system)
    told = [LeftLine(one.number, one.line, one.why) for one in left]
    taken = []
    for job in jobs:
        try:
            taken.append(_taken(tx, job, ctx, enabled=ask.enable))
        except DefinitionInvalid as error:
            told.append(LeftLine(job.number, job.line, error.message))
    return CronImported(taken, sorted(told, key=lambda one: one.line), ask.enable)


def _taken(tx: Tx, job: CronJob, ctx: Context, *, enabled: bool) -> ImportedLine:
    body, number = job.body(enabled=enabled), 1
    while (row := tx.automations.named(str(body["name"]))) is not None:
        if row.definition is not None and snapshots.of_row(row).description == job.description:
            return _line(job, str(body["name"]), new=False)
        number += 1
        body["name"] = f"{job.name}-{number}"
    row = editing.create(tx, body, source=SOURCE, rules=ctx.rules, ctx=ctx)
    return _line(job, row.scoped_name, new=True)


def _line(job: CronJob, name: str, *, new: bool) -> ImportedLine:
    notes: Sequence[str] = job.notes if new else [*job.notes, "it was taken over before and is left as it is"]
    return ImportedLine(job.number, name, job.schedule, job.exec, new, list(notes))


IMPORT_CRON = transaction(
    "import.cron", Verb.WRITE_AUTOMATIONS, ImportCron, CronImported, import_cron, needs=Need.DEFINITIONS,
    http=Http("POST", "/imports/cron"),
)  # fmt: skip
