"""The inbox on pages: items, what is done to them, one at a time, and what takes it back."""

import json
from collections.abc import AsyncIterator

import httpx2
import pytest
from served import Served

from lamplighter.domain.access import owner
from lamplighter.domain.inbox.items import Shown
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.services.inbox import needs
from lamplighter.services.inbox.queries import LIST, ItemView, ListInbox
from lamplighter.services.runs import review
from lamplighter.store.tx import Tx

OWN = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
async def browser(city: Served) -> AsyncIterator[httpx2.AsyncClient]:
    """Signed in as the owner; a run has failed, another asks."""
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False) as client:
        token = city.owner["Authorization"].removeprefix("Bearer ")
        assert (await client.post("/sign-in", data={"token": token}, headers=OWN)).status_code == 303
        await city.complete(city.of_run(), outcome="needs_human", summary_markdown="Which <b>lamp</b>?")
        yield client


async def items(city: Served, state: Shown = Shown.OPEN) -> list[ItemView]:
    return await city.operations.do(LIST, ListInbox(state), owner("owner"), surface="test")


async def test_an_item_is_on_the_start_page_and_opens(browser: httpx2.AsyncClient, city: Served) -> None:
    (one,) = await items(city)
    for path in ("/", "/inbox", "/inbox/focus", f"/inbox/{one.id}"):
        text = (await browser.get(path)).text
        assert "Which &lt;b&gt;lamp&lt;/b&gt;?" in text
        assert "<b>lamp" not in text
    assert "(1) Home" in (await browser.get("/")).text
    assert (await items(city))[0].seen


