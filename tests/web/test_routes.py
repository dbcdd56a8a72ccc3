"""Conventions of the API over a real socket: lists and their pages, names with slashes, streams, problems, ids."""

import asyncio
import json
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from served import Served

API = "/api/v1"


async def create(city: Served, name: str, **more: Any) -> httpx2.Response:
    body = {"name": name, "gate": "manual", "action": {"kind": "exec", "command": "true"}, **more}
    return await city.call("POST", f"{API}/automations", headers=city.owner, body=body)


async def test_a_list_is_read_page_by_page_until_next_is_null(city: Served) -> None:
    for number in range(5):
        made = await create(city, f"a{number}")
        assert made.status_code == 201
        assert made.headers["location"] == f"{API}/automations/a{number}"
    seen, path = [], f"{API}/automations?limit=2"
    while path:
        found = await city.call("GET", path, headers=city.owner)
        page = found.json()
        assert set(page) == {"data", "next", "more"}
        assert page["more"] == (page["next"] is not None)
        seen += [one["scoped_name"] for one in page["data"]]
        path = f"{API}/automations?limit=2&after={page['next']}" if page["next"] else ""
        if path:
            assert found.links["next"]["url"] == path
    assert seen == ["a0", "a1", "a2", "a3", "a4", "light"]


async def test_runs_go_on_from_next_newest_first(city: Served) -> None:
    first = (await city.call("GET", f"{API}/runs?limit=1", headers=city.owner)).json()
    second = (await city.call("GET", f"{API}/runs?limit=1&after={first['next']}", headers=city.owner)).json()
    assert [one["id"] for one in first["data"] + second["data"]] == sorted([city.run, city.other], reverse=True)
    assert second["next"] is None


async def test_events_without_a_cursor_are_the_newest_and_from_zero_the_oldest(city: Served) -> None:
    newest = (await city.call("GET", f"{API}/events?limit=2", headers=city.owner)).json()
    oldest = (await city.call("GET", f"{API}/events?limit=2&after=0", headers=city.owner)).json()
    numbers = [event.seq for event in city.events()]
    assert [one["seq"] for one in newest["data"]] == numbers[-2:]
    assert (newest["next"], newest["more"]) == (None, True)
    assert [one["seq"] for one in oldest["data"]] == numbers[:2]
    assert oldest["next"] == numbers[1]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [("limit=0", "/limit"), ("limit=x", "/limit"), ("limit=1&limit=2", "/limit"), ("state=odd", "/state"),
     ("naem=x", "/naem"), ("limit=99999999999", "/limit")],
)  # fmt: skip
async def test_a_wrong_parameter_is_pointed_at(city: Served, query: str, pointer: str) -> None:
    found = await city.call("GET", f"{API}/runs?{query}", headers=city.owner)
    assert found.status_code == 400
    assert [one["pointer"] for one in found.json()["errors"]] == [pointer]


async def test_wrong_values_of_a_body_are_pointed_at(city: Served) -> None:
    triggers = [{"kind": "cron", "schedule": "61 * * * *"}]
    body = {"name": "x", "action": {"kind": "exec", "command": "true"}, "triggers": triggers}
    body["policies"] = {"overlap": "odd"}
    found = await city.call("POST", f"{API}/automations", headers=city.owner, body=body)
    assert found.status_code == 400
    pointers = {one["pointer"] for one in found.json()["errors"]}
    assert any(one.startswith("/triggers/0") for one in pointers), pointers
    assert any(one.startswith("/policies/overlap") for one in pointers), pointers
    bead = await city.call("POST", f"{API}/beads", headers=city.owner, body={"labels": [3], "naem": "x"})
    assert {one["pointer"] for one in bead.json()["errors"]} == {"/title", "/labels", "/naem"}


@pytest.mark.parametrize("raw", [b'{"title": "a\\u0000b"}', b'{"title": "\\ud800"}', b'{"title": "x", "a\\u0000": 1}'])
async def test_text_that_no_database_keeps_is_refused(city: Served, raw: bytes) -> None:
    found = await city.call("POST", f"{API}/beads", headers=city.owner, raw=raw)
    assert found.status_code == 400
    assert (await city.call("GET", f"{API}/beads?label=%00", headers=city.owner)).status_code == 400
    assert (await city.call("GET", f"{API}/beads/%00", headers=city.owner)).status_code == 404


async def test_a_slash_within_a_name_is_sent_as_2f(city: Served) -> None:
    for path, told in (("web%2Fpolecat", "web/polecat"), ("web%2flogs", "web/logs"), ("a%252Fb", "a%2Fb")):
        found = await city.call("GET", f"{API}/agents/{path}", headers=city.owner)
        assert found.status_code == 404
        assert f"`{told}`" in found.json()["detail"]
    found = await city.call("GET", f"{API}/agents/web/polecat", headers=city.owner)
    assert (found.status_code, found.json()["type"]) == (404, "http")


async def test_a_post_needs_no_body_where_the_path_says_all(city: Served) -> None:
    found = await city.call("POST", f"{API}/automations/light/disable", headers=city.owner)
    assert (found.status_code, found.json()["enabled"]) == (200, False)


