"""Bulk actions over HTTP: the routes, and the console's forms for those who may and may not."""

import httpx2
from served import Served
from test_people import token_of

from lamplighter.domain.access import Role

OWN = {"Sec-Fetch-Site": "same-origin"}
API = "/api/v1/bulk-actions"


async def test_a_bulk_action_is_asked_for_followed_and_aborted(city: Served) -> None:
    body = {"action": "cancel", "runs": [city.run, city.other]}
    seen = await city.call("POST", f"{API}/preview", headers=city.owner, body=body)
    assert (seen.status_code, seen.json()["fitting"], seen.json()["states"]) == (200, 2, {"running": 2})
    key = {**city.owner, "Idempotency-Key": "once"}
    made, again = [await city.call("POST", API, headers=key, body=body) for _ in range(2)]
    assert (made.status_code, again.status_code, again.json()["id"]) == (202, 202, made.json()["id"])
    assert again.headers["idempotent-replayed"] == "true"
    where = made.headers["location"]
    assert where == f"{API}/{made.json()['id']}"
    first = (await city.call("GET", f"{where}/results?limit=1", headers=city.owner)).json()
    rest = (await city.call("GET", f"{where}/results?limit=1&after={first['next']}", headers=city.owner)).json()
    assert [one["run"] for page in (first, rest) for one in page["data"]] == [city.run, city.other]
    assert rest["next"] is None
    assert (await city.call("POST", f"{where}/abort", headers=city.owner)).json()["state"] == "aborted"
    assert (await city.call("POST", f"{where}/abort", headers=city.owner)).status_code == 409
    listed = (await city.call("GET", f"{API}?state=aborted", headers=city.owner)).json()["data"]
    assert [one["left"] for one in listed] == [2]
    for wrong in ({"action": "cancel", "q": " "}, {"action": "praise", "q": "state:running"}):
        assert (await city.call("POST", API, headers=city.owner, body=wrong)).status_code == 400, wrong


async def test_a_member_may_not_do_in_bulk_what_they_may_not_do_to_one(city: Served) -> None:
    member = token_of(city, Role.MEMBER)
    body = {"action": "resolve", "runs": [city.run], "outcome": "failed"}
    refused = await city.call("POST", API, headers=member, body=body)
    assert (refused.status_code, "may not resolve run" in refused.text) == (403, True)
    for nobody, status in ((city.of_run(), 403), ({}, 401)):
        body = {"action": "cancel", "runs": [city.run]}
        assert (await city.call("POST", API, headers=nobody, body=body)).status_code == status
    assert (await city.call("POST", API, headers=member, body=body)).status_code == 202


async def test_the_forms_say_what_would_be_done_then_do_it(city: Served) -> None:
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=180) as browser:
        token = city.owner["Authorization"].removeprefix("Bearer ")
        assert (await browser.post("/sign-in", data={"token": token}, headers=OWN)).status_code == 303
        assert f'value="{city.run}"' in (await browser.get("/runs")).text
        chosen = {"q": "", "run": [city.run, city.other], "action": "retry"}
        page = (await browser.post("/bulk", data=chosen, headers=OWN)).text
        assert "Retry 2 runs?" in page
        assert "2 of them are in a state that does not take this" in page
        page = (await browser.post("/bulk", data=chosen | {"q": "state:running", "all": "yes"}, headers=OWN)).text
        assert '<input type="hidden" name="q" value="state:running">' in page
        assert city.run not in page
        for wrong in ({"run": []}, {"action": "praise"}):
            answer = await browser.post("/bulk", data=chosen | wrong, headers=OWN)
            assert answer.status_code == 400, wrong
        made = await browser.post("/bulk/create", data={"q": "state:running", "action": "cancel"}, headers=OWN)
        where = made.headers["location"]
        shown = (await browser.get(where)).text
        assert "0 done, 0 refused, 2 left of 2" in shown
        assert "state:running" in shown
        assert (await browser.post(f"{where}/abort", headers=OWN)).status_code == 303
        assert "Left alone" in (await browser.get(where)).text
        assert (await browser.get("/bulk/nothing")).status_code == 404
