"""The console over a real socket: signing in, every page, every button, and what it says when nothing answers."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import Served, served
from test_people import token_of

from lamplighter.domain.access import Role, Verb, owner
from lamplighter.kit.errors import Unavailable
from lamplighter.services.automations import editing
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.runs.turns import told_by
from lamplighter.web.console.app import PAGES
from lamplighter.web.console.visit import HERE
from lamplighter.web.hosts import Reached, is_secure

OWN = {"Sec-Fetch-Site": "same-origin"}
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
READS = ["/", "/inbox", "/inbox/focus", "/runs", "/bulk", "/automations", "/automations/new", "/automations/new/own",
         "/agents", "/calendar", "/cost", "/events", "/beads", "/deliveries", "/nodes", "/settings",
         "/settings/people", "/settings/audit", "/settings/slack/link", "/search"]  # fmt: skip
HEALTHY = (
    "Nothing needs you",
    "No item is open",
    "No run is under way",
    "is-good",
    "has no agents",
    "no automation yet",
)


@pytest.fixture
async def browser(city: Served) -> AsyncIterator[httpx2.AsyncClient]:
    """Signed in as the owner."""
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False) as client:
        token = city.owner["Authorization"].removeprefix("Bearer ")
        done = await client.post("/sign-in", data={"token": token}, headers=OWN)
        assert done.status_code == 303
        yield client


def a_link(city: Served) -> str:
    return f"/sign-in/{city.operations.host.sign_in_link(owner('ada'))[0]}"


# ── signing in ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_without_signing_in_a_page_sends_one_to_do_so_and_back(city: Served) -> None:
    found = await city.call("GET", "/runs?state=failed")
    assert (found.status_code, found.headers["location"]) == (303, "/sign-in?next=%2Fruns%3Fstate%3Dfailed")
    assert (await city.call("GET", "/")).headers["location"] == "/sign-in"
    page = await city.call("GET", found.headers["location"])
    assert page.status_code == 200
    assert 'value="/runs?state=failed"' in page.text


async def test_a_link_signs_in_once(city: Served) -> None:
    link = a_link(city)
    done = await city.call("GET", link)
    assert (done.status_code, done.headers["location"]) == (303, "/")
    (cookie,) = done.headers.get_list("set-cookie")
    name, _, rest = cookie.partition("=")
    assert name == f"lamp-{city.opened.paths.city_id()}"
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(rest.split("; "))
    secret = rest.partition(";")[0]
    page = await city.call("GET", "/", headers={"Cookie": f"{name}={secret}"})
    assert (page.status_code, "ada" in page.text) == (200, True)
    again = await city.call("GET", link)
    assert (again.status_code, "set-cookie" in again.headers) == (401, False)
    assert "used already" in again.text


async def test_looking_ahead_does_not_use_a_link_up(city: Served) -> None:
    link = a_link(city)
    assert (await city.call("HEAD", link)).status_code == 204
    assert (await city.call("GET", link, headers={"Sec-Purpose": "prefetch;prerender"})).status_code == 204
    assert (await city.call("GET", link)).status_code == 303


async def test_over_https_the_cookie_is_bound_to_the_host(tmp_path: Path) -> None:
    async with served(tmp_path / "town", lambda: Reached(public_url="https://lamp.example")) as city:
        done = await city.call("GET", a_link(city), headers={"Host": "lamp.example"})
        (cookie,) = done.headers.get_list("set-cookie")
        assert cookie.startswith(f"__Host-lamp-{city.opened.paths.city_id()}=")
        assert "Secure" in cookie.split("; ")
        secret = {"Cookie": cookie.partition(";")[0]}
        assert (await city.call("GET", "/", headers=secret | {"Host": "lamp.example"})).status_code == 200
        assert (await city.call("GET", "/", headers=secret)).status_code == 303


@pytest.mark.parametrize(
    ("host", "public", "secure"),
    [
        ("lamp.example", "https://lamp.example", True),
        ("lamp.example:443", "https://lamp.example/", True),
        ("lamp.example", "http://lamp.example", False),
        ("127.0.0.1:8470", "https://lamp.example", False),
        ("lamp.example@evil", "https://lamp.example", False),
        (None, "https://lamp.example", False),
        ("lamp.example", "", False),
    ],
)
def test_https_is_what_the_public_address_says(host: str | None, public: str, secure: bool) -> None:  # noqa: FBT001
    assert is_secure(host, Reached(public_url=public)) is secure


async def test_a_token_signs_in_unless_it_is_wrong_or_a_run_s(city: Served) -> None:
    async def sign_in(token: str, headers: dict[str, str] = OWN) -> httpx2.Response:
        async with httpx2.AsyncClient(base_url=city.url, trust_env=False) as client:
            return await client.post("/sign-in", data={"token": token, "next": "/runs"}, headers=headers)

    right = city.owner["Authorization"].removeprefix("Bearer ")
    done = await sign_in(f" {right}\n")
    assert (done.status_code, done.headers["location"]) == (303, "/runs")
    for token in ("", "nonsense", city.of_run()["Authorization"].removeprefix("Bearer ")):
        found = await sign_in(token)
        assert (found.status_code, "set-cookie" in found.headers) == (401, False)
        assert token == "" or token not in found.text
    assert (await sign_in(right, {"Sec-Fetch-Site": "cross-site"})).status_code == 403


async def test_signing_out_ends_the_session_on_the_server(browser: httpx2.AsyncClient) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    assert (await browser.post("/sign-out", headers=OWN)).status_code == 303
    found = await browser.get("/", headers={"Cookie": cookie})
    assert (found.status_code, found.headers["location"]) == (303, "/sign-in")


async def test_a_cookie_opens_pages_and_the_stream_but_no_other_route(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    assert (await browser.get(f"/api/v1/runs/{city.run}")).status_code == 401
    assert (await browser.get("/mcp")).status_code == 401
    assert (await browser.get("/nowhere")).status_code == 401
    assert (await browser.get("/runs/nowhere/at/all")).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {}, {"Origin": "https://evil.example"}],
)
async def test_a_page_of_another_site_cannot_press_a_button(
    browser: httpx2.AsyncClient, city: Served, headers: dict[str, str]
) -> None:
    assert (await browser.post(f"/runs/{city.run}/cancel", headers=headers)).status_code == 403
    assert city.row().state.value == "running"


async def test_a_cookie_that_comes_twice_is_none(browser: httpx2.AsyncClient) -> None:
    (name, value), *_ = browser.cookies.items()
    found = await browser.get("/", headers={"Cookie": f"{name}={value}; {name}=other"})
    assert found.status_code == 303


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", READS)
async def test_every_page_is_served_under_a_strict_policy(browser: httpx2.AsyncClient, path: str) -> None:
    found = await browser.get(path)
    assert found.status_code == 200
    assert found.headers["content-security-policy"] == CSP
    assert found.headers["cache-control"] == "no-store"
    assert found.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"<[^>]+\s(style|on[a-z]+)=|<script(?![^>]*\ssrc=\"/console/)|<style", found.text)
    assert not re.search(r"(?:src|href|action)=\"(?:https?:)?//", found.text)
    assert 'class="unavailable"' not in found.text


def test_every_page_and_button_is_on_record_here() -> None:
    """So that a new one is looked at by the tests of this module."""
    assert {path for method, path, _ in PAGES if method == "GET" and "{" not in path} == {*READS, "/settings/doctor"}
    of_one = {path for method, path, _ in PAGES if method == "GET" and "{" in path}
    assert of_one == {
        "/inbox/{item}", "/runs/{run}", "/runs/{run}/output", "/runs/{run}/changes", "/runs/export/{kind}",
        "/bulk/{bulk}",
        "/automations/{name:path}",
        "/automations/{name:path}/edit",
        "/agents/{name:path}",
        "/beads/{bead}",
        "/deliveries/{delivery}",
    }  # fmt: skip


def test_no_template_trusts_text_and_no_page_reads_the_store() -> None:
    for path in (HERE / "templates").glob("*.html"):
        text = path.read_text()
        assert not re.search(r"\|\s*safe|autoescape|Markup|\sstyle=", text), path
    for path in HERE.rglob("*.py"):
        assert "lamplighter.store" not in path.read_text(), path


async def test_files_are_kept_for_as_long_as_they_stay_the_same(city: Served) -> None:
    page = (await city.call("GET", "/sign-in")).text
    (css,) = re.findall(r'href="(/console/console\.css\?v=[0-9a-f]+)"', page)
    assert "immutable" in (await city.call("GET", css)).headers["cache-control"]
    assert (await city.call("GET", "/console/console.css")).headers["cache-control"] == "no-cache"
    script = await city.call("GET", "/console/console.js")
    assert script.headers["content-type"].startswith(("text/javascript", "application/javascript"))
    for name in ("app.py", "..%2Fapp.py", "nothing.js"):
        assert (await city.call("GET", f"/console/{name}")).status_code == 404


async def test_it_can_be_installed_on_a_phone(browser: httpx2.AsyncClient, city: Served) -> None:
    (path,) = re.findall(r'<link rel="manifest" href="([^"]*)">', (await browser.get("/")).text)
    found = await city.call("GET", path)  # a browser asks for it without a cookie
    assert found.headers["content-type"].startswith("application/manifest+json")
    told = found.json()
    assert (told["display"], told["start_url"]) == ("standalone", "../")
    for icon in told["icons"]:
        assert (await city.call("GET", f"/console/{icon['src']}")).status_code == 200


async def test_a_page_that_a_button_showed_is_refreshed_from_its_own_address(browser: httpx2.AsyncClient) -> None:
    for path, form, address in (
        ("/settings/people/tokens", {"name": "phone"}, "/settings/people"),
        ("/automations/new/own/preview", {}, "/automations/new/own"),
        ("/automations/light/edit/preview", {}, "/automations/light/edit"),
    ):
        text = (await browser.post(path, data=form, headers=OWN)).text
        assert f'data-refetch="{address}"' in text
        assert f'name="next" value="{address}"' in text  # a theme that is chosen here leads back to a page there is
    assert "data-refetch" not in (await browser.get("/")).text


async def test_a_first_visit_takes_little(browser: httpx2.AsyncClient) -> None:
    files = [
        await browser.get(path) for path in ("/", "/console/console.css", "/console/console.js", "/console/lamp.svg")
    ]
    assert sum(len(one.content) for one in files) < 100_000


async def test_a_run_s_page_shows_what_is_known_and_nothing_said_becomes_markup(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    evil = "<script>alert(1)</script> \x1b[31m<img src=x onerror=alert(1)>"
    await city.complete(city.of_run(), outcome="failed", summary_markdown=evil)
    for path in ("/", "/runs", f"/runs/{city.run}", "/automations/light"):
        text = (await browser.get(path)).text
        assert "<script>alert" not in text
        assert "<img" not in text
    text = (await browser.get(f"/runs/{city.run}")).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &lt;img src=x onerror=alert(1)&gt;" in text
    assert "failed" in text


async def test_a_run_that_is_not_there_is_told(browser: httpx2.AsyncClient) -> None:
    found = await browser.get("/runs/run_9")
    assert (found.status_code, found.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "run_9" in found.text
    assert (await browser.get("/runs?state=ablaze")).status_code == 400
    assert "ablaze" in (await browser.get("/runs?state=ablaze")).text


async def test_an_empty_list_says_what_was_searched(browser: httpx2.AsyncClient) -> None:
    text = (await browser.get("/runs?state=timed_out")).text
    assert "No run fits `state:timed_out`. All runs that are kept were searched." in text


async def test_runs_are_paged_by_their_ids(browser: httpx2.AsyncClient, city: Served) -> None:
    newest = max(city.run, city.other)
    text = (await browser.get(f"/runs?before={newest}")).text
    assert min(city.run, city.other) in text
    assert f'id="row-{newest}"' not in text


# ── buttons ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_cancel_then_retry(browser: httpx2.AsyncClient, city: Served) -> None:
    done = await browser.post(f"/runs/{city.run}/cancel", headers=OWN)
    assert (done.status_code, done.headers["location"]) == (303, f"/runs/{city.run}")
    assert city.row().state.value == "canceled"
    page = await browser.get(done.headers["location"])
    assert "Canceled." in page.text
    assert "Canceled." not in (await browser.get(done.headers["location"])).text  # it is said once
    again = await browser.post(f"/runs/{city.run}/cancel", headers=OWN)
    assert (again.status_code, "That did not work" in again.text) == (409, True)
    retried = await browser.post(f"/runs/{city.run}/retry", headers=OWN)
    run = retried.headers["location"].removeprefix("/runs/")
    assert city.row(run).retries == city.run


async def test_an_automation_is_run_disabled_suspended_and_back(browser: httpx2.AsyncClient, city: Served) -> None:
    def now(tx: Any) -> tuple[bool, bool]:
        row = editing.get(tx, "light")
        return row.enabled, row.suspended

    done = await browser.post("/automations/light/run", headers=OWN)
    assert done.headers["location"].startswith("/runs/run_")
    for verb, wanted in (
        ("disable", (False, False)), ("enable", (True, False)), ("suspend", (True, True)), ("resume", (True, False)),
    ):  # fmt: skip
        assert (await browser.post(f"/automations/light/{verb}", headers=OWN)).status_code == 303
        assert city.opened.store.read(now) == wanted


async def test_an_automation_from_a_template_is_made_disabled_and_what_is_wrong_is_said_beside_the_form(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    form = {"template": "weekly-digest", "name": "digest", "path": str(city.opened.paths.root)}
    assert "digest" in (await browser.get("/automations/new?template=weekly-digest")).text
    done = await browser.post("/automations/new", data=form, headers=OWN)
    assert done.headers["location"] == "/automations/digest"
    assert city.opened.store.read(lambda tx: editing.get(tx, "digest")).enabled is False
    for wrong in ({}, {"name": "other", "path": "not/whole"}):
        again = await browser.post("/automations/new", data=form | wrong, headers=OWN)
        assert (again.status_code, "Not created." in again.text) == (422, True), wrong
        assert f'value="{wrong.get("name", "digest")}"' in again.text
    assert (await browser.get("/automations/new?template=nothing")).status_code == 404


async def changed(city: Served, tmp_path: Path) -> Path:
    """The run has ended, and changed a line in a worktree; the repository."""
    repository = tmp_path / "rig"
    git = ("git", "-C", str(repository), "-c", "user.name=ada", "-c", "user.email=ada@town.example")
    repository.mkdir()
    (repository / "lamp.txt").write_text("dark\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "dark")):
        assert await (await asyncio.create_subprocess_exec(*git, *words)).wait() == 0
    made = await city.operations.host.worktrees.ensure(city.run, repository)
    (made.path / "lamp.txt").write_text("<b>bright</b>\n")
    told = {"path": str(made.path), "branch": made.branch, "repository": str(made.repository)}
    await city.complete(city.of_run())
    city.opened.store.transact(lambda tx: tx.runs.set_worktree(city.run, told))
    return repository


async def test_what_a_run_changed_is_shown_and_applied(
    browser: httpx2.AsyncClient, city: Served, tmp_path: Path
) -> None:
    repository = await changed(city, tmp_path)
    assert f"/runs/{city.run}/changes" in (await browser.get(f"/runs/{city.run}")).text
    text = (await browser.get(f"/runs/{city.run}/changes")).text
    assert '<li class="line-add" data-line="1">+&lt;b&gt;bright&lt;/b&gt;</li>' in text
    assert (await browser.post(f"/runs/{city.run}/apply", headers=OWN)).status_code == 303
    assert (repository / "lamp.txt").read_text() == "<b>bright</b>\n"
    for again in (
        await browser.get(f"/runs/{city.run}/changes"),
        await browser.post(f"/runs/{city.run}/discard", headers=OWN),
    ):
        assert (again.status_code, "has no worktree" in again.text) == (404, True)
        assert f"were applied already, to {repository}" in again.text


async def test_remarks_on_lines_start_the_run_that_goes_on(
    browser: httpx2.AsyncClient, city: Served, tmp_path: Path
) -> None:
    await changed(city, tmp_path)
    empty = {"file": "lamp.txt", "line": "1", "quoted": "", "remark": " "}
    assert (await browser.post(f"/runs/{city.run}/remarks", data=empty, headers=OWN)).status_code == 400
    said = {"file": "lamp.txt", "line": "1", "quoted": "+<b>bright</b>", "remark": "Not so bright."}
    sent = await browser.post(f"/runs/{city.run}/remarks", data=said, headers=OWN)
    going_on = city.row(sent.headers["location"].rpartition("/")[2])
    assert (going_on.continues, going_on.worktree is None) == (city.run, False)
    told = city.opened.store.read(told_by, going_on)
    assert told.endswith("lamp.txt, line 1:\n> +<b>bright</b>\nNot so bright.")


async def test_pause_and_resume(browser: httpx2.AsyncClient) -> None:
    assert "The city is paused" not in (await browser.get("/")).text
    await browser.post("/settings/pause", data={"next": "/runs"}, headers=OWN)
    for path in READS:
        assert "The city is paused" in (await browser.get(path)).text
    done = await browser.post("/settings/resume", data={"next": "//evil.example"}, headers=OWN)
    assert done.headers["location"] == "/"
    assert "The city is paused" not in (await browser.get("/")).text


async def test_the_theme_is_kept_in_the_browser(browser: httpx2.AsyncClient) -> None:
    assert 'data-theme="system"' in (await browser.get("/")).text
    await browser.post("/settings/theme", data={"theme": "dark", "next": "/"}, headers=OWN)
    assert 'data-theme="dark"' in (await browser.get("/")).text
    await browser.post("/settings/theme", data={"theme": "<script>", "next": "/"}, headers=OWN)
    assert 'data-theme="dark"' in (await browser.get("/")).text


async def test_an_agent_that_is_not_there_and_a_message_that_says_nothing(browser: httpx2.AsyncClient) -> None:
    assert (await browser.get("/agents/nobody")).status_code == 404
    assert (await browser.post("/agents/nobody/nudge", data={"message": " "}, headers=OWN)).status_code == 400
    assert (await browser.post("/agents/nobody/restart", headers=OWN)).status_code == 404


async def test_a_form_that_is_too_large_is_refused(browser: httpx2.AsyncClient) -> None:
    found = await browser.post("/automations/new", content=b"name=" + b"x" * (2 << 20), headers=OWN)
    assert found.status_code == 413


# ── when nothing answers ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path",
    [
        *READS,
        "/settings/doctor",
        "/runs/RUN",
        "/automations/light",
        "/automations/light/edit",
        "/agents/a",
        "/beads/b",
        "/deliveries/d",
    ],
)
async def test_no_page_looks_healthy_when_no_question_is_answered(
    browser: httpx2.AsyncClient, city: Served, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async def away(*_args: Any, **_kwargs: Any) -> None:
        raise Unavailable("The database is away.", hint="It is tried again.")

    monkeypatch.setattr(CityOperations, "do", away)
    found = await browser.get(path.replace("RUN", city.run))
    assert "The database is away." in found.text
    assert not [word for word in HEALTHY if word in found.text]
    if found.status_code == 200:
        assert "unavailable" in found.text
        regions = re.findall(r"<section.*?</section>", found.text, re.DOTALL)
        silent = [one[:80] for one in regions if "unavailable" not in one and "doctor" not in one[:60]]
        assert silent == []
    else:
        assert found.status_code == 503


async def test_a_bug_is_a_page_too(browser: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_args: Any, **_kwargs: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(CityOperations, "do", broken)
    found = await browser.get("/runs")
    assert (found.status_code, "Something went wrong" in found.text) == (500, True)
    assert "ZeroDivision" not in found.text


# ── roles ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_members_sign_in_with_their_own_tokens_until_those_are_void(city: Served) -> None:
    token = token_of(city, Role.MEMBER)["Authorization"].removeprefix("Bearer ")
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False) as client:
        assert (await client.post("/sign-in", data={"token": token}, headers=OWN)).status_code == 303
        page = await client.get("/")
        assert (page.status_code, 'Sign out</button> <span class="soft">member</span>' in page.text) == (200, True)
        await client.post(f"/runs/{city.run}/cancel", headers=OWN)
        assert city.row().state.value == "canceled"
        city.opened.store.transact(lambda tx: tx.members.set_role("member", Role.ADMIN))
        assert "A member may not" not in (await client.get("/automations/light")).text  # rights are those of now
        (row,) = city.opened.store.read(lambda tx: tx.tokens.of("member"))
        city.opened.store.transact(lambda tx: tx.tokens.revoke(row.id, city.opened.clock.now()))
        assert (await client.get("/")).headers["location"] == "/sign-in"
        refused = await client.post("/sign-in", data={"token": token}, headers=OWN)
        assert (refused.status_code, "was revoked" in refused.text) == (401, True)


async def test_what_a_role_may_not_do_is_disabled_with_its_reason_and_refused_when_forced(city: Served) -> None:
    """Every form of every page, pressed with a token that may only read, and by a member."""
    await city.complete(city.of_run(), outcome="needs_human", summary_markdown="Which lamp?")
    paths = [*READS, "/automations/light", "/automations/light/edit", f"/runs/{city.run}", f"/runs/{city.other}"]
    for headers in (token_of(city, Role.OWNER, Verb.READ), token_of(city, Role.MEMBER)):
        token = headers["Authorization"].removeprefix("Bearer ")
        async with httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=180) as client:
            assert (await client.post("/sign-in", data={"token": token}, headers=OWN)).status_code == 303
            forms: dict[str, bool] = {}
            for path in paths:
                text = (await client.get(path)).text
                found = re.findall(r'<form method="post" action="([^"]*)"[^>]*>(.*?)</form>', text, re.DOTALL)
                for action, inside in found:
                    locked = bool(re.search(r'<fieldset class="bare" disabled title="[^"]* (may|right to)', inside))
                    assert forms.setdefault(action, locked) is locked, (path, action)
            forms = {action: one for action, one in forms.items() if not action.endswith(("/sign-out", "/theme"))}
            assert len(forms) > 8
            assert True in forms.values()
            for action, locked in sorted(forms.items(), key=lambda one: one[0].endswith("/revoke")):  # its own, last
                answer = await client.post(
                    action,
                    data={"message": "x", "text": "x", "sure": "yes", "role": "member", "name": "x"},
                    headers=OWN,
                )
                assert (answer.status_code == 403) is locked, (action, answer.status_code, locked)


@pytest.mark.parametrize("week", ["9999-12-31", "0001-01-01", "nonsense"])
async def test_a_week_that_no_calendar_has_is_refused_in_a_sentence(browser: httpx2.AsyncClient, week: str) -> None:
    found = await browser.get(f"/calendar?week={week}")
    assert found.status_code == 400
    assert "too far away" in found.text or "is not a date" in found.text
