"""Whether everybody can use the pages: what axe finds, in every theme, wide and narrow."""

from importlib import resources

import pytest
from browser_city import PATIENCE_MS, Town, Watched
from playwright.sync_api import Browser, Page, expect
from test_console_in_a_browser import PAGES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
expect.set_options(timeout=PATIENCE_MS)

THEMES = ("light", "dark", "contrast")
LOOK = "options => axe.run({resultTypes: ['violations'], ...options}).then(found => found.violations)"
AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()


def findings(page: Page, *, colours: bool = False) -> list[str]:
    """What is wrong; with `colours` only what depends on them."""
    found = page.evaluate(LOOK, {"runOnly": ["color-contrast"]} if colours else {})
    return [f"{one['id']}: {node['html'][:150]}" for one in found for node in one["nodes"]]


def every_finding(page: Page) -> dict[str, list[str]]:
    """Everything in the first theme; in the others what depends on colours."""
    told = {}
    page.evaluate(AXE)
    for theme in THEMES:
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        found = findings(page, colours=theme != THEMES[0])
        if found:
            told[theme] = found
    return told


def test_axe_finds_nothing_on_any_page_in_any_theme(page: Page, town: Town) -> None:
    run, broken = town.run("quick"), town.run("breaks")
    page.goto(f"/runs/{broken}")
    expect(page.locator("#head .state")).to_have_text("failed")
    told = {}
    delivery = f"/deliveries/{town.deliver('gate', town.connect('gate'), {'title': 'A knock'})}"
    for path in [*PAGES, f"/runs/{run}", f"/runs/{broken}", delivery, "/settings/doctor", "/runs?state=skipped"]:
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        found = every_finding(page)
        if found:
            told[path] = found
    assert told == {}


def test_axe_finds_nothing_on_the_page_that_signs_in_and_on_a_narrow_screen(
    page: Page, chromium: Browser, town: Town
) -> None:
    told = {}
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/", "/runs", "/automations", "/agents/watchman", "/settings"):
        page.goto(path)
        page.evaluate(AXE)
        told[path] = findings(page)
    stranger = chromium.new_context(base_url=town.url).new_page()
    stranger.goto("/sign-in")
    stranger.evaluate(AXE)
    told["/sign-in"] = findings(stranger)
    stranger.context.close()
    assert {path: found for path, found in told.items() if found} == {}


def test_a_member_signs_in_with_a_token_and_sees_what_they_may_not_do_and_why(
    chromium: Browser, town: Town, watched: Watched
) -> None:
    town.ask("/members", {"name": "mia", "role": "member"})
    token = town.ask("/tokens", {"name": "browser", "member": "mia"})["token"]
    context = chromium.new_context(base_url=town.url)
    page = watched.watch(context.new_page())
    page.goto("/agents/watchman")
    page.get_by_label("Or paste a token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("A member may not control agents; an admin or owner may.")).to_be_visible()
    page.get_by_text("Restart…").click()
    expect(page.get_by_role("button", name="Restart now")).to_be_disabled()
    forced = context.request.post("/agents/watchman/restart", headers={"Sec-Fetch-Site": "same-origin"})
    assert forced.status == 403
    assert "may not control agents" in forced.text()
    page.goto("/automations/quick")
    page.get_by_text("More", exact=True).click()
    page.get_by_text("Suspend…").click()
    expect(page.get_by_role("button", name="Suspend", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#head .state")).to_have_text("succeeded")
    context.close()
