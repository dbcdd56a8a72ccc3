"""Connections: made with a secret that is shown once, listed, rotated with an overlap, tested, deleted."""

import asyncio
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lamplighter.domain.access import Verb
from lamplighter.domain.connections.fields import MOST_FIELDS, is_path
from lamplighter.domain.connections.polling import GITHUB, wrong_repo, wrong_url
from lamplighter.domain.connections.reading import TEST as TEST_KEY
from lamplighter.domain.connections.reading import wrong_template
from lamplighter.domain.connections.signatures import SENT_AT, new_secret, signed, wrong_secret
from lamplighter.domain.delivery_fields import SEARCHED, Provider
from lamplighter.domain.secrets import Sealed, SecretUnknown, is_name
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import Conflict, UsageError
from lamplighter.kit.shapes import given
from lamplighter.services.automations import snapshots
from lamplighter.services.context import Context
from lamplighter.services.deliveries.receiving import CURRENT, PREVIOUS, ConnectionUnknown, secret_name, source_of
from lamplighter.services.deliveries.views import DeliveryView, view_of
from lamplighter.services.host import Host
from lamplighter.services.operation import Http, effect, read, transaction
from lamplighter.services.secrets import seal
from lamplighter.store.connections import ConnectionRow
from lamplighter.store.polls import TOPIC as POLLS
from lamplighter.store.polls import PollRow
from lamplighter.store.secrets import SecretRow
from lamplighter.store.tx import Tx

