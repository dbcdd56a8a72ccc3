from collections.abc import Iterator

import pytest
from browser_city import Town, Watched, a_town, fill, launched, up
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    made = a_town(tmp_path_factory.mktemp("console") / "town")
    with up(made):
        fill(made)
        yield made


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright, launched(playwright) as browser:
        yield browser


@pytest.fixture(scope="session")
def signed_in(town: Town, chromium: Browser) -> dict[str, object]:
    """The cookies of a browser that has signed in."""
    context = chromium.new_context()
    context.new_page().goto(town.link())
    state = dict(context.storage_state())
    context.close()
    return state


@pytest.fixture
def watched(town: Town) -> Iterator[Watched]:
    """No page says an error or asks another host for anything."""
    made = Watched(town.url)
    yield made
    assert (made.errors, made.foreign) == ([], [])


@pytest.fixture
def context(chromium: Browser, signed_in: dict[str, object], town: Town) -> Iterator[BrowserContext]:
    made = chromium.new_context(
        base_url=town.url,
        storage_state=signed_in,
        viewport={"width": 1280, "height": 800},  # type: ignore[arg-type]
    )
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, watched: Watched) -> Page:
    return watched.watch(context.new_page())
