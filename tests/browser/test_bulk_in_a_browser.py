"""Many runs at once in a browser: chosen by mouse, by keys and by filter; said first, then followed to the end."""

import subprocess
from collections.abc import Iterator

import pytest
from browser_city import PATIENCE_MS, Town, Watched
from playwright.sync_api import Browser, Page, expect
from test_access_in_a_browser import every_finding

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
PERSON = ("-c", "user.name=ada", "-c", "user.email=ada@town.example")
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def broken(town: Town, request: pytest.FixtureRequest) -> Iterator[str]:
    """The filter of five runs of one automation that failed; its command succeeds once `mended` is there."""
    name = f"many-{request.node.name.split('_')[1]}"
    town.ask(
        "/automations", {"name": name, "gate": "manual", "overlap": "allow", "exec": f"test -e {town.root}/mended"}
    )
    for _ in range(5):
        town.run(name)
    yield f"automation:{name}"
    (town.root / "mended").unlink(missing_ok=True)


def failed(page: Page, text: str) -> None:
    page.goto(f"/runs?q={text}")
    expect(page.locator("#list [data-row] .state", has_text="failed")).to_have_count(5)


def test_runs_chosen_by_keys_and_mouse_are_retried_with_progress(page: Page, town: Town, broken: str) -> None:
    failed(page, broken)
    go = page.get_by_role("button", name="Go on…")
    expect(go).to_be_disabled()
    for key in "jxjx":
        page.keyboard.press(key)
    expect(page.locator("[data-chosen]")).to_have_text("2 chosen")
    box = page.locator('input[name="run"]')
    box.nth(1).click()
    expect(page.locator("[data-chosen]")).to_have_text("1 chosen")
    box.nth(4).click(modifiers=["Shift"])
    expect(page.locator("[data-chosen]")).to_have_text("5 chosen")
    page.keyboard.press("Shift+X")
    expect(page.locator("[data-chosen]")).to_have_text("Tick runs, then")
    page.keyboard.press("Shift+X")
    expect(page.locator("[data-chosen]")).to_have_text("5 chosen")
    town.run("quick")  # the list is fetched again, and the choice stays
    expect(page.locator("#list [data-row]:has(input:checked)")).to_have_count(5)
    page.goto("/runs?q=automation:quick")
    expect(page.locator("[data-chosen]")).to_contain_text("5 chosen, 5 of them not on this page")
    town.release("mended")
    page.get_by_role("button", name="Go on…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Retry 5 runs?")
    expect(page.get_by_text("Each run that has ended is started anew")).to_be_visible()
    assert every_finding(page) == {}
    page.get_by_role("button", name="Retry 5 runs").click()
    page.wait_for_url("**/bulk/blk_*")
    expect(page.locator("#progress .state")).to_have_text("done")
    expect(page.locator("#progress .progress")).to_have_attribute("aria-label", "5 done, 0 refused, 0 left of 5")
    expect(page.locator("#results [data-row]")).to_have_count(5)
    assert every_finding(page) == {}
    page.goto("/runs")
    expect(page.locator("[data-chosen]")).to_have_text("Tick runs, then")
    page.goto("/bulk")
    assert every_finding(page) == {}


def test_all_that_fit_are_taken_and_aborted_on_the_page(page: Page, town: Town, broken: str) -> None:
    """The city is paused, so that it waits; the open page shows each change without being loaded again."""
    failed(page, broken)
    town.ask("/city/pause", {})
    try:
        page.get_by_label("all that fit the filter, on every page").check()
        page.get_by_label("Action").select_option("claim")
        page.get_by_role("button", name="Go on…").click()
        page.get_by_role("button", name="Claim 5 runs").click()
        page.wait_for_url("**/bulk/blk_*")
        expect(page.locator("#progress .state")).to_have_text("at work")
        other = page.context.new_page()
        other.goto(page.url)
        page.get_by_text("Abort…").click()
        page.get_by_role("button", name="Abort it").click()
        expect(page.get_by_text("what is done stays done, and the rest is left alone")).to_be_visible()
        expect(other.locator("#progress .state")).to_have_text("aborted")
        expect(other.locator("#progress")).to_contain_text("Left alone")
    finally:
        town.ask("/city/resume", {})


def test_without_script_plain_forms_do_the_same(
    chromium: Browser, signed_in: dict[str, object], town: Town, watched: Watched, broken: str
) -> None:
    context = chromium.new_context(base_url=town.url, storage_state=signed_in, java_script_enabled=False)  # type: ignore[arg-type]
    page = watched.watch(context.new_page())
    page.goto(f"/runs?q={broken}")
    page.locator('input[name="run"]').first.check()
    page.get_by_label("Action").select_option("unclaim")
    page.get_by_role("button", name="Go on…").click()
    page.get_by_role("button", name="Unclaim 1 run").click()
    page.wait_for_url("**/bulk/blk_*")
    expect(page.get_by_role("heading", level=1)).to_have_text("Unclaim 1 run")
    context.close()


def test_a_remark_on_a_line_starts_the_run_that_goes_on(page: Page, town: Town) -> None:
    rig = town.root.parent / "rig"
    rig.mkdir()
    (rig / "lamp.txt").write_text("dark\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "dark")):
        subprocess.run(["git", *PERSON, *words], cwd=rig, check=True)
    agent = {"prompt": "echo bright > lamp.txt; exit 1", "preset": "shell", "path": str(rig), "mode": "full_access"}
    town.ask("/automations", {"name": "brighten", "gate": "manual", "agent": agent})
    run = town.run("brighten")
    page.goto(f"/runs/{run}")
    expect(page.locator("#head .state")).to_have_text("failed")
    page.goto(f"/runs/{run}/changes")
    page.keyboard.press("n")
    page.keyboard.press("n")
    expect(page.locator("li.here")).to_have_text("+bright")
    page.keyboard.press("r")
    page.keyboard.type("Not so bright.")
    expect(page.locator("[data-remarked]")).to_contain_text("1 remark.")
    assert every_finding(page) == {}
    page.get_by_role("button", name="Send the remarks").click()
    expect(page.get_by_text("This run goes on, and is told them.")).to_be_visible()
    assert run not in page.url
    expect(page.locator("main")).to_contain_text("lamp.txt, line 1: > +bright Not so bright.")
