"""The terminal of a tmux agent in a real browser: watched, taken over, typed into, let go."""

import os
import subprocess
from collections.abc import Iterator

import pytest
from browser_city import PATIENCE_MS, Town, Watched, a_town, browser_files, up
from playwright.sync_api import Browser, Page, WebSocketRoute, expect
from test_access_in_a_browser import AXE, findings

from lamplighter.adapters.files.city import CityPaths
from lamplighter.app.sessions import tmux_socket

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    browser_files()
    made = a_town(tmp_path_factory.mktemp("terminal") / "town")
    file = made.root / "city.toml"
    file.write_text(file.read_text().replace('provider = "subprocess"', 'provider = "tmux"'))
    try:
        with up(made) as made.link_printed:
            yield made
    finally:
        socket = tmux_socket(CityPaths(made.root), os.environ)
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False, capture_output=True, timeout=60)


@pytest.fixture
def page(chromium: Browser, town: Town) -> Iterator[Page]:
    watched = Watched(town.url)
    context = chromium.new_context(base_url=town.url, viewport={"width": 1280, "height": 900})
    page = watched.watch(context.new_page())
    page.goto(town.link_printed)
    yield page
    context.close()
    assert (watched.errors, watched.foreign) == ([], [])


def audited(town: Town) -> list[str]:
    return [one["operation"] for one in town.read("/audit")["data"] if one["operation"].startswith("agent.")]


def test_a_tmux_agent_s_terminal_is_typed_into_after_taking_over(page: Page, town: Town) -> None:
    opened: list[WebSocketRoute] = []

    def through(route: WebSocketRoute) -> None:
        route.connect_to_server()
        opened.append(route)

    page.route_web_socket("**/terminal", through)
    page.goto("/agents/watchman")
    terminal, screen = page.locator("#terminal"), page.locator("#terminal .xterm-rows")
    take, told = page.get_by_role("button", name="Take over"), page.locator("[data-told]")
    expect(terminal).to_have_attribute("data-state", "watching")
    expect(screen).to_contain_text("ready")
    expect(page.locator("[data-people]")).to_have_text("you watch")
    page.evaluate(AXE)
    assert findings(page) == []

    take.click()
    expect(terminal).to_have_attribute("data-state", "typing")
    page.keyboard.type("gas lamps; 'ö'")
    page.keyboard.press("Enter")
    expect(screen).to_contain_text("heard gas lamps; 'ö'")

    opened[0].close(code=1012)
    expect(told).to_have_text("Connected again. You watch; take over again to type.")
    expect(terminal).to_have_attribute("data-state", "watching")
    page.keyboard.type("not heard")
    take.click()
    expect(terminal).to_have_attribute("data-state", "typing")
    page.keyboard.type("oil lamps")
    page.keyboard.press("Enter")
    expect(screen).to_contain_text("heard oil lamps")
    page.keyboard.press("Shift+Escape")
    expect(terminal).to_have_attribute("data-state", "watching")
    assert audited(town)[:2] == ["agent.let-go", "agent.take-over"]  # the newest first
    assert "not heard" not in screen.inner_text()

    town.ask("/agents/watchman/suspend", {})
    expect(told).to_contain_text("its session has ended")
    expect(take).to_be_disabled()
