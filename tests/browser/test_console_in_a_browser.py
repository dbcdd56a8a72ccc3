"""The console in the system's Chromium, on a city that a real `lamp up` serves."""

import re

import pytest
from browser_city import PATIENCE_MS, Town, Watched
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
expect.set_options(timeout=PATIENCE_MS)

PAGES = ["/", "/inbox", "/inbox/focus", "/runs", "/bulk", "/automations", "/automations/new", "/automations/new/own",
         "/automations/quick", "/automations/quick/edit", "/automations/filed", "/automations/filed/edit",
         "/agents", "/agents/watchman", "/calendar", "/cost", "/events", "/beads", "/deliveries", "/nodes", "/settings",
         "/settings/people", "/settings/audit", "/search"]  # fmt: skip
STILL = {
    "/automations/new",
    "/automations/new/own",
    "/automations/quick/edit",
    "/automations/filed/edit",
    "/inbox/focus",
    "/search",
    "/settings/people",
}
"""Pages on which nothing but the frame is live."""
SIDE_BY_SIDE = 6
"""So many pages wait at once for what each of them says."""
POLICY = "default-src 'none'; script-src 'self'"


def start(page: Page, automation: str) -> str:
    """Run an automation by its button; the address of the run's page."""
    page.goto(f"/automations/{automation}")
    page.get_by_role("button", name="Run now").click()
    page.wait_for_url("**/runs/run_*")
    return page.url


def mark(page: Page) -> None:
    page.evaluate("window.notReloaded = true")


def is_marked(page: Page) -> bool:
    return bool(page.evaluate("window.notReloaded === true"))


def test_a_first_visit_from_the_link_to_a_finished_run(town: Town, chromium: Browser, watched: Watched) -> None:
    link = town.link()
    context = chromium.new_context(base_url=town.url)
    page = watched.watch(context.new_page())
    answer = page.goto(link)
    assert answer is not None
    assert answer.headers["content-security-policy"].startswith(POLICY)
    expect(page.get_by_role("heading", name="Needs a decision")).to_be_visible()
    page.get_by_role("link", name="Automations").first.click()
    page.get_by_role("link", name="quick", exact=True).click()
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#head .state")).to_have_text("succeeded")
    expect(page.locator(".output .fg-green")).to_have_text("lit")
    context.close()
    other = chromium.new_context(base_url=town.url)
    again = other.new_page()
    again.goto(link)
    expect(again.get_by_text("used already")).to_be_visible()
    other.close()


def test_what_fails_appears_on_the_open_start_page_and_in_its_title(page: Page, town: Town) -> None:
    page.goto("/")
    mark(page)
    town.run("breaks")
    expect(page.locator("#needs").get_by_role("link", name="breaks")).to_be_visible()
    expect(page).to_have_title(re.compile(r"^\(\d+\) Home"))
    expect(page.locator("#nav .count")).to_be_visible()
    assert is_marked(page)


def test_a_run_is_followed_to_its_end_while_focus_selection_and_scroll_stay(page: Page, town: Town) -> None:
    start(page, "wait")
    expect(page.locator("#head .state")).to_have_text("running")
    expect(page.locator(".output li")).to_have_count(80)
    mark(page)
    page.locator("#timeline details summary").click()
    page.locator(".output").evaluate("box => { box.scrollTop = 120 }")
    page.evaluate("scrollTo(0, 150)")
    page.locator("#head details summary").focus(timeout=PATIENCE_MS)
    page.evaluate("scrollTo(0, 150)")
    town.release("more")
    expect(page.locator(".output li")).to_have_count(81)
    assert page.evaluate("document.activeElement.textContent") == "Cancel…"
    assert page.evaluate("[scrollY, document.querySelector('.output').scrollTop]") == [150, 120]
    assert page.locator("#timeline details").get_attribute("open") is not None
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.output li'))")
    town.release("more")
    page.wait_for_timeout(3500)  # longer than the page waits between two looks: what is selected is not disturbed
    assert page.locator(".output li").count() == 81
    assert page.evaluate("String(getSelection())").strip() == "line 1"
    page.evaluate("getSelection().removeAllRanges()")
    expect(page.locator(".output li")).to_have_count(82)
    town.release("done")
    expect(page.locator("#head .state")).to_have_text("succeeded")
    expect(page.locator(".output li").last).to_have_text("the end")
    assert is_marked(page)