CHANCE = 32
OVERLAP = "24h"
SHOWN = 10
NONE = "none"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class ConnectionTaken(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is already a connection `{name}`.", hint="Choose another name.")


class ConnectionUsed(Conflict):
    def __init__(self, name: str, automations: Sequence[str]) -> None:
        super().__init__(
            f"Connection `{name}` is used by {', '.join(automations)}.",
            hint="Change or delete these automations first.",
        )


@dataclass(frozen=True, kw_only=True)
class PollView:
    """What the city asks its provider for; `problem` says why it learns nothing."""

    repo: str
    api_url: str = given("The address of the provider's API.")
    token_secret: str | None = given("The secret that holds its token; null for that of `gh`.")
    polled_at: datetime | None = given("When it was last answered.")
    next_at: datetime = given("When it asks again.")
    problem: str | None


@dataclass(frozen=True, kw_only=True)
class ConnectionView:
    """Deliveries come in at `path` of the city's address. Its secret is shown only once, when it is made."""

    name: str
    provider: str
    path: str
    title: str | None = given("The template of a delivery's title.")
    authors: Sequence[str] = given("The only authors whose deliveries fire anything; empty for all.")
    own: Sequence[str] = given("The names under which runs of this city act; their deliveries fire nothing.")
    fields: Sequence[str] = given("What runs can be found by, as `payload.FIELD` in a query.")
    created_at: datetime = given("When it was made.")
    created_by: str = given("By whom.")
    rotated_at: datetime | None = given("When it last got a new secret.")
    previous_until: datetime | None = given("How long the secret before that still holds.")
    last_at: datetime | None = given("When something last came in, to the minute.")
    poll: PollView | None = given("What the city asks for itself; null where it only waits for what is sent.")


@dataclass(frozen=True, kw_only=True)
class ConnectionMade(ConnectionView):
    """With its secret, which is not shown again."""

    secret: str = given("What its sender signs with, or shows.")


@dataclass(frozen=True, kw_only=True)
class ConnectionDetail(ConnectionView):
    used_by: Sequence[str] = given("The automations with a trigger for its deliveries, or that list it for their runs.")
    deliveries: Sequence[DeliveryView] = given("What came in last.")


@dataclass(frozen=True)
class ConnectionTested:
    """What the city answered to a signed sample, which fires nothing."""

    name: str
    status: int
    accepted: bool
    answer: str


@dataclass(frozen=True)
class ConnectionDeleted:
    name: str
    deleted: bool = True


@dataclass(frozen=True)
class CreateConnection:
    """Let deliveries come in at /hooks/NAME. Its secret is shown once."""

    name: str = given("Its name, the last part of its address.", positional=True)
    provider: Provider = given("Who sends them.", default=Provider.STANDARD)
    secret: str | None = given("The secret that its sender gave you; a new one is made when left out.", default=None)
    title: str = given("The title of a delivery, such as `{data.repo}: {data.title}`.", default="")
    authors: Sequence[str] = given("An author whose deliveries may fire; those of all when left out.", default=())
    own: Sequence[str] = given("A name under which runs of this city act.", default=())
    fields: Sequence[str] = given("A field, or a path in the payload, by which runs can be found.", default=())
    poll: bool = given("Ask GitHub what happened, for a city that it cannot reach.", default=False)
    repo: str = given("The repository to ask about, as OWNER/NAME.", default="")
    token_secret: str = given("The secret of the city that holds the token; that of `gh` when left out.", default="")
    api_url: str = given("The address of the API, where it is not that of github.com.", default="")


@dataclass(frozen=True)
class ListConnections:
    """Where deliveries come in."""


@dataclass(frozen=True)
class ShowConnection:
    """A connection, with the automations that use it and what came in last."""

    name: str = given("Its name.", positional=True)


@dataclass(frozen=True)
class RotateConnection:
    """Give it a new secret; the one before holds for a while, so that its sender can change over."""

    name: str = given("Its name.", positional=True)
    secret: str | None = given("The new secret, if its sender gave you one.", default=None)
    overlap: str = given("How long the secret before still holds.", default=OVERLAP, metavar="DURATION")


@dataclass(frozen=True)
class TryConnection:
    """Send a signed sample to the running city, as its sender would; it fires nothing."""

    name: str = given("Its name.", positional=True)


@dataclass(frozen=True)
class DeleteConnection:
    """Delete a connection: nothing comes in there any more. Its deliveries stay on record."""

    name: str = given("Its name.", positional=True)


async def create_connection(host: Host, ask: CreateConnection, ctx: Context) -> ConnectionMade:
    """Raises UsageError, ConnectionTaken, KeyUnusable."""
    _check(ask)
    secret = ask.secret or new_secret(ask.provider, secrets.token_bytes(CHANCE))
    _check_secret(ask.provider, secret)
    row = ConnectionRow(
        ask.name, ask.provider, ask.title, tuple(ask.authors), tuple(ask.own), tuple(ask.fields), ctx.now,
        ctx.actor.name,
    )  # fmt: skip
    sealed = await seal(host, secret_name(ask.name, CURRENT), secret)
    poll = PollRow(ask.name, ask.repo, ask.api_url or GITHUB, ask.token_secret, {}, ctx.now) if ask.poll else None
    await host.store.transact(_add, row, sealed, poll, ctx)
    return ConnectionMade(**view(row, poll).__dict__, secret=secret)


def _check(ask: CreateConnection) -> None:
    if ask.name == NONE:
        raise UsageError("`none` cannot be a connection's name: in an automation it stands for no connection.")
    if not _NAME.fullmatch(ask.name):
        raise UsageError(f"{ask.name[:64]!r} cannot be a connection's name.", hint="Use letters, digits, `-` and `_`.")
    if told := wrong_template(ask.title):
        raise UsageError(f"The title `{ask.title}` cannot be used: {told}.")
    if len(ask.fields) > MOST_FIELDS:
        raise UsageError(f"A connection has at most {MOST_FIELDS} fields.", hint="Leave some out.")
    _check_poll(ask)
    for path in ask.fields:
        if not is_path(path):
            raise UsageError(f"`{path}` is not a path in a payload.", hint="Such as `data.repo`.")


def _check_poll(ask: CreateConnection) -> None:
    if not ask.poll:
        if ask.repo or ask.token_secret or ask.api_url:
            raise UsageError("A repository, a token and an address of the API are for polling.", hint="Add --poll.")
        return
    if ask.provider is not Provider.GITHUB:
        raise UsageError("Only GitHub can be polled.", hint="Use --provider github.")
    if told := wrong_repo(ask.repo):
        raise UsageError(f"`{ask.repo[:100]}` is not a repository: {told}.", hint="Name one with --repo.")
    if ask.api_url and (told := wrong_url(ask.api_url)):
        raise UsageError(f"`{ask.api_url[:200]}` cannot be asked: {told}.")


def _check_secret(provider: Provider, secret: str) -> None:
    if told := wrong_secret(provider, secret):
        raise UsageError(f"That cannot be its secret: {told}.", hint="Leave it out, and one is made.")


def _add(tx: Tx, row: ConnectionRow, sealed: Sealed, poll: PollRow | None, ctx: Context) -> None:
    """Raises ConnectionTaken, SecretUnknown."""
    if not tx.connections.add(row):
        raise ConnectionTaken(row.name)
    if poll is not None:
        if poll.token and (not is_name(poll.token) or tx.secrets.get(poll.token) is None):
            raise SecretUnknown(poll.token, [one.name for one in tx.secrets.all() if is_name(one.name)])
        tx.polls.add(poll)
        tx.wake(POLLS)
    tx.secrets.put(_secret_row(secret_name(row.name, CURRENT), sealed, ctx))
    payload = {"provider": row.provider.value}
    tx.events.append(ctx.event("connection.added", subject=row.name, payload=payload))


def _secret_row(name: str, sealed: Sealed, ctx: Context) -> SecretRow:
    who = ctx.actor.name
    return SecretRow(name, sealed.key_id, sealed.nonce, sealed.text, ctx.now, who, ctx.now, who)


def list_connections(tx: Tx, _ask: ListConnections, _ctx: Context) -> list[ConnectionView]:
    polls = {one.connection: one for one in tx.polls.all()}
    return [view(row, polls.get(row.name)) for row in tx.connections.all()]


def show_connection(tx: Tx, ask: ShowConnection, _ctx: Context) -> ConnectionDetail:
    """Raises ConnectionUnknown."""
    row = tx.connections.get(ask.name)
    if row is None:
        raise unknown(tx, ask.name)
    last = tx.deliveries.page(connection=ask.name, before=None, limit=SHOWN)
    verdicts = tx.deliveries.verdicts(one.id for one in last) if last else {}
    used = _used_by(tx, ask.name)
    return ConnectionDetail(
        **view(row, tx.polls.get(row.name)).__dict__,
        used_by=used,
        deliveries=[view_of(one, verdicts.get(one.id, ())) for one in last],
    )


async def rotate_connection(host: Host, ask: RotateConnection, ctx: Context) -> ConnectionMade:
    """Raises UsageError, ConnectionUnknown, SecretLocked for a secret that could not hold for the overlap."""
    try:
        overlap = parse_duration(ask.overlap)
    except ValueError as error:
        raise UsageError(f"`{ask.overlap}` is not a duration.", hint="Such as 24h, or 0s for none.") from error
    row, sealed = await host.store.read(source_of, ask.name, ctx.now)
    secret = ask.secret or new_secret(row.provider, secrets.token_bytes(CHANCE))
    _check_secret(row.provider, secret)
    before: Sealed | None = None
    if overlap > timedelta(0) and sealed:
        value = await asyncio.to_thread(host.secret_box.open, sealed[0].name, sealed[0].sealed)
        before = await seal(host, secret_name(ask.name, PREVIOUS), value)
    new = await seal(host, secret_name(ask.name, CURRENT), secret)
    after, poll = await host.store.transact(_rotate, ask.name, new, before, ctx.now + overlap, ctx)
    return ConnectionMade(**view(after, poll).__dict__, secret=secret)


def _rotate(
    tx: Tx, name: str, new: Sealed, before: Sealed | None, until: datetime, ctx: Context
) -> tuple[ConnectionRow, PollRow | None]:
    if tx.connections.lock(name) is None:
        raise unknown(tx, name)
    tx.secrets.put(_secret_row(secret_name(name, CURRENT), new, ctx))
    if before is None:
        tx.secrets.delete(secret_name(name, PREVIOUS))
    else:
        tx.secrets.put(_secret_row(secret_name(name, PREVIOUS), before, ctx))
    tx.connections.rotated(name, ctx.now, until)
    tx.events.append(ctx.event("connection.rotated", subject=name, payload={"previous_until": until.isoformat()}))
    row = tx.connections.get(name)
    assert row is not None  # noqa: S101  it is locked
    return row, tx.polls.get(name)


async def try_connection(host: Host, ask: TryConnection, ctx: Context) -> ConnectionTested:
    """Raises ConnectionUnknown, SecretLocked, Unavailable where the city does not run."""
    row, sealed = await host.store.read(source_of, ask.name, ctx.now)
    secret = await asyncio.to_thread(host.secret_box.open, sealed[0].name, sealed[0].sealed)
    delivery = ctx.ids.make("tst")
    told = {TEST_KEY: True, "type": "test", "title": "A test of the connection", "id": delivery}
    told |= {SENT_AT: int(ctx.now.timestamp() * 1000)} if row.provider is Provider.LINEAR else {}
    body = json.dumps(told).encode()
    headers = {"content-type": "application/json", "user-agent": "lamplighter"}
    headers |= signed(row.provider, secret, delivery, body, ctx.now)
    headers |= {"x-github-event": "ping", "x-github-delivery": delivery} if row.provider is Provider.GITHUB else {}
    status, answer = await host.knock(ask.name, headers, body)
    return ConnectionTested(ask.name, status, 200 <= status < 300, answer[:500])


def delete_connection(tx: Tx, ask: DeleteConnection, ctx: Context) -> ConnectionDeleted:
    """Raises ConnectionUnknown, ConnectionUsed."""
    if tx.connections.lock(ask.name) is None:
        raise unknown(tx, ask.name)
    used = _used_by(tx, ask.name)
    if used:
        raise ConnectionUsed(ask.name, used)
    tx.connections.delete(ask.name)
    for which in (CURRENT, PREVIOUS):
        tx.secrets.delete(secret_name(ask.name, which))
    tx.events.append(ctx.event("connection.removed", subject=ask.name))
    return ConnectionDeleted(ask.name)


def unknown(tx: Tx, name: str) -> ConnectionUnknown:
    return ConnectionUnknown(name, [row.name for row in tx.connections.all()])


def view(row: ConnectionRow, poll: PollRow | None) -> ConnectionView:
    return ConnectionView(
        name=row.name, provider=row.provider.value, path=f"/hooks/{row.name}", title=row.title or None,
        authors=row.authors, own=row.own, fields=row.fields or SEARCHED[row.provider], created_at=row.created_at,
        created_by=row.created_by, rotated_at=row.rotated_at, previous_until=row.previous_until, last_at=row.last_at,
        poll=None if poll is None else poll_view(poll),
    )  # fmt: skip


def poll_view(poll: PollRow) -> PollView:
    return PollView(
        repo=poll.repo, api_url=poll.url, token_secret=poll.token or None, polled_at=poll.polled_at,
        next_at=poll.next_at, problem=poll.problem or None,
    )  # fmt: skip


def _used_by(tx: Tx, name: str) -> list[str]:
    """The automations with a trigger for its deliveries, and those that list it for their runs."""
    waiting = tx.triggers.of_connection(name)
    rows = list(tx.automations.some(one.automation for one in waiting).values()) if waiting else []
    rows += [row for row in tx.automations.naming(name) if name in snapshots.of_row(row).connections]
    return sorted({row.scoped_name for row in rows})


CREATE = effect("connection.create", Verb.WRITE_CONNECTIONS, CreateConnection, ConnectionMade, create_connection,
                is_secret=True,
                http=Http("POST", "/connections", status=201, location="/connections/{name}"))  # fmt: skip
LIST = read("connection.list", Verb.READ, ListConnections, list[ConnectionView], list_connections,
            http=Http("GET", "/connections"))  # fmt: skip
SHOW = read("connection.show", Verb.READ, ShowConnection, ConnectionDetail, show_connection,
            http=Http("GET", "/connections/{name}"))  # fmt: skip
ROTATE = effect("connection.rotate", Verb.WRITE_CONNECTIONS, RotateConnection, ConnectionMade, rotate_connection,
                is_secret=True, http=Http("POST", "/connections/{name}/rotate"))  # fmt: skip
TEST = effect("connection.test", Verb.WRITE_CONNECTIONS, TryConnection, ConnectionTested, try_connection,
              http=Http("POST", "/connections/{name}/test"))  # fmt: skip
DELETE = transaction("connection.delete", Verb.WRITE_CONNECTIONS, DeleteConnection, ConnectionDeleted,
                     delete_connection, http=Http("DELETE", "/connections/{name}", status=204))  # fmt: skip
