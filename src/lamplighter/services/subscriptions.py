"""Who wants to be told when a session ends: a destination for each, told once, and again after subscribing again."""

from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.access import Verb
from lamplighter.domain.runs.completion import run_id
from lamplighter.kit.errors import Conflict, NotFound
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.notices import DestinationUnknown
from lamplighter.services.operation import Http, Need, effect, read
from lamplighter.services.session_operations import ShowSession, show_session
from lamplighter.store.subscriptions import Subscription
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host

LISTED = 1000


@dataclass(frozen=True)
class SubscriptionView:
    """`session` is a session, or a run whose next session to end is meant; `notified_at` is when it was told."""

    session: str
    destination: str
    subscriber: str
    subscribed_at: datetime
    queued: bool
    notified_at: datetime | None


@dataclass(frozen=True)
class Subscribe:
    """Have a destination told when a session ends. Subscribing again has it told again."""

    name: str = given(
        "Its id, its name or its agent; a run's id means the next session of the run to end.",
        metavar="SESSION",
        positional=True,
    )
    to: str = given("The destination.")


@dataclass(frozen=True)
class Unsubscribe:
    """Have a destination not told when a session ends."""

    name: str = given("Its id, its name or its agent, or a run's id.", metavar="SESSION", positional=True)
    to: str = given("The destination.")


@dataclass(frozen=True)
class ListSubscriptions:
    """Who is to be told when sessions end, and who was."""


@dataclass(frozen=True)
class Unsubscribed:
    session: str
    destination: str
    was_subscribed: bool


class SessionOver(Conflict):
    def __init__(self, session: str) -> None:
        super().__init__(
            f"Session {session} has ended already.", hint="`lamp session show` says how; subscribe to one that runs."
        )


async def subscribe(host: "Host", ask: Subscribe, ctx: Context) -> SubscriptionView:
    """Raises NotFound, DestinationUnknown, SessionOver."""
    known = [one.name for one in host.roster.city.notifications.destinations]
    if ask.to not in known:
        raise DestinationUnknown(ask.to, known)
    subject = await _subject(host, ask.name, ctx)
    return await host.store.transact(_subscribe, subject, ask.to, ctx)


def _subscribe(tx: Tx, subject: str, destination: str, ctx: Context) -> SubscriptionView:
    """Its sessions are locked: one that ends at the same moment either is seen here, or sees the subscription."""
    run = None if run_id(subject) is None else tx.runs.get(subject)
    sessions = [one.id for one in tx.sessions.of_run(run.id)] if run is not None else [subject]
    found = [row for row in map(tx.sessions.lock, sessions) if row is not None]
    if run is None and not found:
        raise NotFound(f"There is no session `{subject}`.", hint="`lamp session list --all` shows those there were.")
    if all(row.ended_at is not None for row in found) and (run is None or run.ended):
        raise SessionOver(subject)
    made = Subscription(subject, destination, ctx.actor.name, ctx.now)
    tx.subscriptions.put(made)
    return _view(made)


async def unsubscribe(host: "Host", ask: Unsubscribe, ctx: Context) -> Unsubscribed:
    """Raises NotFound."""
    if await host.store.read(lambda tx: tx.subscriptions.of(ask.name)):
        subject = ask.name  # the session itself may be gone
    else:
        subject = await _subject(host, ask.name, ctx)
    was = await host.store.transact(lambda tx: tx.subscriptions.delete(subject, ask.to))
    return Unsubscribed(subject, ask.to, was)


async def _subject(host: "Host", name: str, ctx: Context) -> str:
    if run_id(name) is not None:
        return name
    return (await show_session(host, ShowSession(name), ctx)).id


def list_subscriptions(tx: Tx, _ask: ListSubscriptions, _ctx: Context) -> list[SubscriptionView]:
    return [_view(one) for one in tx.subscriptions.all(limit=LISTED)]


def _view(one: Subscription) -> SubscriptionView:
    return SubscriptionView(
        one.subject, one.destination, one.subscriber, one.subscribed_at, one.notice is not None, one.notified_at
    )


SUBSCRIBE = effect(
    "session.subscribe", Verb.ANSWER_RUN, Subscribe, SubscriptionView, subscribe, needs=Need.CONFIG,
    http=Http("POST", "/sessions/{name}/subscriptions"),
)  # fmt: skip
UNSUBSCRIBE = effect(
    "session.unsubscribe", Verb.ANSWER_RUN, Unsubscribe, Unsubscribed, unsubscribe,
    http=Http("DELETE", "/sessions/{name}/subscriptions/{to}", status=204),
)  # fmt: skip
SUBSCRIPTIONS = read(
    "session.subscriptions", Verb.READ, ListSubscriptions, list[SubscriptionView], list_subscriptions,
    http=Http("GET", "/subscriptions"),
)  # fmt: skip
