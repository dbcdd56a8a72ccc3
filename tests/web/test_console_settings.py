"""Settings in the console: members, tokens, the record of changes; and what a run's page lets one do."""

import html
import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from served import Served, completion_id
from test_people import token_of

from lamplighter.domain.access import Role
from lamplighter.services.rollups import StripDay
from lamplighter.services.slack.installing import mark_of
from lamplighter.store.slack import Person, Thread
from lamplighter.store.tx import Tx
from lamplighter.testing.slack_server import Refused, SlackServer, slack_server
from lamplighter.testing.slack_shapes import APP_TOKEN, BOT_TOKEN, TEAM
from lamplighter.web.console.charts import HEIGHT, outcomes_of

OWN = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
async def browser(city: Served) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=180) as client:
        token = city.owner["Authorization"].removeprefix("Bearer ")
        assert (await client.post("/sign-in", data={"token": token}, headers=OWN)).status_code == 303
        yield client


@pytest.fixture
def slack(city: Served) -> Iterator[SlackServer]:
    with slack_server() as found:
        env = city.opened.settings.env
        assert isinstance(env, dict)
        env["LAMP_SLACK_API_URL"] = found.api
        yield found
        del env["LAMP_SLACK_API_URL"]


async def test_a_member_is_added_gets_a_token_that_is_shown_once_and_is_removed(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    added = await browser.post("/settings/people/add", data={"name": "mia", "role": "admin"}, headers=OWN)
    assert added.status_code == 303
    form = {"name": "phone", "member": "mia", "expires": "7d"}
    made = await browser.post("/settings/people/tokens", data=form, headers=OWN)
    (token,) = re.findall(r'id="token">([^<]+)<', made.text)
    assert made.headers["cache-control"] == "no-store"
    header = {"Authorization": f"Bearer {token}"}
    assert (await city.call("GET", "/api/v1/runs", headers=header)).status_code == 200
    page = (await browser.get("/settings/people")).text
    assert token not in page
    assert f"…{token[-4:]}" in page
    assert "mia" in page
    await browser.post("/settings/people/mia/role", data={"role": "member"}, headers=OWN)
    assert (await city.call("POST", "/api/v1/city/pause", headers=header)).status_code == 403
    (revoke,) = re.findall(r'action="(/settings/people/tokens/[^"]*/revoke)"', page)
    assert (await browser.post(revoke, headers=OWN)).status_code == 303
    assert (await city.call("GET", "/api/v1/runs", headers=header)).status_code == 401
    await browser.post("/settings/people/mia/remove", headers=OWN)
    assert "mia is no member any more" in (await browser.get("/settings/people")).text
    for wrong in ({"name": "", "role": "admin"}, {"name": "x", "role": "king"}):
        assert (await browser.post("/settings/people/add", data=wrong, headers=OWN)).status_code == 400


async def test_who_changed_what_is_on_record_for_those_who_may_see_it(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    await browser.post("/automations/light/disable", headers=OWN)
    page = (await browser.get("/settings/audit?actor=owner")).text
    assert "automation.disable" in page
    assert ">web<" in page
    assert "Nothing is on record of nobody" in (await browser.get("/settings/audit?actor=nobody")).text
    token = token_of(city, Role.MEMBER)["Authorization"].removeprefix("Bearer ")
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False) as other:
        await other.post("/sign-in", data={"token": token}, headers=OWN)
        refused = (await other.get("/settings/audit")).text
    assert "member may not read audit" in refused
    assert "automation.disable" not in refused


async def test_a_destination_that_is_not_there_is_told(browser: httpx2.AsyncClient) -> None:
    assert (await browser.post("/settings/destinations/nowhere/test", headers=OWN)).status_code == 303
    assert "There is no destination `nowhere`" in html.unescape((await browser.get("/settings")).text)


async def test_a_destination_is_tried_and_its_last_answer_shown(browser: httpx2.AsyncClient, city: Served) -> None:
    with (city.opened.paths.root / "city.toml").open("a", encoding="utf-8") as file:
        file.write('\n[[notifications.destinations]]\nname = "desk"\nkind = "command"\ncommand = "true"\n')
    city.opened.forget_config()
    assert (await browser.post("/settings/destinations/desk/test", headers=OWN)).status_code == 303
    page = html.unescape((await browser.get("/settings?told")).text)
    assert "desk took the trial." in page
    assert "answered exit 0" in page
    assert "desk: told of runs that are failed, needs human, timed out; and that it is over." in page
    body = {"name": "told", "gate": "manual", "exec": "true", "notify": {"to": ["desk"], "on": ["succeeded"]}}
    made = await city.call("POST", "/api/v1/automations", headers=city.owner, body=body)
    assert made.status_code == 201, made.text
    page = html.unescape((await browser.get("/settings?told")).text)
    assert "told</a></td><td>desk</td><td>succeeded</td>" in page


async def test_somebody_says_who_they_are_in_slack_on_a_page(browser: httpx2.AsyncClient, city: Served) -> None:
    now = datetime.now(UTC)
    waiting = Person(TEAM, "U9", None, "link", mark_of("ABCDE12345"), now, "Ann <Smith>")
    city.opened.store.transact(lambda tx: tx.slack.put_person(waiting))
    page = (await browser.get("/settings/slack/link?code=ABCDE12345")).text
    assert 'value="ABCDE12345"' in page
    assert f'<strong>Ann &lt;Smith&gt;</strong> <span class="id">U9</span> in {TEAM}' in page
    assert "That code links nobody" in html.unescape((await browser.get("/settings/slack/link?code=ZZZZZ")).text)
    assert "was shown to" not in (await browser.get("/settings/slack/link")).text
    assert "Go on only if you were shown it yourself" in page
    done = await browser.post("/settings/slack/link", data={"code": "ABCDE12345"}, headers=OWN, follow_redirects=True)
    assert f"In {TEAM} you are U9." in html.unescape(done.text)
    found = city.opened.store.read(lambda tx: tx.slack.person(TEAM, "U9"))
    assert found is not None
    assert found.member is not None
    again = await browser.post("/settings/slack/link", data={"code": "ABCDE12345"}, headers=OWN, follow_redirects=True)
    assert "That code links nobody" in html.unescape(again.text)


async def test_slack_is_shown_with_its_channels_and_tried(
    browser: httpx2.AsyncClient, city: Served, slack: SlackServer
) -> None:
    assert "Slack is not installed" in (await browser.get("/settings")).text
    body = {"bot_token": BOT_TOKEN, "app_token": APP_TOKEN, "preset": "claude"}
    made = await city.call("POST", "/api/v1/slack", headers=city.owner, body=body)
    assert made.status_code == 201, made.text
    page = html.unescape((await browser.get("/settings")).text)
    assert "not connected" in page
    now = datetime.now(UTC)

    def talk(tx: Tx) -> None:
        tx.slack.looked(TEAM, 2, now)
        tx.slack.came(TEAM, now)
        tx.slack.add_thread(Thread("slt_1", TEAM, "C0123456789", "1.0", "U1", city.run, now))

    city.opened.store.transact(talk)
    page = html.unescape((await browser.get("/settings")).text)
    assert "not connected" not in page
    assert re.search(r"C0123456789</span> <span class=\"soft\">1 conversation<", page)
    test = f"/settings/slack/{TEAM}/test"
    assert (await browser.post(test, headers=OWN)).status_code == 303
    assert "Slack knows the app in City as" in (await browser.get("/settings")).text
    slack.trouble = lambda _method, _before: Refused("token_revoked")
    await browser.post(test, headers=OWN)
    page = html.unescape((await browser.get("/settings")).text)
    assert "Slack did not take the trial" in page
    page = html.unescape((await browser.get("/settings")).text)  # what was said once is gone, the reason is kept
    assert "Slack refused auth.test: token_revoked" in page
    assert BOT_TOKEN not in page

    def unstreamed(tx: Tx) -> None:
        tx.slack.scoped(TEAM, "chat:write")
        tx.slack.unstreamed(TEAM, "missing_scope", now)

    city.opened.store.transact(unstreamed)
    page = html.unescape((await browser.get("/settings")).text)
    assert "lacks app_mentions:read, assistant:write" in page
    assert "Answers are not streamed: missing_scope" in page
    [told] = (await city.call("GET", "/api/v1/slack", headers=city.owner)).json()["data"]
    assert (told["connected"], told["conversations"]) == (True, {"C0123456789": 1})
    city.opened.store.transact(lambda tx: tx.slack.looked(TEAM, 2, now - timedelta(minutes=3)))
    assert "not connected" in (await browser.get("/settings")).text


async def test_a_run_s_page_shows_what_it_was_given_and_lets_one_claim_resolve_and_say_something(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    wrong = await browser.post("/automations/light/run", data={"payload": "[1]"}, headers=OWN)
    assert wrong.status_code == 400
    given = '{"lamp": "left", "api_token": "hush", "at": "https://me:word@x.example"}'
    done = await browser.post("/automations/light/run", data={"payload": given}, headers=OWN)
    page = html.unescape((await browser.get(done.headers["location"])).text)
    assert '"lamp": "left"' in page
    assert "hush" not in page
    assert "me:word" not in page
    assert "[automation.agent]" in page
    told = await browser.post(f"/runs/{city.run}/send", data={"text": "and the right one"}, headers=OWN)
    assert told.headers["location"] == f"/runs/{city.run}"
    assert (await browser.post(f"/runs/{city.run}/send", data={"text": " "}, headers=OWN)).status_code == 400
    said = {"completion_id": completion_id(city.other), "outcome": "failed", "summary_markdown": "no oil"}
    await city.call("POST", f"/api/v1/runs/{city.other}/complete", headers=city.of_run(city.other), body=said)
    await browser.post(f"/runs/{city.other}/claim", headers=OWN)
    assert "Let go" in (await browser.get(f"/runs/{city.other}")).text
    await browser.post(f"/runs/{city.other}/unclaim", headers=OWN)
    form = {"outcome": "succeeded", "reason": "oil came"}
    await browser.post(f"/runs/{city.other}/resolve", data=form, headers=OWN)
    assert city.row(city.other).state.value == "succeeded"
    assert "oil came" in (await browser.get(f"/runs/{city.other}")).text


async def test_notes_are_kept_and_not_overwritten(browser: httpx2.AsyncClient) -> None:
    kept = await browser.post(
        "/automations/light/notes", data={"text": "<i>left\r\nfirst", "version": "0"}, headers=OWN
    )
    assert kept.status_code == 303
    assert "&lt;i&gt;left\nfirst</textarea>" in (await browser.get("/automations/light")).text
    late = await browser.post("/automations/light/notes", data={"text": "right", "version": "0"}, headers=OWN)
    assert (late.status_code, "somebody wrote meanwhile" in late.text) == (409, True)


def test_a_chart_stands_on_its_ground_and_hides_no_run() -> None:
    days = [StripDay("2026-03-01", 1001, {"succeeded": 1000, "failed": 1}), StripDay("2026-03-02", 0, {})]
    chart = outcomes_of([*days, StripDay("2026-03-03", 3, {"burnt": 2, "skipped": 1})])
    assert chart.outcomes == ["succeeded", "failed", "skipped", "burnt"]
    assert (chart.runs, chart.most) == (1004, 1001)
    for bar in chart.bars:
        assert all(piece.height >= 1.5 and 0 <= piece.y <= HEIGHT for piece in bar.pieces)
        if bar.pieces:
            assert abs(bar.pieces[0].y + bar.pieces[0].height - HEIGHT) < 0.1
    assert outcomes_of([]).runs == 0
