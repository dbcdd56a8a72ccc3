"""Signing in to the console at a real OpenID provider (npm `oidc-provider`), as a browser does."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import pytest
from served import Served, served

from lamplighter.adapters.identities import openid
from lamplighter.domain.access import Role
from lamplighter.store.members import MemberRow
from lamplighter.web.listening import bound

pytestmark = pytest.mark.agents

MODULES = Path(sys.prefix) / "agents" / "node_modules"
SECRET = "s" * 40
ADA = "ada@example.org"


class Browser:
    """Follows redirects across the two, and keeps the cookies of each."""

    def __init__(self) -> None:
        self.client = httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=30)

    async def go(self, address: str, form: dict[str, str] | None = None) -> httpx2.Response:
        answer = await (self.client.get(address) if form is None else self.client.post(address, data=form))
        while answer.status_code in (302, 303):
            address = urljoin(str(answer.url), answer.headers["location"])
            if self.stops(address):
                return answer
            answer = await self.client.get(address)
        return answer

    stops: Callable[[str], bool] = staticmethod(lambda _address: False)

    async def sign_in(self, city: str, who: str, wanted: str = "/runs") -> httpx2.Response:
        page = await self.go(f"{city}/sign-in/provider?next={wanted}")
        while 'name="prompt"' in page.text:
            [prompt] = re.findall(r'name="prompt" value="(\w+)"', page.text)
            [action] = re.findall(r'action="([^"]+)"', page.text)
            form = {"prompt": prompt} | ({"login": who, "password": "x"} if prompt == "login" else {})
            page = await self.go(urljoin(str(page.url), action), form)
        return page

    async def close(self) -> None:
        await self.client.aclose()


@asynccontextmanager
async def a_city(root: Path, secret: str = "", more: str = "") -> AsyncIterator[Served]:
    """A city, and the provider that knows it; both on loopback."""
    with bound("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    returns_to = f"http://127.0.0.1:{port}/sign-in/provider/return"
    script = Path(__file__).with_name("openid_provider.mjs")
    provider = await asyncio.create_subprocess_exec(
        MODULES / "node" / "bin" / "node", script, MODULES, secret, returns_to,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert provider.stdout is not None
        issuer = (await provider.stdout.readline()).decode().strip()
        said = f'\n[oidc]\nissuer = "{issuer}"\nclient_id = "town"\n{more}'
        if secret:
            said += 'client_secret = "secret:OIDC"\n'
        async with served(root, more=said, port=port) as city:
            if secret:
                kept = await city.call("PUT", "/api/v1/secrets/OIDC", headers=city.owner, body={"secret": secret})
                assert kept.is_success, kept.text
            yield city
    finally:
        provider.kill()
        await provider.wait()


def join(city: Served, name: str, role: Role = Role.MEMBER) -> None:
    now = city.opened.clock.now()
    assert city.opened.store.transact(lambda tx: tx.members.add(MemberRow(name, role, now, "ada")))


@pytest.mark.parametrize("secret", [SECRET, ""], ids=["with_a_secret", "public"])
async def test_a_member_signs_in_at_a_provider_and_out_by_the_token(tmp_path: Path, secret: str) -> None:
    async with a_city(tmp_path / "town", secret) as city:
        browser = Browser()
        try:
            page = await browser.go(f"{city.url}/sign-in")
            assert "Sign in at 127.0.0.1" in page.text
            refused = await browser.sign_in(city.url, ADA)
            assert (refused.status_code, f"lamp member add {ADA}" in refused.text) == (403, True)
            join(city, ADA)
            page = await browser.sign_in(city.url, ADA)
            assert (page.status_code, page.url.path) == (200, "/runs"), page.text
            (token,) = (await city.call("GET", "/api/v1/tokens", headers=city.owner)).json()["data"]
            assert (token["member"], token["name"], token["ending"]) == (ADA, "browser", "none")
            (entry, *_) = (await city.call("GET", "/api/v1/audit", headers=city.owner)).json()["data"]
            assert (entry["operation"], entry["actor"], entry["surface"]) == ("member.sign-in", ADA, "web")
            revoke = f"/api/v1/tokens/{token['id']}/revoke"
            assert (await city.call("POST", revoke, headers=city.owner)).is_success
            assert (await browser.go(f"{city.url}/runs")).url.path == "/sign-in"
        finally:
            await browser.close()


async def test_who_has_a_verified_address_of_a_domain_becomes_a_member(tmp_path: Path) -> None:
    async with a_city(tmp_path / "town", more='domains = ["example.org"]\n') as city:
        for who, status in ((ADA, 200), ("ann@example.org.evil.net", 403), ("unverified@example.org", 401)):
            browser = Browser()
            assert (await browser.sign_in(city.url, who)).status_code == status, who
            await browser.close()
        found = (await city.call("GET", "/api/v1/members", headers=city.owner)).json()["data"]
        assert [(one["name"], one["role"]) for one in found if "@" in one["name"]] == [(ADA, "member")]


async def test_a_code_is_good_once_and_only_in_the_browser_that_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_city(tmp_path / "town") as city:
        join(city, ADA)
        mine, other = Browser(), Browser()
        mine.stops = lambda address: "/sign-in/provider/return" in address
        try:
            stopped = await mine.sign_in(city.url, ADA)
            back = stopped.headers["location"]
            assert parse_qs(urlsplit(back).query)["code"]
            assert (await other.go(back)).status_code == 401, "it was another browser that began"
            assert (await mine.go(f"{city.url}/sign-in")).status_code == 200
            mine.stops = Browser.stops
            assert (await mine.go(back)).status_code == 401, "the sign-in has ended with the first return"
            verified = openid._verified

            def other_nonce(token: str, keys: object, client: object, _nonce: str) -> object:
                return verified(token, keys, client, "another")  # type: ignore[arg-type]

            monkeypatch.setattr(openid, "_verified", other_nonce)
            page = await mine.sign_in(city.url, ADA)
            assert (page.status_code, "not for this sign-in" in page.text) == (401, True)
        finally:
            await mine.close()
            await other.close()


async def test_a_provider_that_is_away_is_told_and_other_ways_stay(tmp_path: Path) -> None:
    gone = '\n[oidc]\nissuer = "http://127.0.0.1:9"\nclient_id = "town"\n'
    async with served(tmp_path / "town", more=gone) as city:
        page = await city.call("GET", "/sign-in/provider")
        assert (page.status_code, "cannot be asked now" in page.text) == (503, True)
    async with served(tmp_path / "other") as city:
        assert (await city.call("GET", "/sign-in/provider")).status_code == 404
        assert "Sign in at" not in (await city.call("GET", "/sign-in")).text
