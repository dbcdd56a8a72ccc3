"""Absurd numbers in addresses and forms are refused in a sentence, or have no effect; none is an error of ours."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from served import Served

from lamplighter.domain.access import owner
from lamplighter.services.inbox import needs
from lamplighter.services.inbox.queries import LIST, ListInbox
from lamplighter.web.console import editor

OWN = {"Sec-Fetch-Site": "same-origin"}
ABSURD = ["9" * 19, "9" * 40, "9" * 5000, "²", "٣", "-1", "1e999", "1" * 400 + ".0", "1.e999", "nan", "0x10", "1_000"]
DATES = ["9999-12-31", "0001-01-01", "2026-13-01", "99999-01-01", "-0001-01-01"]


@pytest.fixture
async def browser(city: Served) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False) as client:
        token = city.owner["Authorization"].removeprefix("Bearer ")
        assert (await client.post("/sign-in", data={"token": token}, headers=OWN)).status_code == 303
        yield client


def right(answer: httpx2.Response) -> bool:
    return answer.status_code < 500


@pytest.mark.parametrize("number", ABSURD)
async def test_in_addresses(browser: httpx2.AsyncClient, city: Served, number: str) -> None:
    made = await browser.post("/bulk/create", data={"action": "cancel", "run": city.run}, headers=OWN)
    assert made.status_code == 303
    for path, name in (("/runs/{run}", "upto"), (made.headers["location"], "after"), ("/events", "since"),
                       ("/automations", "after"), ("/runs", "before"), ("/settings/audit", "before")):  # fmt: skip
        found = await browser.get(path.format(run=city.run), params={name: number})
        assert right(found), (path, name, found.text)


@pytest.mark.parametrize("week", [*DATES, *ABSURD])
async def test_a_week_of_the_calendar(browser: httpx2.AsyncClient, week: str) -> None:
    assert right(await browser.get("/calendar", params={"week": week}))


@pytest.mark.parametrize("number", ABSURD)
async def test_in_small_forms(browser: httpx2.AsyncClient, city: Served, number: str) -> None:
    need = needs.quarantined("mayor", "ses_1", "It crashed five times.", city.opened.clock.now())
    city.opened.store.transact(lambda tx: needs.open_item(tx, need, ctx=city.opened.context()))
    (item,) = await city.operations.do(LIST, ListInbox(), owner("owner"), surface="test")
    for said in ({"times": number}, {"until": number}, {"until": f"{number}h"}, {"until": f"{number}-01-01T00:00Z"}):
        answer = await browser.post(f"/inbox/{item.id}/snooze", data=said, headers=OWN)
        assert answer.status_code in {303, 400}, (said, answer.text)
    notes = {"text": "kept", "version": number}
    assert (await browser.post("/automations/light/notes", data=notes, headers=OWN)).status_code in {303, 409}
    token = {"name": "one", "expires": f"{number}d"}
    assert right(await browser.post("/settings/people/tokens", data=token, headers=OWN))


@pytest.mark.parametrize("number", ABSURD)
async def test_in_every_number_of_the_editor(browser: httpx2.AsyncClient, number: str) -> None:
    """Each alone, so that one that is refused hides no other; then what was stored is shown and changed."""
    numbers = [one.name for _, fields in editor.POLICIES for one in fields if one.kind == "number"]
    plain = {"name": "absurd", "action": "exec", "exec": "true", "enabled": "no", "t0.kind": "manual"}
    forms = [{one: number} for one in numbers]
    forms += [
        {"t0.kind": "daily", "t0.daily.time": f"{number}:00"},
        {"t0.kind": "hourly", "t0.hourly.minute": number},
        {"t0.kind": "cooldown", "t0.cooldown.interval": f"{number}h"},
        {"t0.kind": "event", "t0.event.on": "deploy.*", "t0.event.batch": number},
        {"t0.kind": "cron", "t0.cron.schedule": f"{number} * * * *"},
    ]
    for place, form in enumerate(forms):
        said = plain | {"name": f"absurd{place}"} | form
        for path in ("/automations/new/own/preview", "/automations/new/own"):
            answer = await browser.post(path, data=said, headers=OWN)
            assert right(answer), (path, form, answer.text[:2000])
    for path in ("/automations", "/calendar", "/"):
        assert right(await browser.get(path))
