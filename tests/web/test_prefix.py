"""A city below a path of its public address, whether the proxy takes the path off or not."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from served import Served, served

from lamplighter.web.hosts import Reached
from lamplighter.web.prefix import prefix_of

PUBLIC = "http://lamp.example.org/city"
HOST = {"Host": "lamp.example.org"}
OWN = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
async def city(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path / "town", lambda: Reached("127.0.0.1", PUBLIC)) as made:
        yield made


def bare(text: str) -> list[str]:
    """Paths in a page's links that do not begin with the prefix."""
    found = re.findall(r' (?:href|src|action|formaction)="(/[^"]*)"', text)
    assert found
    return [one for one in found if not one.startswith("/city/")]


def test_the_prefix_is_the_path_of_the_public_address() -> None:
    addresses = ("https://a.org/x/y/", "https://a.org/", "https://a.org", "", "http://[::1")
    assert [prefix_of(one) for one in addresses] == ["/x/y", "", "", "", ""]


async def test_every_link_and_redirect_stays_below_the_prefix(city: Served) -> None:
    token = city.owner["Authorization"].removeprefix("Bearer ")
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, headers=HOST) as client:
        sent = await client.get("/city/runs")
        assert sent.headers["location"] == "/city/sign-in?next=%2Fruns"
        assert bare((await client.get(sent.headers["location"])).text) == []
        done = await client.post("/city/sign-in", data={"token": token, "next": "/runs"}, headers=OWN)
        assert (done.status_code, done.headers["location"]) == (303, "/city/runs")
        cookie = {"Cookie": done.headers["set-cookie"].partition(";")[0]}
        for path in ("/city", "/city/", "/city/runs", f"/city/runs/{city.run}", "/city/settings", "/city/runs/nothing"):
            page = await client.get(path, headers=cookie)
            assert bare(page.text) == [], path
            assert int(page.headers["content-length"]) == len(page.content)
        assert 'data-prefix="/city/"' in (await client.get("/city/", headers=cookie)).text
        style = re.search(r'href="(/city/console/console.css[^"]*)"', (await client.get("/city/", headers=cookie)).text)
        assert style is not None
        assert (await client.get(style[1])).status_code == 200
        taken_off = await client.get("/runs", headers=cookie)  # a proxy that takes the prefix off
        assert bare(taken_off.text) == []
        api = await client.get("/city/api/v1/runs", headers=city.owner)
        assert api.json()["data"]
        straight = await client.get("/runs", headers={"Host": city.url.removeprefix("http://"), **cookie})
        assert len(bare(straight.text)) > 10  # asked at its own port there is no prefix
        assert (await client.get("/cityruns", headers=city.owner)).status_code == 404


async def test_what_agents_write_is_never_taken_for_a_link(city: Served) -> None:
    summary = 'See <a href="/runs"> and  href="/x'
    await city.complete(city.of_run(), summary_markdown=summary)
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, headers=HOST | city.owner) as client:
        text = (await client.get(f"/city/runs/{city.run}")).text
    assert "&lt;a href=&#34;/runs&#34;&gt;" in text
