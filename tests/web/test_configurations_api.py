"""`/api/v1/configurations` over a real socket, on a real store."""

from typing import Any

import pytest
from served import Served

PATH = "/api/v1/configurations"
SITE: dict[str, Any] = {"name": "site", "description": "The site.", "path": "/srv/site", "env": {"API_TOKEN": "x"}}


async def test_one_is_made_listed_changed_and_deleted(city: Served) -> None:
    made = await city.call("POST", PATH, headers=city.owner, body=SITE)
    assert (made.status_code, made.headers["location"]) == (201, f"{PATH}/site")
    assert (made.json()["source"], made.json()["rig"], made.json()["env"]) == ("api", None, {"API_TOKEN": "•••"})
    listed = await city.call("GET", PATH, headers=city.owner)
    assert [one["name"] for one in listed.json()["data"]] == ["site"]
    changed = await city.call("PATCH", f"{PATH}/site", headers=city.owner, body={"model": "big"})
    assert (changed.status_code, changed.json()["model"], changed.json()["path"]) == (200, "big", "/srv/site")
    gone = await city.call("DELETE", f"{PATH}/site", headers=city.owner)
    assert (gone.status_code, gone.content) == (204, b"")
    assert (await city.call("GET", f"{PATH}/site", headers=city.owner)).status_code == 404
    assert [event.actor for event in city.events() if event.type == "configuration.removed"] == ["owner"]


async def test_a_second_one_of_that_name_is_a_conflict(city: Served) -> None:
    await city.call("POST", PATH, headers=city.owner, body=SITE)
    assert (await city.call("POST", PATH, headers=city.owner, body=SITE)).status_code == 409


async def test_one_in_use_is_a_conflict_that_names_who_uses_it(city: Served) -> None:
    from lamplighter.app.operations import DirectOperations
    from lamplighter.services.automations.operations import CREATE, CreateAutomation

    await city.call("POST", PATH, headers=city.owner, body=SITE)
    body = {"name": "sweep", "gate": "manual", "agent": {"prompt": "Go.", "configuration": "site", "mode": "plan"}}
    DirectOperations(city.opened).do(CREATE, CreateAutomation(body))
    found = await city.call("DELETE", f"{PATH}/site", headers=city.owner)
    assert found.status_code == 409
    assert "sweep" in found.json()["detail"]


@pytest.mark.parametrize(
    ("body", "word"),
    [({"name": "a b"}, "not a name"), ({"name": "x", "rig": "nowhere"}, "not a rig"), ({"naem": "x"}, "`name`")],
)
async def test_what_is_wrong_is_told(city: Served, body: dict[str, Any], word: str) -> None:
    found = await city.call("POST", PATH, headers=city.owner, body=body)
    assert (found.status_code, found.headers["content-type"]) == (400, "application/problem+json")
    assert word in found.json()["detail"]


async def test_a_run_s_token_reaches_none_of_it(city: Served) -> None:
    for method, path in (("GET", PATH), ("POST", PATH), ("GET", f"{PATH}/x"), ("PATCH", f"{PATH}/x"),
                         ("DELETE", f"{PATH}/x")):  # fmt: skip
        body = SITE if method in {"POST", "PATCH"} else None
        assert (await city.call(method, path, headers=city.of_run(), body=body)).status_code == 403
    assert (await city.call("GET", PATH)).status_code == 401


@pytest.mark.parametrize("name", ["..", "a%00b", "é", "x" * 5000])
async def test_a_name_that_is_none_is_not_found(city: Served, name: str) -> None:
    found = await city.call("GET", f"{PATH}/{name}", headers=city.owner)
    assert found.status_code == 404