async def test_request_ids_are_taken_over_or_made_and_named_in_problems(city: Served) -> None:
    headers = city.owner | {"X-Request-Id": "mine-7"}
    found = await city.call("GET", f"{API}/runs/run_9", headers=headers)
    assert (found.headers["x-request-id"], found.json()["instance"]) == ("mine-7", "mine-7")
    for said in ("a b", "x" * 65, ""):
        found = await city.call("GET", f"{API}/runs", headers=city.owner | {"X-Request-Id": said})
        assert found.headers["x-request-id"].startswith("req_")
    assert (await city.call("GET", f"{API}/runs")).headers["x-request-id"]  # without a token, too


async def test_the_description_is_served_without_a_token(city: Served) -> None:
    found = await city.call("GET", "/api/openapi.json")
    assert (found.status_code, found.json()["openapi"]) == (200, "3.1.0")
    shown = await city.call("GET", "/api/docs")
    assert shown.status_code == 200
    assert "run.cancel" in shown.text
    assert "script-src" not in shown.headers["content-security-policy"]
    assert "default-src 'none'" in shown.headers["content-security-policy"]


async def items(lines: httpx2.Response) -> list[tuple[str, str, Any]]:
    """The events of a stream that ends: id, kind and data of each."""
    found, one = [], {"id": "", "event": "", "data": ""}
    async for line in lines.aiter_lines():
        if not line:
            if one["data"]:
                found.append((one["id"], one["event"], json.loads(one["data"])))
            one = {"id": "", "event": "", "data": ""}
        elif not line.startswith(":"):
            key, _, value = line.partition(": ")
            one[key] = value
    return found


async def test_a_run_is_watched_to_its_end(city: Served) -> None:
    async with (
        asyncio.timeout(60),
        httpx2.AsyncClient(base_url=city.url, trust_env=False, headers=city.owner, timeout=180) as client,
        client.stream("GET", f"{API}/runs/{city.run}/watch") as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert (await city.complete(city.of_run())).status_code == 200
        seen = await items(answer)
    assert seen[-1][1] == "end"
    assert seen[-2][2]["to"] == "succeeded"


async def test_a_stream_of_what_is_not_there_has_its_status(city: Served) -> None:
    found = await city.call("GET", f"{API}/runs/run_9/watch", headers=city.owner)
    assert (found.status_code, found.json()["type"]) == (404, "not_found")


async def test_a_stream_of_events_goes_on_after_the_last_one_seen(city: Served) -> None:
    numbers = [event.seq for event in city.events()]
    headers = city.owner | {"Last-Event-ID": str(numbers[0])}
    found = await city.call("GET", f"{API}/events/tail?count=2&after=0", headers=headers)
    seen = [line for line in found.text.splitlines() if line.startswith("id: ")]
    assert seen == [f"id: {numbers[1]}", f"id: {numbers[2]}"]


async def test_a_client_that_leaves_a_stream_leaves_nothing_behind(city: Served) -> None:
    before = len(asyncio.all_tasks())
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, headers=city.owner, timeout=180) as client:
        for _ in range(3):
            async with client.stream("GET", f"{API}/events/tail") as answer:
                assert answer.status_code == 200
    async with asyncio.timeout(60):
        while len(asyncio.all_tasks()) > before:
            await city.call("GET", "/healthz")


async def test_runs_are_searched_by_a_query(city: Served) -> None:
    assert (await city.call("POST", f"{API}/runs/{city.run}/cancel", headers=city.owner)).status_code == 200
    for query, expected in (
        ("state:canceled", [city.run]),
        ("-state:canceled automation:li*", [city.other]),
        ("automation:dark", []),
        ("trigger:manual since:1h", sorted([city.run, city.other], reverse=True)),
    ):
        found = await city.call("GET", f"{API}/runs?q={quote(query)}", headers=city.owner)
        assert [one["id"] for one in found.json()["data"]] == expected
    for wrong, word in (("stat:failed", "`state`"), ("payload.repo:x", "payload.repo")):
        found = await city.call("GET", f"{API}/runs?q={wrong}", headers=city.owner)
        assert (found.status_code, found.json()["errors"][0]["pointer"]) == (400, "/q")
        assert word in found.json()["detail"]
    both = await city.call("GET", f"{API}/runs?q=rig:x&state=failed", headers=city.owner)
    assert both.status_code == 400


async def test_a_search_that_stops_tells_where_and_goes_on(city: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamplighter.store.run_lists.MOST_SEARCHED", 1)
    seen, path, pages = [], f"{API}/runs?q=action:agent", 0
    while path:
        found = await city.call("GET", path, headers=city.owner)
        seen += [one["id"] for one in found.json()["data"]]
        pages += 1
        assert found.json()["next"] == found.json().get("searched_to")
        path = found.links["next"]["url"] if "next" in found.links else ""
    assert seen == sorted([city.run, city.other], reverse=True)
    assert pages == 3
