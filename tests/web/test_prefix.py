"""A city below a path of its public address, whether the proxy takes the path off or not."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from served import Served, served
from standardwebhooks.webhooks import Webhook

from lamplighter.adapters.identities.openid import OpenIdProvider, _Provider
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
        page = await client.get("/city/api/v1/runs?limit=1", headers=city.owner)
        assert page.headers["link"].startswith("</city/api/v1/runs?")
        named = [await client.get(f"{below}/api/v1/agents/web%2Fann", headers=city.owner) for below in ("", "/city")]
        assert "web/ann" in named[0].json()["detail"]
        assert named[1].json()["detail"] == named[0].json()["detail"]
        straight = await client.get("/runs", headers={"Host": city.url.removeprefix("http://"), **cookie})
        assert len(bare(straight.text)) > 10  # asked at its own port there is no prefix
        assert (await client.get("/cityruns", headers=city.owner)).status_code == 404


async def test_what_agents_write_is_never_taken_for_a_link(city: Served) -> None:
    summary = 'See <a href="/runs"> and  href="/x'
    await city.complete(city.of_run(), summary_markdown=summary)
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, headers=HOST | city.owner) as client:
        text = (await client.get(f"/city/runs/{city.run}")).text
    assert "&lt;a href=&#34;/runs&#34;&gt;" in text


async def test_a_delivery_comes_in_below_the_prefix_too(city: Served) -> None:
    made = await city.call("POST", "/api/v1/connections", headers=city.owner, body={"name": "shop"})
    secret = made.json()["secret"]
    body, now = b'{"type": "lamp.lit"}', datetime.now(UTC)
    for number, path in enumerate(("/city/hooks/shop", "/hooks/shop")):
        told = {"webhook-id": f"msg_{number}", "webhook-timestamp": str(int(now.timestamp()))}
        told["webhook-signature"] = Webhook(secret).sign(f"msg_{number}", now, body.decode())
        async with httpx2.AsyncClient(base_url=city.url, trust_env=False, headers=HOST) as client:
            assert (await client.post(path, headers=told, content=body)).status_code == 202, path
            assert (await client.get(path)).status_code == 405, path


@pytest.mark.parametrize("below", ["/city", ""], ids=["passed_on", "taken_off"])
async def test_a_provider_sends_the_browser_back_below_the_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    async def known(_self: OpenIdProvider, _issuer: str) -> _Provider:
        return _Provider("https://id.example.org/ask", "https://id.example.org/token", "", "", 0.0)

    monkeypatch.setattr(OpenIdProvider, "_provider", known)
    said = '\n[oidc]\nissuer = "https://id.example.org"\nclient_id = "town"\n'
    async with (
        served(tmp_path / "town", lambda: Reached("127.0.0.1", PUBLIC), more=said) as city,
        httpx2.AsyncClient(base_url=city.url, trust_env=False, headers=HOST) as client,
    ):
        sent = await client.get(f"{below}/sign-in/provider")
    asked = parse_qs(urlsplit(sent.headers["location"]).query)
    assert asked["redirect_uri"] == [f"{PUBLIC}/sign-in/provider/return"]
    assert "Path=/city/sign-in/provider/return" in sent.headers["set-cookie"]