def test_a_run_is_canceled(page: Page) -> None:
    start(page, "wait")
    page.get_by_text("Cancel…").click()
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.locator("#head .state")).to_have_text("canceled")
    expect(page.get_by_text("Canceled.")).to_be_visible()


def test_the_keyboard_leads_everywhere(page: Page) -> None:
    start(page, "quick")
    page.goto("/")
    for key, path in (("r", "/runs"), ("a", "/automations"), ("s", "/agents"), ("e", "/events"), (",", "/settings")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**{path}")
    page.goto("/runs")
    page.keyboard.press("j")
    expect(page.locator("[data-row].at")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/run_*")
    page.goto("/automations")
    page.keyboard.press("/")
    page.keyboard.type("g r quick")
    assert page.url.endswith("/automations")
    page.locator("[data-filter]").fill("quick")
    expect(page.locator("#automations tbody tr:visible")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()


def test_a_narrow_screen_shows_every_page_without_scrolling_sideways(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    run = start(page, "quick")
    expect(page.locator("#head .state")).to_have_text("succeeded")
    for path in [*PAGES, run]:
        page.goto(path)
        wide = page.evaluate("document.scrollingElement.scrollWidth")
        assert wide <= 390, f"{path} is {wide} pixels wide"
    page.goto("/settings")
    assert page.locator("main").bounding_box()["y"] <= 120  # type: ignore[index]  # the header takes little of it
    at = page.locator("#nav [aria-current]").bounding_box()
    assert at is not None
    assert at["x"] >= 0
    assert at["x"] + at["width"] <= 390  # the line of pages shows where one is
    page.get_by_role("button", name="Sign out").scroll_into_view_if_needed()
    assert page.get_by_role("button", name="Sign out").bounding_box()["height"] >= 44  # type: ignore[index]
    page.goto("/automations/quick")
    assert page.get_by_role("button", name="Run now").bounding_box()["height"] >= 44  # type: ignore[index]


def test_themes_follow_the_system_and_the_choice(page: Page) -> None:
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))

    page.emulate_media(color_scheme="light")
    page.goto("/")
    light = background()
    page.emulate_media(color_scheme="dark")
    dark = background()
    assert light != dark
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="dark").click()
    assert background() == dark
    page.get_by_role("button", name="contrast").click()
    assert background() == "rgb(0, 0, 0)"


def test_pages_of_one_automation_and_one_agent_say_why_and_let_one_act(page: Page) -> None:
    page.goto("/automations/quick")
    expect(page.locator("#why li").first).to_be_visible()
    page.goto("/agents")
    expect(page.locator(".card", has_text="watchman").locator(".says")).to_have_text("ready")
    page.goto("/agents/watchman")
    expect(page.locator("#head .state")).to_have_text("running")
    expect(page.locator("#screen")).to_contain_text("ready")
    page.get_by_label("Message").fill("good evening")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#screen")).to_contain_text("heard good evening")
    page.get_by_text("Restart…").click()
    expect(page.get_by_text("in the middle of what it does")).to_be_visible()
    page.get_by_role("button", name="Restart now").click()
    expect(page.get_by_text("Restarted: a fresh session runs.")).to_be_visible()


def test_what_an_agent_asks_in_its_terminal_is_answered_by_a_button(page: Page, town: Town) -> None:
    town.release("ask")
    for _ in range(600):
        if town.read("/agents/asker/question")["question"]:
            break
        page.wait_for_timeout(100)
    page.goto("/agents/asker")
    expect(page.locator("#head .state")).to_have_text("needs you")
    expect(page.locator("#head blockquote")).to_have_text("rm -rf build Delete it? (y/n)")
    page.get_by_role("button", name="No", exact=True).click()
    expect(page.get_by_text("Answered asker: No")).to_be_visible()
    expect(page.locator("#screen")).to_contain_text("said n")
    expect(page.locator("#head .state")).to_have_text("running")


def test_without_script_pages_read_and_buttons_work(
    chromium: Browser, signed_in: dict[str, object], town: Town, watched: Watched
) -> None:
    context = chromium.new_context(base_url=town.url, storage_state=signed_in, java_script_enabled=False)  # type: ignore[arg-type]
    page = watched.watch(context.new_page())
    for path in PAGES:
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator("#freshness")).to_contain_text("as of")
    page.goto("/automations/quick")
    page.get_by_role("button", name="Run now").click()
    page.wait_for_url("**/runs/run_*")
    page.goto("/settings")
    page.get_by_text("Pause all…").click()
    page.get_by_role("button", name="Pause the city").click()
    expect(page.get_by_text("The city is paused: nothing fires")).to_be_visible()
    page.get_by_role("button", name="Resume").first.click()
    expect(page.get_by_text("Lifted: pause.")).to_be_visible()
    context.close()


