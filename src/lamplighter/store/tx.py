"""A transaction as a plain function sees it: the repositories of one city, and the wake-ups it asks for."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from lamplighter.kit.on_demand import load
from lamplighter.store.engine import Db

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.store.agents import Agents
    from lamplighter.store.artifacts import Artifacts
    from lamplighter.store.audit import Audit
    from lamplighter.store.automations import Automations
    from lamplighter.store.beads import Beads
    from lamplighter.store.bulk_actions import BulkActions
    from lamplighter.store.cities import Cities
    from lamplighter.store.clock_moves import ClockMoves
    from lamplighter.store.configurations import Configurations
    from lamplighter.store.connections import Connections
    from lamplighter.store.conversations import Conversations
    from lamplighter.store.cursors import Cursors
    from lamplighter.store.deliveries import Deliveries
    from lamplighter.store.disabled_destinations import DisabledDestinations
    from lamplighter.store.effects import Effects
    from lamplighter.store.events import Events
    from lamplighter.store.idempotency import Idempotency
    from lamplighter.store.inbox import Inbox
    from lamplighter.store.logins import Logins
    from lamplighter.store.looks import Looks
    from lamplighter.store.members import Members
    from lamplighter.store.messages import Messages
    from lamplighter.store.nodes import Nodes
    from lamplighter.store.notes import NotesOf
    from lamplighter.store.notices import Notices
    from lamplighter.store.organizations import Organizations
    from lamplighter.store.outbox import Outbox
    from lamplighter.store.owners import Owners
    from lamplighter.store.polls import Polls
    from lamplighter.store.rollups import Rollups
    from lamplighter.store.rounds import Rounds
    from lamplighter.store.run_days import RunDays
    from lamplighter.store.run_fields import RunFields
    from lamplighter.store.run_gates import RunGates
    from lamplighter.store.runs import Runs
    from lamplighter.store.saved_views import SavedViews
    from lamplighter.store.secrets import Secrets
    from lamplighter.store.sessions import Sessions
    from lamplighter.store.slack import Slack
    from lamplighter.store.subscriptions import Subscriptions
    from lamplighter.store.summary import Summary
    from lamplighter.store.tokens import Tokens
    from lamplighter.store.transcripts import Transcripts
    from lamplighter.store.trigger_events import TriggerEvents
    from lamplighter.store.triggers import Triggers

P = ParamSpec("P")
R = TypeVar("R")

REPOSITORIES = {
    "events": "Events",
    "beads": "Beads",
    "cities": "Cities",
    "owners": "Owners",
    "logins": "Logins",
    "nodes": "Nodes",
    "automations": "Automations",
    "clock_moves": "ClockMoves",
    "triggers": "Triggers",
    "trigger_events": "TriggerEvents",
    "runs": "Runs",
    "rounds": "Rounds",
    "run_days": "RunDays",
    "run_gates": "RunGates",
    "messages": "Messages",
    "notes": "NotesOf",
    "cursors": "Cursors",
    "conversations": "Conversations",
    "outbox": "Outbox",
    "rollups": "Rollups",
    "secrets": "Secrets",
    "sessions": "Sessions",
    "agents": "Agents",
    "artifacts": "Artifacts",
    "configurations": "Configurations",
    "connections": "Connections",
    "deliveries": "Deliveries",
    "polls": "Polls",
    "run_fields": "RunFields",
    "effects": "Effects",
    "inbox": "Inbox",
    "notices": "Notices",
    "idempotency": "Idempotency",
    "members": "Members",
    "organizations": "Organizations",
    "tokens": "Tokens",
    "audit": "Audit",
    "bulk_actions": "BulkActions",
    "saved_views": "SavedViews",
    "looks": "Looks",
    "disabled_destinations": "DisabledDestinations",
    "subscriptions": "Subscriptions",
    "slack": "Slack",
    "summary": "Summary",
    "transcripts": "Transcripts",
}
"""The name of each repository, which is also that of its module, and its class there."""
_WAKING = frozenset({"events", "outbox"})
"""The repositories that ask for wake-ups themselves."""


class Tx:
    """One per connection and city, passed to one function at a time; `take_wakes` clears the wake-ups it asked for.

    A repository is imported when a transaction first uses it, so that a short command loads only what it needs.
    """

    def __init__(self, db: Db, city: str) -> None:
        self.db = db
        self.city = city
        self._wakes: set[str] = set()

    if TYPE_CHECKING:
        events: Events
        beads: Beads
        cities: Cities
        owners: Owners
        logins: Logins
        nodes: Nodes
        automations: Automations
        clock_moves: ClockMoves
        triggers: Triggers
        trigger_events: TriggerEvents
        runs: Runs
        rounds: Rounds
        run_days: RunDays
        run_gates: RunGates
        messages: Messages
        notes: NotesOf
        cursors: Cursors
        conversations: Conversations
        outbox: Outbox
        rollups: Rollups
        secrets: Secrets
        sessions: Sessions
        agents: Agents
        artifacts: Artifacts
        configurations: Configurations
        connections: Connections
        deliveries: Deliveries
        polls: Polls
        run_fields: RunFields
        effects: Effects
        inbox: Inbox
        notices: Notices
        idempotency: Idempotency
        members: Members
        organizations: Organizations
        tokens: Tokens
        audit: Audit
        bulk_actions: BulkActions
        saved_views: SavedViews
        looks: Looks
        disabled_destinations: DisabledDestinations
        subscriptions: Subscriptions
        slack: Slack
        summary: Summary
        transcripts: Transcripts
    else:  # a type checker would otherwise take any name for a repository

        def __getattr__(self, name: str) -> Any:
            kind = REPOSITORIES.get(name)
            if kind is None:
                raise AttributeError(f"a transaction has no {name}")
            wakes = (self._wakes,) if name in _WAKING else ()
            made = load(f"lamplighter.store.{name}:{kind}")(self.db, self.city, *wakes)
            self.__dict__[name] = made
            return made

    def wake(self, topic: str) -> None:
        """Ask for a wake-up of all that wait for `topic`; it is sent once this transaction has committed."""
        self._wakes.add(topic)

    def take_wakes(self) -> frozenset[str]:
        wakes = frozenset(self._wakes)
        self._wakes.clear()
        return wakes


class Store(Protocol):
    """Where a city keeps its state. A transaction function may be run again, so its SQL must be its only effect."""

    @property
    def trouble(self) -> str | None:
        """Why transactions failed lately for want of the database; None if they did not."""
        ...

    def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Run `fn(tx, …)` on a database thread, commit, and return its value.

        A caller cancelled meanwhile gets its CancelledError only after the commit has succeeded or failed; the value or
        error of the transaction is then discarded.
        """
        ...

    def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Run `fn(tx, …)` on a read-only snapshot; it never waits for a writer, and its writes are refused."""
        ...

    def clock_offset(self) -> Awaitable[timedelta]:
        """How far the database's clock is ahead of this machine's."""
        ...

    async def close(self) -> None:
        """Finish what was handed in. The database is closed with the store that opened it, not with others on it."""
        ...


class DirectStore(Protocol):
    """The same transactions without an event loop, for the command line."""

    def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    def close(self) -> None: ...
