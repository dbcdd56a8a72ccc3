"""Keys, versions and rates over HTTP."""

import asyncio

from served import Served

from lamplighter.web.errors import TooMany
from lamplighter.web.rates import Rates

API = "/api/v1"
CREATE = {"name": "a", "gate": "manual", "action": {"kind": "exec", "command": "true"}}


async def test_a_create_with_a_key_is_repeated_without_a_second_effect(city: Served) -> None:
    headers = city.owner | {"Idempotency-Key": "7f"}
    first = await city.call("POST", f"{API}/beads", headers=headers, body={"title": "Oil"})
    again = await city.call("POST", f"{API}/beads", headers=headers, body={"title": "Oil"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert first.headers["location"] == again.headers["location"]
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    other = await city.call("POST", f"{API}/beads", headers=headers, body={"title": "Wick"})
    assert (other.status_code, other.json()["title"]) == (422, "KeyReused")


async def test_the_path_is_part_of_what_a_key_stands_for(city: Served) -> None:
    headers = city.owner | {"Idempotency-Key": "7f"}
    assert (await city.call("POST", f"{API}/runs/{city.run}/cancel", headers=headers)).status_code == 200
    assert (await city.call("POST", f"{API}/runs/{city.other}/cancel", headers=headers)).status_code == 422


async def test_many_at_once_with_one_key_make_one(city: Served) -> None:
    headers = city.owner | {"Idempotency-Key": "at once"}
    calls = [city.call("POST", f"{API}/automations/light/run", headers=headers) for _ in range(8)]
    found = await asyncio.gather(*calls)
    assert {one.status_code for one in found} == {201}
    assert len({one.json()["id"] for one in found}) == 1


async def test_a_key_where_it_cannot_be_kept_is_refused(city: Served) -> None:
    headers = city.owner | {"Idempotency-Key": "x"}
    for path in ("/doctor", "/agents/mayor/kill", f"/runs/{city.run}/complete"):
        body = city.completion() if path.endswith("complete") else {}
        found = await city.call("POST", f"{API}{path}", headers=headers, body=body)
        assert (found.status_code, "Idempotency-Key" in found.json()["detail"]) == (400, True)


async def test_an_edit_names_the_version_it_changes(city: Served) -> None:
    made = await city.call("POST", f"{API}/automations", headers=city.owner, body=CREATE)
    path = made.headers["location"]
    tag = (await city.call("GET", path, headers=city.owner)).headers["etag"]
    match = city.owner | {"If-Match": tag}
    assert (await city.call("GET", path, headers=city.owner | {"If-None-Match": tag})).status_code == 304
    changed = await city.call("PATCH", path, headers=match, body={"description": "one"})
    assert (changed.status_code, changed.json()["description"]) == (200, "one")
    stale = await city.call("PATCH", path, headers=match, body={"description": "two"})
    assert (stale.status_code, stale.json()["title"]) == (412, "VersionChanged")
    assert (await city.call("DELETE", path, headers=match)).status_code == 412
    assert (await city.call("GET", path, headers=city.owner | {"If-None-Match": tag})).json()["description"] == "one"
    fresh = (await city.call("GET", path, headers=city.owner)).headers["etag"]
    assert (await city.call("DELETE", path, headers=city.owner | {"If-Match": f'"x", {fresh}'})).status_code == 204


async def test_firing_does_not_change_a_version(city: Served) -> None:
    path = f"{API}/automations/light"
    before = (await city.call("GET", path, headers=city.owner)).headers["etag"]
    assert (await city.call("POST", f"{path}/run", headers=city.owner)).status_code == 201
    assert (await city.call("GET", path, headers=city.owner)).headers["etag"] == before


async def test_a_version_that_is_none_or_not_taken_is_refused(city: Served) -> None:
    for said in ("", "W/", "abc", 'W/"abc"'):
        headers = city.owner | {"If-Match": said}
        found = await city.call("PATCH", f"{API}/automations/light", headers=headers, body={"description": "x"})
        assert found.status_code == 400
    headers = city.owner | {"If-Match": '"x"'}
    assert (await city.call("POST", f"{API}/beads", headers=headers, body={"title": "x"})).status_code == 400


async def test_answers_tell_what_is_left_of_the_rate(city: Served) -> None:
    found = await city.call("GET", f"{API}/runs", headers=city.owner)
    assert found.headers["ratelimit-policy"] == '"token";q=6000;w=60'
    assert found.headers["ratelimit"].startswith('"token";r=5999;t=')
    wrong = await city.call("GET", f"{API}/runs/run_9", headers=city.owner)
    assert wrong.headers["ratelimit"].startswith('"token";r=5998;t=')


def test_a_rate_is_each_actor_s_own_and_starts_anew_after_its_window() -> None:
    now = [100.0]
    rates = Rates(lambda: now[0], most=2, within=60)

    def refused(who: str) -> bool:
        try:
            rates.count(who)
        except TooMany:
            return True
        return False

    assert [refused("a") for _ in range(3)] == [False, False, True]
    assert not refused("b")
    now[0] += 20
    assert rates.headers("a", refused=True) == {
        "RateLimit-Policy": '"token";q=2;w=60', "RateLimit": '"token";r=0;t=40', "Retry-After": "40",
    }  # fmt: skip
    now[0] += 40
    assert not refused("a")