def test_when_the_server_answers_503_no_open_page_looks_healthy(context: BrowserContext, town: Town) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=503, body="away")

    live = [path for path in PAGES if path not in STILL]
    for start_at in range(0, len(live), SIDE_BY_SIDE):
        opened = {path: Watched(town.url).watch(context.new_page()) for path in live[start_at:][:SIDE_BY_SIDE]}
        for path, page in opened.items():
            page.goto(path)
        for page in opened.values():
            expect(page.locator("#freshness.live")).to_be_visible()
        context.route("**/*", refuse)
        for page in opened.values():
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # it looks again
        for page in opened.values():
            expect(page.locator("#freshness.lost")).to_contain_text("unavailable")
            expect(page.locator("body.stale")).to_have_count(1)
        context.unroute("**/*")
        expect(page.locator("#freshness.live")).to_be_visible()
        for page in opened.values():
            page.close()


def test_a_lost_connection_is_told_and_what_was_missed_appears_when_it_is_back(
    context: BrowserContext, town: Town
) -> None:
    page = Watched(town.url).watch(context.new_page())
    page.goto("/runs")
    expect(page.locator("#freshness.live")).to_be_visible()
    mark(page)
    context.set_offline(True)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#freshness.lost")).to_contain_text("connection lost")
    run = town.run("quick")
    expect(page.locator(f"#row-{run}")).to_have_count(0)
    context.set_offline(False)
    expect(page.locator(f"#row-{run}")).to_be_visible()
    expect(page.locator("#freshness.live")).to_be_visible()
    assert is_marked(page)


def test_script_that_gets_into_a_page_is_not_run(context: BrowserContext, town: Town) -> None:
    page = Watched(town.url).watch(context.new_page())
    page.goto("/")
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.evil = 1'}))"
    )
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.evil = 1\">')")
    assert page.evaluate("window.evil") is None


def test_twenty_items_are_worked_off_by_keys_alone_and_undone(page: Page, town: Town) -> None:
    for number in range(20):
        town.create(f"worry-{number:02}", f"echo trouble {number} >&2; exit 9")
        town.run(f"worry-{number:02}")
    worries = lambda: [one for one in town.read("/inbox?limit=200")["data"] if one["subject"].startswith("worry-")]  # noqa: E731
    page.goto("/")
    expect(page.locator("#needs .item").first).to_be_visible()
    for _ in range(600):
        if len(worries()) == 20:
            break
        page.wait_for_timeout(100)
    page.keyboard.press("f")
    page.wait_for_url("**/inbox/focus")
    heading, done = page.locator("h1"), page.get_by_role("status")
    left: list[str] = []
    while len(left) < 200 and not heading.inner_text().startswith("worry-"):  # what others left is passed over
        left.append(heading.inner_text())
        page.keyboard.press("n")
        expect(heading).not_to_have_text(left[-1])
    expect(page.locator(".output")).to_contain_text("trouble")  # what it printed is beside the buttons
    first = heading.inner_text()
    page.keyboard.press("c")
    expect(page.get_by_text("Claimed by")).to_be_visible()
    page.keyboard.press("z")
    expect(page.get_by_text("Nobody looks after it now.")).to_be_visible()
    for key, said in (("s", "It is shown again."), ("x", "It is open again.")):
        page.keyboard.press(key)
        expect(heading).not_to_have_text(first)
        page.keyboard.press("z")
        expect(done.filter(has_text=said)).to_be_visible()
        expect(heading).to_have_text(first)
    page.keyboard.press("o")
    page.wait_for_url("**/runs/run_*")
    expect(page.locator("#head .state")).to_have_text("failed")
    page.go_back()
    for number in range(20):
        now = heading.inner_text()
        assert now.startswith("worry-")
        page.keyboard.press("1" if number % 2 else "3")
        expect(page.locator(".reason input:checked")).to_have_count(1)
        page.keyboard.press("rx"[number % 2])
        expect(heading).not_to_have_text(now)
    assert worries() == []
    settled = [one for one in town.read("/inbox?state=settled&limit=50")["data"] if one["subject"].startswith("worry-")]
    assert {one["settled_why"] for one in settled if one["settled_how"] == "it was dismissed"} == {"mended by hand"}
    assert len(settled) == 20
    reasons = {one["reason"] for one in town.read("/runs?q=automation:worry-*&limit=50")["data"]}
    assert "manual_resolution:a hiccup outside" in reasons


