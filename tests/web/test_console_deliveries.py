"""Deliveries in the console: listed, shown with the verdict of each trigger, judged again, and reached from a run."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from served import Served, _rules
from test_hooks import connect, send
from test_people import token_of

from lamplighter.domain.access import Role
from lamplighter.domain.delivery.outbox import ItemKind
from lamplighter.services import outbox
from lamplighter.services.automations import editing
from lamplighter.services.deliveries import processing
from lamplighter.store.tx import Tx

OWN = {"Sec-Fetch-Site": "same-origin"}
SENT = {"type": "lamp.out", "title": "<b>The lamp</b> is out", "password": "hunter2-in-a-body", "data": {"lamp": 7}}


@asynccontextmanager
async def signed_in(city: Served, headers: dict[str, str]) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=180) as client:
        token = headers["Authorization"].removeprefix("Bearer ")
        assert (await client.post("/sign-in", data={"token": token}, headers=OWN)).status_code == 303
        yield client


@pytest.fixture
async def browser(city: Served) -> AsyncIterator[httpx2.AsyncClient]:
    async with signed_in(city, city.owner) as client:
        yield client


async def deliver(city: Served, **more: Any) -> str:
    """One that fires `fix` and that `other` filters; its id, once it was judged."""
    token = await connect(city, "plain", provider="bearer")
    for name, types in (("fix", ["lamp.out"]), ("other", ["lamp.lit"])):
        made = {"name": name, "gate": "webhook", "connection": "plain", "events": types, "exec": "true"}
        city.opened.store.transact(editing.create, made, rules=_rules(city.opened), ctx=city.opened.context())
    sent = await send(city, {"authorization": f"Bearer {token}"}, json.dumps(SENT | more).encode(), "plain")
    city.opened.store.transact(judge, city)
    return str(sent.json()["id"])


def judge(tx: Tx, city: Served) -> int:
    """As the dispatcher does; how many there were."""
    ctx = city.opened.context()
    items = outbox.claim_due(tx, "own_test", ctx.now, limit=100)
    mine = [item for item in items if item.kind == ItemKind.PROCESS_DELIVERY]
    for item in mine:
        processing.process(tx, item, rules=_rules(city.opened), ctx=ctx)
    return len(mine)


async def test_a_delivery_is_listed_and_shown_with_its_verdicts_and_nothing_sent_becomes_markup(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    delivery = await deliver(city)
    (run,) = [one.id for one in city.opened.store.read(lambda tx: tx.runs.page(limit=10)) if one.automation == "fix"]
    listed = (await browser.get("/deliveries?connection=plain")).text
    assert f'href="/deliveries/{delivery}"' in listed
    assert f'href="/runs/{run}"' in listed
    shown = (await browser.get(f"/deliveries/{delivery}")).text
    for text in (f'href="/runs/{run}"', "fired", "filtered", "lamp.lit", "&lt;b&gt;The lamp&lt;/b&gt;"):
        assert text in shown, text
    for text in ("<b>The lamp", "hunter2-in-a-body", "Bearer"):
        assert text not in listed + shown, text
    assert f'href="/deliveries/{delivery}"' in (await browser.get(f"/runs/{run}")).text


async def test_one_is_judged_again_by_those_who_may_and_what_fired_fires_no_more(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    delivery = await deliver(city)
    again = await browser.post(f"/deliveries/{delivery}/replay", headers=OWN)
    assert (again.status_code, again.headers["location"]) == (303, f"/deliveries/{delivery}")
    assert city.opened.store.transact(judge, city) == 1
    runs = [one for one in city.opened.store.read(lambda tx: tx.runs.page(limit=10)) if one.automation == "fix"]
    assert len(runs) == 1
    async with signed_in(city, token_of(city, Role.MEMBER)) as member:
        assert "A member may not write connections" in (await member.get(f"/deliveries/{delivery}")).text
        assert (await member.post(f"/deliveries/{delivery}/replay", headers=OWN)).status_code == 403


async def test_two_deliveries_are_compared_line_by_line(browser: httpx2.AsyncClient, city: Served) -> None:
    proof = {"authorization": f"Bearer {await connect(city, 'plain', provider='bearer')}"}
    sent = [
        (await send(city, proof, json.dumps(SENT | {"data": {"lamp": number}}).encode(), "plain")).json()["id"]
        for number in (7, 8)
    ]
    first, second = map(str, sent)
    page = (await browser.get(f"/deliveries/{second}")).text
    assert page.count("<option value=") == 2  # none, and the one before at the same connection
    compared = (await browser.get(f"/deliveries/{second}?with={first}")).text
    assert '<li class="line-del">-    &#34;lamp&#34;: 7</li>' in compared
    assert '<li class="line-add">+    &#34;lamp&#34;: 8</li>' in compared
    assert "Their bodies are the same." in (await browser.get(f"/deliveries/{second}?with={second}")).text
    assert "unavailable" in (await browser.get(f"/deliveries/{second}?with=dlv_none")).text


async def test_without_a_connection_the_page_says_how_to_make_one(browser: httpx2.AsyncClient, city: Served) -> None:
    assert "lamp connection create" in (await browser.get("/deliveries")).text
    await connect(city, "plain", provider="bearer")
    found = (await browser.get("/deliveries?connection=plain")).text
    assert "Nothing came in at plain" in found
    assert (await browser.get("/deliveries/dlv_none")).status_code == 404


async def test_a_large_body_is_cut_and_says_so(browser: httpx2.AsyncClient, city: Served) -> None:
    delivery = await deliver(city, much="x" * 200_000)
    shown = (await browser.get(f"/deliveries/{delivery}")).text
    assert "more characters" in shown
    assert len(shown) < 120_000
