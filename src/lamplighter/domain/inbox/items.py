"""Inbox items: what needs a person, in one sentence, with the command that would mend it."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from lamplighter.kit.errors import Conflict
from lamplighter.kit.records import record


class Kind(StrEnum):
    NEEDS_HUMAN = "needs_human"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    QUARANTINED = "quarantined"
    WAITING = "waiting"
    DISABLED = "disabled"
    QUIET = "quiet"
    BROKEN = "broken"
    DRAFT = "draft"
    OUTBOX = "outbox"
    CONFIG = "config"
    DESTINATION = "destination"


OF_RUNS = frozenset({Kind.NEEDS_HUMAN, Kind.FAILED, Kind.TIMED_OUT, Kind.SKIPPED})
"""Items that stand for runs: claim, resolve and retry on them are done to those."""
OF_FAILURES = frozenset({Kind.FAILED, Kind.TIMED_OUT, Kind.SKIPPED})
"""Items that a later success of their automation settles."""
OF_AUTOMATIONS = frozenset({Kind.DISABLED, Kind.QUIET, Kind.BROKEN, Kind.DRAFT})
URGENT = frozenset({Kind.NEEDS_HUMAN, Kind.QUARANTINED, Kind.WAITING})
"""Told during quiet hours too, and listed first."""


class State(StrEnum):
    OPEN = "open"
    SETTLED = "settled"


class Shown(StrEnum):
    """The state of an item as people see it."""

    OPEN = "open"
    SNOOZED = "snoozed"
    SETTLED = "settled"


COUNTING = "counting"
"""`told` of an open item that some destination is to know of once it has happened more often."""
BY_ITSELF = frozenset({"succeeded", "mended", "lifted", "unblocked", "enabled", "fired", "delivered"})
"""Ways of settling that nobody had to do to the item itself: these are told as a recovery."""


@record
class InboxItem:
    """`fingerprint` says what it is about: there is one open item of each. `facts` are what its sentence is made from.

    `count`, `first_at`, `last_at` and `last_run` are read off the runs it stands for; a tick keeps them up to date.
    `told` is the state of which destinations were last told, or COUNTING.
    """

    id: str
    kind: Kind
    fingerprint: str
    subject: str
    facts: Mapping[str, Any]
    opened_at: datetime
    first_at: datetime
    last_at: datetime
    state: State = State.OPEN
    count: int = 1
    last_run: str | None = None
    snoozed_until: datetime | None = None
    snoozed_by: str | None = None
    claimed_by: str | None = None
    claimed_at: datetime | None = None
    settled_at: datetime | None = None
    settled_by: str | None = None
    settled_how: str = ""
    told: str = ""
    snoozed_count: int | None = None
    """It is shown again as soon as it has happened so often, however long it would be hidden otherwise."""
    settled_why: str = ""
    """What the person said who dismissed it."""

    def shown(self, now: datetime) -> Shown:
        if self.state is State.SETTLED:
            return Shown.SETTLED
        hidden = self.snoozed_until is not None and self.snoozed_until > now
        recurred = self.snoozed_count is not None and self.count >= self.snoozed_count
        return Shown.SNOOZED if hidden and not recurred else Shown.OPEN

    @property
    def of_runs(self) -> bool:
        return self.kind in OF_RUNS


@record
class Need:
    """Something that needs a person, as whoever finds it describes it; `at` is when it began.

    An item of it that was settled at `since` or later covers it; None for the same as `at`.
    """

    kind: Kind
    fingerprint: str
    subject: str
    at: datetime
    facts: Mapping[str, Any] = field(default_factory=dict)
    run: str | None = None
    since: datetime | None = None

    def item(self, item_id: str, now: datetime) -> InboxItem:
        return InboxItem(item_id, self.kind, self.fingerprint, self.subject, self.facts, now, self.at, self.at,
                         last_run=self.run)  # fmt: skip


@record
class Folded:
    """The runs an item stands for, together."""

    count: int
    first_at: datetime
    last_at: datetime
    last_run: str


class NotDismissed(Conflict):
    def __init__(self, item: "InboxItem") -> None:
        if item.state is State.OPEN:
            super().__init__(f"Inbox item {item.id} is open already.", hint="`lamp inbox` lists what is open.")
            return
        super().__init__(
            f"Inbox item {item.id} was not dismissed, so that it cannot be opened again.",
            hint=f"`lamp inbox show {item.id}` says how it was settled.",
        )


class OpenAgain(Conflict):
    def __init__(self, item: "InboxItem", other: "InboxItem") -> None:
        super().__init__(
            f"What inbox item {item.id} was about has opened item {other.id} since.",
            hint=f"`lamp inbox show {other.id}` shows that one.",
        )


class NotOpen(Conflict):
    def __init__(self, item: InboxItem) -> None:
        by = f" by {item.settled_by}" if item.settled_by else ""
        super().__init__(
            f"Inbox item {item.id} is settled{by}: {how_settled(item)}.", hint="`lamp inbox` lists what is open."
        )


LONGEST_SNOOZE = timedelta(days=366)


def sentence(item: InboxItem) -> str:  # noqa: C901, PLR0911, PLR0912  a table of kinds
    """What is the matter, in one sentence."""
    told, name = item.facts, item.subject
    why = f": {told['error']}" if told.get("error") else ""
    match item.kind:
        case Kind.NEEDS_HUMAN if told.get("plan"):
            return _ended(f"{name} has a plan that waits for approval: {told.get('question', '')}")
        case Kind.NEEDS_HUMAN if told.get("question"):
            return _ended(f"{name} asks: {told['question']}")
        case Kind.NEEDS_HUMAN:
            return f"A run of {name} ended and asks for a person."
        case Kind.FAILED:
            reason = f" ({_spoken(told['reason'])})" if told.get("reason") else ""
            is_said = told.get("error") == f"exit code {str(told.get('reason', '')).removeprefix('exit_')}"
            return _ended(f"{name} failed{_times(item.count)}{reason}{'' if is_said else why}")
        case Kind.TIMED_OUT:
            return _ended(f"{name} ran out of time{_times(item.count)}{why}")
        case Kind.SKIPPED:
            return _ended(f"{name} could not run{_times(item.count)}{why or ': its directory is missing'}")
        case Kind.QUARANTINED:
            return _ended(f"Agent {name} is quarantined{why}")
        case Kind.WAITING:
            return _ended(f"Agent {name} waits at a permission prompt: {told.get('question', '')}")
        case Kind.DISABLED:
            return _ended(f"{name} was disabled, because {told.get('reason') or 'it kept failing'}")
        case Kind.QUIET:
            return _ended(f"{name} has gone quiet: {told.get('message') or 'nothing has fired'}")
        case Kind.BROKEN:
            return _ended(f"The file of {name} cannot be used, so that it fires nothing{why}")
        case Kind.DRAFT:
            return f"An agent proposed the automation {name}; it fires nothing until a person enables it."
        case Kind.OUTBOX:
            return _ended(f"Work was given up{_times(item.count)} ({_spoken(name)}){why}")
        case Kind.CONFIG:
            return _ended(f"The changed configuration is refused, and the one before stays in force{why}")
        case Kind.DESTINATION:
            return _ended(f"Destination {name} takes no notices{why}")


def fix(item: InboxItem) -> str:  # noqa: C901, PLR0911  a table of kinds
    """The command that would mend it, or that leads there."""
    match item.kind:
        case Kind.NEEDS_HUMAN if item.facts.get("plan"):
            return f"lamp run approve {item.last_run}"
        case Kind.NEEDS_HUMAN:
            answer, resolve = f"answer {item.last_run} TEXT", f"resolve {item.last_run} --outcome succeeded"
            return f"lamp run {answer if item.facts.get('answerable') else resolve}"
        case Kind.FAILED if item.facts.get("reason") == "login":
            return "lamp login list"  # it says how to sign in; a retry would only be held for it
        case Kind.FAILED | Kind.TIMED_OUT | Kind.SKIPPED:
            return f"lamp run retry {item.last_run}"
        case Kind.QUARANTINED:
            return f"lamp agent unquarantine {item.subject}"
        case Kind.WAITING:
            return f"lamp agent attach {item.subject}"
        case Kind.DISABLED | Kind.DRAFT:
            return f"lamp automation enable {item.subject}"
        case Kind.QUIET:
            return f"lamp automation explain {item.subject}"
        case Kind.BROKEN:
            return f"lamp automation show {item.subject}"
        case Kind.OUTBOX:
            return f"lamp outbox retry {item.facts.get('item', '')}".rstrip()
        case Kind.CONFIG:
            return "lamp config check"
        case Kind.DESTINATION:
            return f"lamp notify test {item.subject}"


_HOW = {
    "succeeded": "a later run succeeded",
    "mended": "it was mended",
    "lifted": "the quarantine is over",
    "unblocked": "it no longer waits at its prompt",
    "enabled": "it was enabled",
    "disabled": "the automation was disabled, which has an item of its own",
    "fired": "it fired again",
    "delivered": "it was delivered",
    "resolved": "it was resolved",
    "answered": "it was answered",
    "approved": "its plan was approved",
    "amended": "its plan is made anew",
    "rejected": "its plan was rejected",
    "retried": "its runs were retried",
    "dismissed": "it was dismissed",
    "gone": "what it was about is gone",
}


def how_settled(item: InboxItem) -> str:
    return _HOW.get(item.settled_how, item.settled_how)


def _times(count: int) -> str:
    return f" {count} times" if count > 1 else ""


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _spoken(kind: str) -> str:
    return kind.replace("_", " ")