def test_a_question_is_answered_where_it_stands(page: Page, town: Town) -> None:
    body = {"name": "notes", "gate": "manual", "agent": {"prompt": "Write the release notes", "mode": "full_access",
            "preset": "claude", "path": str(town.root)}}  # fmt: skip
    town.ask("/automations", body)
    run = town.run("notes")
    page.goto("/")
    item = page.locator("#needs .item", has_text="Does 2.4 drop Python 3.10?")
    expect(item).to_be_visible()
    mark(page)
    assert is_marked(page)
    item.get_by_role("button", name="Keep it for 2.4").click()
    expect(page.get_by_text("Answered; a new run continues the work.")).to_be_visible()
    expect(item.filter(has_text="Collected")).to_have_count(0)
    assert town.read(f"/runs/{run}")["continued_by"]


def test_an_automation_from_a_template_fires_for_the_first_time(page: Page, town: Town) -> None:
    page.goto("/automations/new")
    page.get_by_role("link", name="Weekly digest").click()
    expect(page.get_by_role("heading", name="Is the city ready for it?")).to_be_visible()
    page.get_by_label("Directory it works in").fill(str(town.root))
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/automations/weekly-digest")
    expect(page.locator("#head .state").first).to_have_text("disabled")
    page.get_by_role("button", name="Enable", exact=True).click()
    expect(page.locator("#head .state").first).to_have_text("enabled")
    expect(page.locator("#next tr").first).to_contain_text("15:00")
    page.get_by_role("button", name="Run now").click()
    page.wait_for_url("**/runs/run_*")
    expect(page.locator("#head .state")).to_have_text("succeeded")
    expect(page.locator("#head .summary")).to_have_text("Nothing needs a word this time.")
    expect(page.locator(".transcript")).to_contain_text("I looked through the repository.")
    page.get_by_label("Search the transcript").fill("looked")
    page.keyboard.press("Enter")
    expect(page.locator(".transcript li")).to_have_count(1)


def test_what_is_new_waits_while_one_reads_and_keys_can_be_switched_off(page: Page, town: Town) -> None:
    town.run("quick")
    page.goto("/runs")
    expect(page.locator("#freshness.live")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator("[data-row].at")).to_have_count(1)
    run = town.run("quick")
    expect(page.locator("[data-newer]")).to_contain_text("new")
    expect(page.locator(f"#row-{run}")).to_have_count(0)
    page.locator("[data-newer]").click()
    expect(page.locator(f"#row-{run}")).to_be_visible()
    expect(page.locator("[data-newer]")).to_be_hidden()
    page.keyboard.press("?")
    page.get_by_role("button", name="Switch single keys off").click()
    expect(page.get_by_text("Single keys do nothing now.")).to_be_visible()
    page.keyboard.press("f")
    page.keyboard.press("j")
    expect(page.locator("[data-row].at")).to_have_count(0)
    assert page.url.endswith("/runs")
    page.keyboard.press("?")
    page.get_by_role("button", name="Switch single keys on").click()
    expect(page.get_by_text("Single keys work again.")).to_be_visible()
    expect(page.locator("#freshness.live")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator("[data-row].at")).to_have_count(1)