async def test_home_says_how_many_more_there_are_and_offers_the_safe_button_first(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    def crash(tx: Tx) -> None:
        ctx = city.opened.context()
        for number in range(9):
            need = needs.quarantined(f"watchman-{number}", f"ses_{number}", "It crashed five times.", ctx.now)
            needs.open_item(tx, need, ctx=ctx)

    city.opened.store.transact(crash)
    text = (await browser.get("/")).text
    assert text.count('<li class="item') == 8
    assert "2 more in the inbox" in text
    (item, *_) = [one for one in await items(city) if one.kind == "quarantined"]
    card = text.partition(f'id="item-{item.id}"')[2].partition("</li>")[0]
    assert f'<a class="button main" href="/inbox/{item.id}">Open</a>' in card
    assert "<button>Clear its crashes and start it</button>" in card


async def test_a_dismissal_has_a_reason_and_is_undone(browser: httpx2.AsyncClient, city: Served) -> None:
    (one,) = await items(city)
    gone = await browser.post(
        f"/inbox/{one.id}/dismiss", data={"why": "expected", "reason": "until Monday", "next": "/"}, headers=OWN
    )
    assert gone.status_code == 303
    assert await items(city) == []
    page = (await browser.get("/")).text
    assert f'action="/inbox/{one.id}/reopen"' in page
    assert "expected: until Monday" in (await browser.get("/inbox?state=settled")).text
    assert "expected: until Monday" in (await browser.get(f"/inbox/{one.id}")).text
    undone = await browser.post(f"/inbox/{one.id}/reopen", data={"next": "/inbox/focus"}, headers=OWN)
    assert undone.headers["location"] == "/inbox/focus"
    (again,) = await items(city)
    assert (again.id, again.settled_why) == (one.id, None)
    twice = await browser.post(f"/inbox/{one.id}/reopen", data={}, headers=OWN)
    assert twice.status_code == 409
    assert "is open already" in twice.text


async def test_snoozed_until_it_happens_again(browser: httpx2.AsyncClient, city: Served) -> None:
    (one,) = await items(city)
    assert (await browser.post(f"/inbox/{one.id}/snooze", data={"times": "x"}, headers=OWN)).status_code == 400
    said = await browser.post(f"/inbox/{one.id}/snooze", data={"times": "1", "next": "/"}, headers=OWN)
    assert said.status_code == 303
    assert await items(city) == []
    assert "back when it has happened once more" in (await browser.get("/inbox?state=snoozed")).text
    await city.call(
        "POST", f"/api/v1/runs/{city.other}/complete", headers=city.of_run(city.other),
        body={"completion_id": completion_id(city.other), "outcome": "needs_human", "summary_markdown": "And now?"},
    )  # fmt: skip
    assert city.other in {run for item in await items(city) for run in item.runs}


async def test_all_are_marked_as_seen(browser: httpx2.AsyncClient, city: Served) -> None:
    (one,) = await items(city)
    assert "Mark all seen" in (await browser.get("/")).text
    done = await browser.post("/inbox/see-all", data={"next": "/"}, headers=OWN)
    assert done.headers["location"] == "/"
    page = (await browser.get("/")).text
    assert "1 marked as seen." in page
    assert 'class="item unseen"' not in page
    assert f'id="item-{one.id}"' in page


async def test_claim_and_its_undoing(browser: httpx2.AsyncClient, city: Served) -> None:
    (one,) = await items(city)
    done = await browser.post(f"/inbox/{one.id}/claim", data={"next": "/inbox/focus"}, headers=OWN)
    assert (done.status_code, done.headers["location"]) == (303, "/inbox/focus")
    assert (await items(city))[0].claimed_by == "owner"
    text = (await browser.get("/inbox/focus")).text
    assert f'action="/inbox/{one.id}/unclaim"' in text
    assert 'data-key="z"' in text
    await browser.post(f"/inbox/{one.id}/unclaim", headers=OWN)
    assert (await items(city))[0].claimed_by is None


async def test_snooze_and_its_undoing(browser: httpx2.AsyncClient, city: Served) -> None:
    (one,) = await items(city)
    await browser.post(f"/inbox/{one.id}/snooze", data={"until": "1d", "next": "/"}, headers=OWN)
    assert await items(city) == []
    page = (await browser.get("/")).text
    assert "Nothing needs you." in page
    assert f'action="/inbox/{one.id}/unsnooze"' in page
    assert one.id in (await browser.get("/inbox?state=snoozed")).text
    await browser.post(f"/inbox/{one.id}/unsnooze", headers=OWN)
    assert [found.id for found in await items(city)] == [one.id]
    wrong = await browser.post(f"/inbox/{one.id}/snooze", data={"until": "whenever"}, headers=OWN)
    assert (wrong.status_code, "whenever" in wrong.text) == (400, True)


@pytest.mark.parametrize(
    ("outcome", "state"), [("succeeded", "succeeded"), ("failed", "failed"), ("<nonsense>", "succeeded")]
)
async def test_resolve_keeps_its_reason(browser: httpx2.AsyncClient, city: Served, outcome: str, state: str) -> None:
    (one,) = await items(city)
    form = {"outcome": outcome, "reason": "the left one", "next": "/inbox/focus"}
    assert (await browser.post(f"/inbox/{one.id}/resolve", data=form, headers=OWN)).status_code == 303
    assert city.row().state.value == state
    assert one.id not in {found.id for found in await items(city)}
    assert "the left one" in (await browser.get(f"/runs/{city.run}")).text


async def test_dismiss_and_retry(browser: httpx2.AsyncClient, city: Served) -> None:
    (one,) = await items(city)
    assert (await browser.post(f"/inbox/{one.id}/retry", data={"next": "/"}, headers=OWN)).status_code == 303
    assert len(await items(city)) <= 1
    for left in await items(city):
        await browser.post(f"/inbox/{left.id}/dismiss", headers=OWN)
    assert await items(city) == []
    text = (await browser.get("/inbox/focus")).text
    assert "Nothing needs you." in text
    assert one.id in (await browser.get("/inbox?state=settled")).text


async def test_a_question_is_answered_in_place(browser: httpx2.AsyncClient, city: Served) -> None:
    (item,) = await items(city)
    page = await browser.get("/")
    assert f'action="/inbox/{item.id}/answer"' in page.text
    assert f'action="/inbox/{item.id}/answer"' in (await browser.get(f"/inbox/{item.id}")).text
    empty = await browser.post(f"/inbox/{item.id}/answer", data={"text": " "}, headers=OWN)
    assert empty.status_code == 400
    done = await browser.post(f"/inbox/{item.id}/answer", data={"text": "The left one."}, headers=OWN)
    assert done.status_code == 303
    assert await items(city) == []
    (settled,) = await items(city, Shown.SETTLED)
    assert settled.settled_how == "it was answered"


async def test_a_question_is_read_and_answered_on_the_page_of_its_run(city: Served) -> None:
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False) as client:
        token = city.owner["Authorization"].removeprefix("Bearer ")
        assert (await client.post("/sign-in", data={"token": token}, headers=OWN)).status_code == 303
        asked = {
            "completion_id": completion_id(city.run), "question": "Which <b>lamp</b>?", "choices": ["left", "right"],
            "without_answer": "Both stay dark.", "summary_markdown": "Looked around.",
        }  # fmt: skip
        await city.call("POST", f"/api/v1/runs/{city.run}/ask", headers=city.of_run(), body=asked)
        (item,) = await items(city)
        shown = {path: (await client.get(path)).text for path in ("/", f"/inbox/{item.id}", f"/runs/{city.run}")}
        for text in shown.values():
            for part in ("Which &lt;b&gt;lamp&lt;/b&gt;?", 'value="left"', 'value="right"', "Both stay dark."):
                assert part in text
        page = shown[f"/runs/{city.run}"]
        assert f'action="/runs/{city.run}/answer"' in page
        assert page.index("Which &lt;b&gt;") < page.index("Looked around.")
        assert "Light the lamps." in page  # its prompt
        assert 'id="tell"' not in page  # one place to say something
        assert (await client.post(f"/runs/{city.run}/answer", data={"text": " "}, headers=OWN)).status_code == 400
        done = await client.post(f"/runs/{city.run}/answer", data={"text": "left"}, headers=OWN)
        assert done.headers["location"] == f"/runs/{city.row().continued_by}"
        after = (await client.get(f"/runs/{city.run}")).text
        assert "/answer" not in after
        assert "It was answered" in after
        assert f'action="/runs/{city.run}/retry"' not in after  # it would be refused
        row = f'id="row-{city.run}"'
        everything = (await client.get("/runs?q=state:needs_human")).text
        assert row in everything
        assert "<span>answered</span>" in everything
        assert row not in (await client.get("/runs?q=state:needs_human continued:no")).text
        late = await client.post(f"/runs/{city.run}/answer", data={"text": "right"}, headers=OWN)
        assert late.status_code == 409


