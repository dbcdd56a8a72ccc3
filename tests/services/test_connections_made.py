"""Connections: what is refused, which secrets hold for how long, and what of them is deleted."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from automation_city import CITY, City

from lamplighter.adapters.files.secret_box import KeyedBox
from lamplighter.domain.connections.fields import MOST_FIELDS
from lamplighter.domain.connections.polling import GITHUB
from lamplighter.domain.delivery_fields import Provider
from lamplighter.domain.secrets import SecretUnknown
from lamplighter.kit.errors import UsageError
from lamplighter.services import connections, secrets
from lamplighter.services.connections import (
    ConnectionTaken,
    ConnectionUsed,
    CreateConnection,
    DeleteConnection,
    ListConnections,
    RotateConnection,
    ShowConnection,
    TryConnection,
)
from lamplighter.services.deliveries.receiving import (
    CURRENT,
    PREVIOUS,
    ConnectionUnknown,
    Received,
    Source,
    keep,
    may_fire_still,
    source_of,
)
from lamplighter.services.host import Host
from lamplighter.store.deliveries import DeliveryRow, Verdict
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.url import open_store

GH = CreateConnection("gh", Provider.GITHUB)
POLLED = replace(GH, poll=True, repo="acme/web")
SECRET = "0123456789abcdef"  # noqa: S105  made up
HOUR, INSTANT = timedelta(hours=1), timedelta(microseconds=1)


@pytest.fixture
async def host(city: City) -> AsyncIterator[Any]:
    store = open_store(city.place, CITY, Wakes())
    made = SimpleNamespace(
        store=store, secret_box=KeyedBox(city.place.runtime, {}, CITY), knocked=[], answer=(202, "ok")
    )

    async def knock(name: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        made.knocked.append((name, headers, body))
        return made.answer

    made.knock = knock
    yield made
    await store.close()


async def create(city: City, host: Any, ask: CreateConnection = GH) -> connections.ConnectionMade:
    return await connections.create_connection(cast("Host", host), ask, city.context)


def kept(city: City) -> dict[str, str]:
    """The secrets on record that no person named, opened."""
    box = KeyedBox(city.place.runtime, {}, CITY)
    rows = city.read(lambda tx: tx.secrets.all())
    return {one.name: box.open(one.name, one.sealed) for one in rows if one.name.startswith("connection/")}


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (replace(GH, name="g h"), "cannot be a connection's name"),
        (replace(GH, name="a" * 65), "cannot be a connection's name"),
        (replace(GH, title="{data.repo"), "cannot be used"),
        (replace(GH, fields=["repo"] * (MOST_FIELDS + 1)), "at most"),
        (replace(GH, fields=["a..b"]), "not a path"),
        (replace(GH, secret="short"), "cannot be its secret"),  # noqa: S106  made up
        (replace(GH, repo="acme/web"), "Add --poll"),
        (replace(GH, token_secret="GH"), "Add --poll"),  # noqa: S106  a name
        (replace(GH, api_url="https://ghe.example"), "Add --poll"),
        (replace(POLLED, provider=Provider.LINEAR), "Only GitHub"),
        (replace(POLLED, repo=""), "not a repository"),
        (replace(POLLED, repo="acme"), "not a repository"),
        (replace(POLLED, api_url="http://ghe.example"), "cannot be asked"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_cannot_work_is_refused_and_nothing_is_made(
    city: City, host: Any, ask: CreateConnection, told: str
) -> None:
    with pytest.raises(UsageError) as refused:
        await create(city, host, ask)
    assert told in f"{refused.value.message} {refused.value.hint}"
    assert (city.read(lambda tx: tx.connections.all()), kept(city)) == ([], {})


async def test_one_is_made_once_with_its_secret_and_asks_its_provider_where_that_is_wished(
    city: City, host: Any
) -> None:
    made = await create(city, host, replace(GH, secret=SECRET))
    assert (made.secret, made.path, made.poll, kept(city)) == (
        SECRET,
        "/hooks/gh",
        None,
        {"connection/gh/current": SECRET},
    )
    with pytest.raises(ConnectionTaken):
        await create(city, host, replace(GH, secret="f" * 16))
    assert kept(city) == {"connection/gh/current": SECRET}
    polled = await create(city, host, replace(POLLED, name="polled", api_url="https://ghe.example/api/v3"))
    assert polled.poll is not None
    assert (polled.poll.repo, polled.poll.api_url, polled.poll.next_at) == (
        "acme/web", "https://ghe.example/api/v3", city.clock.now(),
    )  # fmt: skip
    usual = await create(city, host, replace(POLLED, name="usual"))
    assert usual.poll is not None
    assert (usual.poll.api_url, usual.poll.token_secret) == (GITHUB, None)
    listed = city.do(connections.LIST, ListConnections())
    assert {one.name: one.poll is not None for one in listed} == {"gh": False, "polled": True, "usual": True}
    assert [event.subject for event in city.events("connection.added")] == ["gh", "polled", "usual"]


async def test_a_token_is_a_secret_that_somebody_named(city: City, host: Any) -> None:
    await create(city, host)
    for name in ("GH", "connection/gh/current"):
        with pytest.raises(SecretUnknown):
            await create(city, host, replace(POLLED, name="polled", token_secret=name))
    assert [one.name for one in city.read(lambda tx: tx.connections.all())] == ["gh"]
    await secrets.set_secret(host, secrets.SetSecret("GH", "a-token"), city.context)
    made = await create(city, host, replace(POLLED, name="polled", token_secret="GH"))  # noqa: S106  a name
    assert made.poll is not None
    assert made.poll.token_secret == "GH"  # noqa: S105  a name


def proofs(city: City) -> list[str]:
    _, sealed = city.read(source_of, "gh", city.clock.now())
    return [one.name.rpartition("/")[2] for one in sealed]


async def test_the_secret_before_holds_for_the_overlap_and_no_longer(city: City, host: Any) -> None:
    first = await create(city, host)
    assert proofs(city) == [CURRENT]
    second = await connections.rotate_connection(host, RotateConnection("gh", overlap="1h"), city.context)
    assert second.secret != first.secret
    assert kept(city) == {"connection/gh/current": second.secret, "connection/gh/previous": first.secret}
    assert second.previous_until == city.clock.now() + HOUR
    assert proofs(city) == [CURRENT, PREVIOUS]
    row = city.read(lambda tx: tx.connections.get("gh"))
    both, one = Source(row, [second.secret, first.secret]), Source(row, [second.secret])
    until = city.clock.now() + HOUR
    assert (both.holds(until - INSTANT), both.holds(until), one.holds(until)) == (True, False, True)
    city.clock.advance(HOUR - INSTANT)
    assert proofs(city) == [CURRENT, PREVIOUS]
    city.clock.advance(INSTANT)
    assert proofs(city) == [CURRENT]
    third = await connections.rotate_connection(host, RotateConnection("gh", SECRET, overlap="0s"), city.context)
    assert kept(city) == {"connection/gh/current": third.secret}
    assert proofs(city) == [CURRENT]
    for ask in (RotateConnection("gh", overlap="soon"), RotateConnection("gh", "short")):
        with pytest.raises(UsageError):
            await connections.rotate_connection(host, ask, city.context)
    with pytest.raises(ConnectionUnknown):
        await connections.rotate_connection(host, RotateConnection("hg"), city.context)
    assert kept(city) == {"connection/gh/current": SECRET}


@pytest.mark.parametrize(("status", "accepted"), [(199, False), (200, True), (299, True), (300, False), (401, False)])
async def test_a_test_says_whether_the_city_took_it(city: City, host: Any, status: int, accepted: bool) -> None:  # noqa: FBT001
    await create(city, host)
    host.answer = (status, "x" * 600)
    done = await connections.try_connection(host, TryConnection("gh"), city.context)
    assert (done.status, done.accepted, len(done.answer)) == (status, accepted, 500)
    ((name, headers, _),) = host.knocked
    assert (name, headers["x-github-event"]) == ("gh", "ping")


async def test_one_that_is_used_stays_and_another_takes_its_secrets_with_it(city: City, host: Any) -> None:
    await create(city, host)
    await create(city, host, replace(GH, name="other"))
    await connections.rotate_connection(host, RotateConnection("gh"), city.context)
    city.add("fix", gate="webhook", connection="gh", enabled=False)
    city.add("look", gate="webhook", connection="other")
    assert list(city.do(connections.SHOW, ShowConnection("gh")).used_by) == ["fix"]
    with pytest.raises(ConnectionUsed, match="fix"):
        city.do(connections.DELETE, DeleteConnection("gh"))
    with pytest.raises(ConnectionUnknown):
        city.do(connections.DELETE, DeleteConnection("hg"))
    from lamplighter.services.automations import editing

    city.run(editing.delete, "fix", ctx=city.context)
    city.do(connections.DELETE, DeleteConnection("gh"))
    assert list(kept(city)) == ["connection/other/current"]
    assert [one.name for one in city.read(lambda tx: tx.connections.all())] == ["other"]


@pytest.mark.parametrize(
    ("state", "verdicts", "may"),
    [
        ("waiting", [], False), ("processed", [], True), ("processed", ["fired"], False),
        ("processed", ["fired", "skipped"], True), ("processed", ["duplicate"], True), ("waiting", ["skipped"], False),
    ],
)  # fmt: skip
async def test_what_is_sent_again_is_judged_again_only_where_it_could_still_fire(
    city: City, host: Any, state: str, verdicts: list[str], may: bool  # noqa: FBT001
) -> None:  # fmt: skip
    await create(city, host)
    row = DeliveryRow("dlv_1", "gh", "e1", {}, "{}", city.clock.now())
    assert city.run(keep, row, city.context) == Received("dlv_1")
    items = lambda: city.read(lambda tx: tx.outbox.pending())  # noqa: E731
    assert items() == 1
    city.run(lambda tx: tx.deliveries.processed(replace(row, state=state)))
    for number, verdict in enumerate(verdicts):
        told = Verdict("dlv_1", f"aut_{number}", "webhook", "fix", verdict, "", None, city.clock.now())
        city.run(lambda tx, told=told: tx.deliveries.judge(told))
    assert city.read(may_fire_still, "dlv_1") is may
    assert not city.read(may_fire_still, "dlv_gone")
    assert city.run(keep, replace(row, id="dlv_2"), city.context) == Received("dlv_1", repeated=True)
    assert items() == 1 + may
