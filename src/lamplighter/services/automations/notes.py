"""The notes of an automation: what its runs leave for those that come after, and what people tell them all."""

from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.access import Forbidden, Verb
from lamplighter.kit.errors import Conflict, NotFound, UsageError
from lamplighter.kit.shapes import given
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.automations import firing
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, read, transaction
from lamplighter.store.notes import Notes
from lamplighter.store.tx import Tx

LONGEST = 16 * 1024
"""How many bytes notes may have."""
VERSIONS = 50
"""How many versions are kept."""
TOOL = "automation_notes"


@dataclass(frozen=True)
class KeepNotes:
    """Show the notes that runs of an automation hand on, or replace them with --text. Every run gets them as a file.

    A version that was read must be named to write: if somebody wrote meanwhile, nothing is overwritten.
    """

    name: str | None = given(
        "The automation; inside a run, its own when left out.", default=None, positional=True, names="automation"
    )
    text: str | None = given("The new notes, in place of all there were; at most 16 kB.", default=None)
    version: int | None = given("The version that the new notes replace; 0 if there are none yet.", default=None)
    at: int | None = given("Show this version; the last 50 are kept.", default=None)


@dataclass(frozen=True)
class ReadNotes:
    """The notes that runs of an automation hand on, to look at."""

    name: str = given("The automation.", positional=True, names="automation")


@dataclass(frozen=True)
class NotesView:
    """`version` is 0, and `text` empty, where there are none."""

    automation: str
    version: int
    text: str
    written_by: str | None
    written_at: datetime | None


class NotesChanged(Conflict):
    def __init__(self, name: str, version: int, expected: int) -> None:
        super().__init__(
            f"The notes of {name} are at version {version}, not {expected}: somebody wrote meanwhile.",
            hint=f"Read them again, put both together, and write with version {version}.",
        )


class NoSuchNotes(NotFound):
    def __init__(self, name: str, version: int) -> None:
        super().__init__(f"There is no version {version} of the notes of {name}.", hint="The last 50 are kept.")


def keep_notes(tx: Tx, ask: KeepNotes, ctx: Context) -> NotesView:
    """Raises Forbidden for a run that names another automation than its own, NotesChanged, NoSuchNotes, UsageError."""
    automation, name = automation_of(tx, ask.name, ctx, "the notes")
    if ask.text is not None:
        return _view(name, _write(tx, automation, name, ask, ctx))
    if ask.version is not None:
        raise UsageError("`version` goes with `text`: it is what new notes replace.", hint="`at` shows a version.")
    if ask.at is None or ask.at == 0:
        return _view(name, tx.notes.latest(automation))
    found = tx.notes.get(automation, ask.at)
    if found is None:
        raise NoSuchNotes(name, ask.at)
    return _view(name, found)


def read_notes(tx: Tx, ask: ReadNotes, _ctx: Context) -> NotesView:
    """Raises AutomationUnknown."""
    row = tx.automations.named(ask.name)
    if row is None:
        raise firing.unknown(tx, ask.name)
    return _view(row.scoped_name, tx.notes.latest(row.id))


def automation_of(tx: Tx, name: str | None, ctx: Context, what: str) -> tuple[str, str]:
    """The id and name of the automation whose memory is asked for: of a run its own alone. Raises Forbidden."""
    run = ctx.actor.token_run or (ctx.run if name is None else None)
    if run is None:
        if name is None:
            raise UsageError("No automation is named, and this is not a run.", hint="Name one.")
        row = tx.automations.named(name)
        if row is None:
            raise firing.unknown(tx, name)
        return row.id, row.scoped_name
    found = tx.runs.get(run)
    if found is None:
        raise RunUnknown(run)
    if name is not None and name != found.automation:
        raise Forbidden(ctx.actor, f"see {what} of {name}")
    if tx.automations.get(found.automation_id) is None:
        raise NotFound(f"The automation of run {run} is gone.", hint="Nothing can be kept for it.")
    return found.automation_id, found.automation


def _write(tx: Tx, automation: str, name: str, ask: KeepNotes, ctx: Context) -> Notes:
    text = (ask.text or "").strip()
    if ask.at is not None:
        raise UsageError("`at` shows a version; it cannot go with `text`.", hint="`version` is what notes replace.")
    if ask.version is None:
        raise UsageError("`version` is missing.", hint="Name the version you read; 0 if there are no notes yet.")
    size = len(text.encode(errors="surrogatepass"))
    if size > LONGEST:
        raise UsageError(
            f"The notes have {size} bytes; at most {LONGEST} are kept.", hint="Keep what later runs need, in short."
        )
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise UsageError("The notes hold signs that cannot be kept as text.", hint="Write them as UTF-8 text.")
    latest = tx.notes.latest(automation)
    present = 0 if latest is None else latest.version
    if ask.version != present:
        raise NotesChanged(name, present, ask.version)
    made = Notes(automation, present + 1, text, ctx.actor.name, ctx.now)
    if not tx.notes.add(made):  # nothing is locked here: a run's row is, and an automation's would have to come first
        raise NotesChanged(name, made.version, ask.version)
    tx.notes.prune(automation, up_to=made.version - VERSIONS)
    payload = {"version": made.version, "bytes": size}
    tx.events.append(ctx.event("automation.noted", subject=name, message="notes were written", payload=payload))
    return made


def _view(name: str, found: Notes | None) -> NotesView:
    if found is None:
        return NotesView(name, 0, "", None, None)
    return NotesView(name, found.version, found.text, found.written_by, found.written_at)


READ_NOTES = read(
    "automation.read-notes", Verb.READ, ReadNotes, NotesView, read_notes, http=Http("GET", "/automations/{name}/notes")
)
KEEP_NOTES = transaction(
    "automation.notes", Verb.KEEP_NOTES, KeepNotes, NotesView, keep_notes, tool=TOOL,
    http=Http("POST", "/automations/{name}/notes"), patient=True,
)  # fmt: skip