async def test_one_can_be_passed_over(browser: httpx2.AsyncClient, city: Served) -> None:
    (one,) = await items(city)
    assert f"/inbox/focus?after={one.id}" in (await browser.get("/inbox/focus")).text
    assert "1 passed over" in (await browser.get(f"/inbox/focus?after={one.id}")).text


async def test_what_cannot_be_seen_of_an_agent_that_asks_is_told(browser: httpx2.AsyncClient, city: Served) -> None:
    def asks(tx: Tx) -> None:
        ctx = city.opened.context()
        needs.open_item(tx, needs.waiting("mayor", "gc-town-mayor", "Do you want to proceed?", ctx.now), ctx=ctx)

    city.opened.store.transact(asks)
    (one,) = [item for item in await items(city) if item.kind == "waiting"]
    assert f'<a class="button main" href="/inbox/{one.id}">Answer</a>' in (await browser.get("/")).text
    text = (await browser.get(f"/inbox/{one.id}")).text
    assert "What its screen shows: unavailable." in text
    assert "Do you want to proceed?" in text
    assert (await browser.post("/agents/mayor/answer", data={"choice": "1"}, headers=OWN)).status_code == 404


async def test_what_is_not_there_is_told(browser: httpx2.AsyncClient) -> None:
    assert (await browser.get("/inbox/inb_nothing")).status_code == 404
    assert (await browser.post("/inbox/inb_nothing/claim", headers=OWN)).status_code == 404
    assert (await browser.get("/inbox?state=gone")).status_code == 400


async def test_what_takes_back_is_a_button_of_ours_whatever_the_cookie_says(browser: httpx2.AsyncClient) -> None:
    for undo in ("/runs/run_1/cancel", "https://evil.example/", "/inbox/inb_1/dismiss", "/inbox/../settings/pause"):
        browser.cookies.set("lamp-said", f"Done.%0A{undo.replace('/', '%2F')}", domain="127.0.0.1", path="/")
        text = (await browser.get("/")).text
        assert "Done." in text
        assert 'id="undo"' not in text


async def test_a_plan_is_read_and_decided_about_on_its_item_and_on_its_run(city: Served) -> None:
    def plans(tx: Tx) -> None:
        body = json.loads(json.dumps(dict(review.get(tx, city.run).definition)))
        body["policies"] = body.get("policies", {}) | {"approve": "plan"}
        sql = "UPDATE runs SET definition = :body WHERE city_id = :city AND id = :id"
        tx.db.execute(sql, {"body": json.dumps(body), "city": tx.city, "id": city.run})

    city.opened.store.transact(plans)
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False) as client:
        token = city.owner["Authorization"].removeprefix("Bearer ")
        assert (await client.post("/sign-in", data={"token": token}, headers=OWN)).status_code == 303
        await city.complete(city.of_run(), outcome="succeeded", summary_markdown="1. Trim <b>it</b>.\n2. Light it.")
        (one,) = await items(city)
        for path in (f"/inbox/{one.id}", f"/runs/{city.run}"):
            text = (await client.get(path)).text
            assert "1. Trim &lt;b&gt;it&lt;/b&gt;.\n2. Light it." in text
            for verb in ("approve", "amend", "reject"):
                assert f"{path}/{verb}" in text
        assert f'action="/inbox/{one.id}/answer"' not in (await client.get("/")).text
        assert (await client.post(f"/inbox/{one.id}/amend", data={"text": " "}, headers=OWN)).status_code == 400
        done = await client.post(f"/runs/{city.run}/approve", data={"text": "Go."}, headers=OWN)
        assert done.status_code == 303
        assert await items(city) == []
        late = await client.post(f"/runs/{city.run}/reject", headers=OWN)
        assert late.status_code == 409
        made = done.headers["location"].partition("?")[0]
        assert "Plan approved by" in (await client.get(made)).text