def test_an_automation_is_made_in_the_editor_which_says_what_it_would_be_as_one_types(page: Page) -> None:
    page.goto("/automations/new/own")
    preview = page.locator("#preview")
    expect(preview).to_contain_text("Give it a name")
    page.get_by_label("Name", exact=True).fill("sweep street")
    expect(page.locator("#p-name")).to_contain_text("write `sweep-street`")
    page.get_by_label("Name", exact=True).fill("sweep-street")
    page.get_by_label("Command", exact=True).first.fill("echo swept")
    expect(preview).to_contain_text("Daily at 09:00")
    expect(preview.locator("tr")).to_have_count(5)
    page.get_by_label("Fires", exact=True).select_option("by a cron line")
    line = page.get_by_label("Cron line").first
    line.fill("0 9 * * mon-fre")
    expect(page.locator("#p-t0-cron-schedule")).not_to_be_empty()
    line.fill("30 7 * * mon-fri")
    expect(preview).to_contain_text("Right as it is")
    expect(preview.locator("tr").first).to_contain_text("07:30")
    assert line.evaluate("one => one === document.activeElement")  # what one types in stays
    page.get_by_text("Overlap and times that were missed").click()
    page.get_by_label("First ask a command").fill("echo nothing to sweep; exit 75")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#tried")).to_contain_text("Nothing to do: the run would be skipped.")
    expect(page.locator("#tried pre")).to_have_text("nothing to sweep")
    expect(page.locator("#freshness.live")).to_be_visible()  # it is refreshed from the editor's address
    page.get_by_text("Overlap and times that were missed").click()
    page.get_by_label("First ask a command").fill("")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/automations/sweep-street")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#head .state")).to_have_text("succeeded")
    page.goto("/automations/sweep-street/edit")
    page.get_by_text("If it fails").click()
    page.get_by_label("Try again so often").fill("2")
    expect(preview.locator(".patch")).to_contain_text("+[automation.retry]")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Changed; runs under way keep")).to_be_visible()


def test_the_palette_leads_to_things_and_does_things_by_a_few_letters(page: Page) -> None:
    page.goto("/calendar")
    page.keyboard.press("Control+k")
    palette = page.locator("#palette")
    expect(palette.locator(".chosen")).to_have_text("pageHome")
    page.keyboard.type("watchm")
    expect(palette.locator(".chosen")).to_contain_text("watchman")
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents/watchman")
    page.keyboard.press("Control+k")
    page.keyboard.type("quick")
    expect(palette.locator("[data-hit]").nth(1)).to_contain_text("Run quick now")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/run_*")
    expect(page.locator("#head .state")).to_have_text("succeeded")
    page.goto("/runs")
    page.keyboard.press("/")
    page.keyboard.type("sta")
    expect(page.locator("#proposals option").first).to_have_attribute("value", "state:")
    page.keyboard.type("te:succ")
    expect(page.locator("#proposals option")).to_have_count(1)
    page.keyboard.type("eeded")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs?q=state*")
    expect(page.locator("#list tbody tr").first).to_be_visible()


def test_a_destination_is_tried_and_its_answer_told(page: Page, town: Town) -> None:
    page.goto("/settings")
    page.locator("#destination-desk").get_by_role("button", name="Send a trial").click()
    expect(page.get_by_text("desk took the trial.")).to_be_visible()
    assert "This is a test notice" in (town.root / "told.json").read_text()


def test_a_delivery_leads_to_its_run_and_back_and_is_judged_again(page: Page, town: Town) -> None:
    proof = town.connect("bell")
    town.ask("/automations", {"name": "ring", "gate": "webhook", "connection": "bell", "exec": "true"})
    town.deliver("bell", proof, {"type": "bell", "title": "Somebody rang"})
    page.goto("/deliveries?connection=bell")
    row = page.locator("#list tbody tr").first
    expect(row).to_contain_text("fired ring")
    row.get_by_role("link", name="Somebody rang").click()
    page.locator("#verdicts table").get_by_role("link").nth(1).click()
    page.wait_for_url("**/runs/run_*")
    page.locator("#inputs").get_by_role("link").first.click()
    page.wait_for_url("**/deliveries/dlv_*")
    page.get_by_role("button", name="Have it judged again").click()
    expect(page.get_by_text("It is judged again")).to_be_visible()
    expect(page.locator("#verdicts tbody tr")).to_have_count(1)
    page.goto("/automations/ring")
    expect(page.locator(".hook")).to_contain_text(f"{town.url}/hooks/bell")
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_text("bell took a signed test, which fires nothing.")).to_be_visible()
