"""Takes the pictures of the web console that the documents show, of a city made for it, with the system's Chromium."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "browser"))

from browser_city import Town, launched, up
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "console"
WIDE, PHONE = {"width": 1200, "height": 760}, {"width": 390, "height": 780}
TESTS = (
    r"printf '\033[1mcollecting\033[0m 212 tests\n\033[32m211 passed\033[0m\n"
    r"\033[31mFAILED tests/test_rates.py::test_rounding\033[0m\n'; exit 1"
)
IMPORT = 'i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo "batch $i of 60: 2,000 rows"; sleep 1; done'


def main() -> None:
    HERE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lamp-pictures-") as folder:
        town = Town(Path(folder) / "lantern-street")
        command = [sys.executable, "-m", "lamplighter", "init", str(town.root), "--demo", "--name", "lantern-street"]
        subprocess.run(command, check=True, capture_output=True)
        with up(town), sync_playwright() as playwright, launched(playwright) as browser:
            fill(town)
            context = browser.new_context()
            context.new_page().goto(town.link())
            state: Any = context.storage_state()

            @contextmanager
            def looking(size: Mapping[str, int], scheme: Any = "light") -> Iterator[Page]:
                made: Any = {"viewport": size, "color_scheme": scheme, "base_url": town.url, "storage_state": state}
                shown = browser.new_context(**made)
                yield shown.new_page()
                shown.close()

            run = town.lamp("run", "list", "--automation", "nightly-tests", "--limit", "1", "--json").split('"')[3]
            going = town.lamp("run", "list", "--automation", "nightly-import", "--limit", "1", "--json").split('"')[3]
            with looking(WIDE) as page:
                take(page, "/", "home")
                take(page, f"/runs/{run}", "run")
                take(page, "/automations", "automations")
                take(page, "/automations/nightly-import/edit", "editor")
                take(page, "/runs?q=state:failed,needs_human since:1d", "runs")
                take(page, "/agents/watchman", "agent")
                take(page, "/settings/people", "people")
                take(page, "/calendar", "palette", keys="night")
            with looking(WIDE, "dark") as page:
                take(page, "/", "home-dark")
                take(page, f"/runs/{going}", "run-live-dark")
                take(page, "/automations/new/own", "editor-dark")
            with looking(PHONE) as page:
                take(page, "/", "home-phone")
                take(page, f"/runs/{run}", "run-phone")
                take(page, "/automations/nightly-import/edit", "editor-phone")


def fill(town: Town) -> None:
    """Some runs to look at."""
    town.lamp("automation", "create", "nightly-tests", "--exec", TESTS, "--daily", "02:30")
    town.lamp("automation", "create", "nightly-import", "--exec", IMPORT, "--daily", "04:00")
    town.lamp("automation", "create", "digest", "--template", "weekly-digest", "--path", str(town.root))
    for name in ("nightly-tests", "nightly-tests", "nightly-import", "minutely"):
        town.lamp("automation", "run", name)


def take(page: Page, path: str, name: str, *, keys: str = "") -> None:
    """With `keys` they are typed into the palette."""
    page.goto(path)
    page.locator("#freshness.live").wait_for()
    page.wait_for_timeout(1500)
    if keys:
        page.keyboard.press("Control+k")
        page.keyboard.type(keys)
        page.locator("#palette .chosen", has_text=keys).wait_for()
    page.screenshot(path=HERE / f"{name}.png")
    print(f"{name}.png, {os.path.getsize(HERE / f'{name}.png') // 1000} kB")  # noqa: PTH202


if __name__ == "__main__":
    main()
