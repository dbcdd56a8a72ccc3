"""Finding things in the console: the bar that filters runs, files of what it finds, and the search for everything."""

import csv
import html
import json
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx2
import pytest
from served import Served
from test_people import token_of

from lamplighter.domain.access import Role
from lamplighter.domain.runs.model import RunState
from lamplighter.store.looks import Look
from lamplighter.store.tx import Tx
from lamplighter.web.console.pages.runs import with_state, with_term
from lamplighter.web.console.tables import csv_line

OWN = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
async def browser(city: Served) -> AsyncIterator[httpx2.AsyncClient]:
    """Signed in; one of two runs has succeeded."""
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=180) as client:
        token = city.owner["Authorization"].removeprefix("Bearer ")
        assert (await client.post("/sign-in", data={"token": token}, headers=OWN)).status_code == 303
        await city.complete(city.of_run(), outcome="succeeded", summary_markdown='=HYPERLINK("evil"), <b>done</b>')
        yield client


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("", "failed", "state:failed"),
        ("since:2d state:failed automation:a*", "ready", "since:2d automation:a* state:ready"),
        ("-state:failed state:ready", "", "-state:failed"),
        ('state:"a b" since:1d', "", "since:1d"),
    ],
)
def test_a_chip_replaces_one_term_of_the_query(text: str, value: str, found: str) -> None:
    assert with_term(text, "state", value) == found


def test_the_chip_of_runs_that_need_a_person_leaves_out_those_that_were_answered() -> None:
    asks = with_state("since:2d state:failed", RunState.NEEDS_HUMAN)
    assert asks == "since:2d state:needs_human continued:no"
    assert with_state(asks, RunState.FAILED) == "since:2d state:failed"
    assert with_state(asks, None) == "since:2d"


def test_a_cell_is_never_a_formula() -> None:
    assert csv_line(["=1+1", "plain", '"', "-2"]) == '\'=1+1,plain,"""",\'-2\r\n'


async def test_runs_are_filtered_by_a_query_in_the_address(browser: httpx2.AsyncClient, city: Served) -> None:
    page = await browser.get("/runs?q=state:succeeded automation:lig* since:1d")
    assert f'id="row-{city.run}"' in page.text
    assert f'id="row-{city.other}"' not in page.text
    assert "lamp run list --query &#39;state:succeeded automation:lig* since:1d&#39;" in page.text
    assert f'id="row-{city.other}"' in (await browser.get("/runs?automation=light&state=running")).text
    wrong = await browser.get("/runs?q=sate:failed")
    assert (wrong.status_code, "did you mean `state`" in html.unescape(wrong.text)) == (400, True)
    assert "Nothing was searched." in wrong.text
    none = (await browser.get("/runs?q=rig:nowhere")).text
    assert "No run fits `rig:nowhere`. All runs that are kept were searched." in none


async def test_what_a_query_finds_is_written_as_csv_and_as_json_lines(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    answer = await browser.get("/runs/export/csv?q=state:succeeded")
    assert answer.headers["content-disposition"] == 'attachment; filename="runs.csv"'
    (one,) = csv.DictReader(answer.text.splitlines())
    assert (one["id"], one["state"]) == (city.run, "succeeded")
    assert one["summary"].startswith("'=HYPERLINK")
    lines = (await browser.get("/runs/export/json")).text.splitlines()
    assert {json.loads(line)["id"] for line in lines} == {city.run, city.other}
    assert (await browser.get("/runs/export/xml")).status_code == 404
    assert (await browser.get("/runs/export/csv?q=nonsense")).status_code == 400


async def test_a_filter_is_kept_under_a_name_for_oneself_or_for_everybody(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    form = {"name": "mine", "query": "state:failed since:2d", "shared": ""}
    kept = await browser.post("/runs/views/save", data=form, headers=OWN)
    assert kept.headers["location"] == "/runs?q=state%3Afailed+since%3A2d"
    await browser.post("/runs/views/save", data=form | {"name": "ours", "shared": "yes"}, headers=OWN)
    assert ">mine</a>" in (await browser.get("/runs")).text
    token = token_of(city, Role.MEMBER)["Authorization"].removeprefix("Bearer ")
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False) as other:
        await other.post("/sign-in", data={"token": token}, headers=OWN)
        text = (await other.get("/runs")).text
        assert ">mine</a>" not in text
        assert ">ours <b>owner</b></a>" in text
        assert (await other.post("/runs/views/forget", data={"name": "ours"}, headers=OWN)).status_code == 404
    assert (await browser.post("/runs/views/forget", data={"name": "mine"}, headers=OWN)).status_code == 303
    assert ">mine</a>" not in (await browser.get("/runs")).text
    for wrong in ({"query": "sate:x"}, {"query": " "}, {"name": ""}, {"name": "a/b"}):
        assert (await browser.post("/runs/views/save", data=form | wrong, headers=OWN)).status_code == 400
    for number in range(19):
        await browser.post("/runs/views/save", data=form | {"name": str(number)}, headers=OWN)
    assert (await browser.post("/runs/views/save", data=form, headers=OWN)).status_code == 409


async def test_pages_automations_runs_and_doings_are_found_by_a_few_letters(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    text = (await browser.get("/search?q=LIG")).text
    assert 'href="/automations/light"' in text
    assert 'action="/automations/light/run"' in text
    assert f'href="/runs/{city.run}"' in (await browser.get(f"/search?q={city.run[-6:]}")).text
    assert 'action="/settings/pause"' in (await browser.get("/search?q=pause")).text
    assert 'href="/calendar"' in (await browser.get("/search")).text
    for nonsense in ("%25", "_", "%27;--", "<b>", "run_%00"):
        found = await browser.get(f"/search?q={nonsense}")
        assert found.status_code in {200, 400}
        assert 'href="/automations/light"' not in found.text


async def test_the_board_shows_work_and_on_request_what_runs_keep_of_themselves(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    made = await browser.post(
        "/api/v1/beads", json={"title": "Trim the wick"}, headers=city.owner | {"Idempotency-Key": "trim"}
    )
    assert made.is_success, made.text
    board, everything = [(await browser.get(path)).text for path in ("/beads", "/beads?runs=1")]
    assert "Trim the wick" in board
    assert "automation:light" not in board
    assert "Every run keeps a bead of itself" in board
    assert "Trim the wick" in everything
    assert "automation:light" in everything


async def test_an_event_s_message_shows_no_escape_codes(browser: httpx2.AsyncClient, city: Served) -> None:
    told = await browser.post(
        "/api/v1/events", json={"type": "bell.rung", "message": "\x1b[31mloud\x1b[0m"}, headers=city.owner
    )
    assert told.is_success, told.text
    page = (await browser.get("/events?type=bell.rung")).text
    assert "loud" in page
    assert "[31m" not in page


async def test_a_view_that_is_first_is_what_one_sees_and_is_counted_in_the_navigation(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    form = {"name": "done", "query": "state:succeeded", "first": "yes"}
    await browser.post("/runs/views/save", data=form, headers=OWN)
    await browser.post("/runs/views/save", data=form | {"name": "lit", "query": "automation:light"}, headers=OWN)
    first = await browser.get("/runs")
    assert first.headers["location"] == "/runs?q=automation%3Alight"  # the later one; there is one of each person
    assert (await browser.get("/runs?all")).status_code == 200
    nav = (await browser.get("/settings")).text.partition('id="nav"')[2].partition("</nav>")[0]
    assert '<span>lit</span><b class="soft">2</b>' in nav
    assert '<span>done</span><b class="soft">1</b>' in nav
    token = token_of(city, Role.MEMBER)["Authorization"].removeprefix("Bearer ")
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False) as other:
        await other.post("/sign-in", data={"token": token}, headers=OWN)
        assert (await other.get("/runs")).status_code == 200  # what is first is each person's own


async def test_a_pinned_automation_stands_on_top_with_its_owner_and_tags(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    made = {"name": "zebra", "gate": "manual", "exec": "true", "owner": "ada", "tags": ["ci", "ci", "night"]}
    answer = await city.call("POST", "/api/v1/automations", headers=city.owner, body=made)
    assert (answer.json()["owner"], answer.json()["tags"]) == ("ada", ["ci", "night"])
    for wrong in ({"tags": "ci"}, {"tags": ["two words"]}, {"tags": ["x"] * 11}, {"owner": 7}, {"owner": "x" * 81}):
        refused = await city.call("POST", "/api/v1/automations", headers=city.owner, body=made | {"name": "b"} | wrong)
        assert refused.status_code == 400, wrong
    before = (await browser.get("/automations")).text
    assert before.index("/automations/light") < before.index("/automations/zebra")
    assert '<span class="tag">night</span>' in before
    pinned = await browser.post("/automations/zebra/pin", headers=OWN)
    assert pinned.headers["location"] == "/automations/zebra"
    after = (await browser.get("/automations")).text.partition("<tbody>")[2]
    assert after.index("/automations/zebra") < after.index("/automations/light")
    page = (await browser.get("/automations/zebra")).text
    assert 'action="/automations/zebra/unpin"' in page
    assert "<dd>ada</dd>" in page
    await browser.post("/automations/zebra/unpin", headers=OWN)
    last = (await browser.get("/automations")).text.partition("<tbody>")[2]
    assert last.index("/automations/light") < last.index("/automations/zebra")
    assert (await browser.post("/automations/none/pin", headers=OWN)).status_code == 404
    toml = (await browser.get("/automations/zebra")).text.partition('id="definition"')[2]
    assert "tags = [" in toml


async def test_the_start_page_knows_when_one_looked_before(browser: httpx2.AsyncClient, city: Served) -> None:
    assert "Done lately" in (await browser.get("/")).text

    def long_ago(tx: Tx) -> None:
        known = tx.looks.get("owner")
        assert known is not None
        tx.looks.put("owner", Look(known.at - timedelta(hours=2), None))

    city.opened.store.transact(long_ago)
    text = (await browser.get("/")).text
    assert "Done since you last looked" in text
    assert "=HYPERLINK" in text.partition('id="done"')[2]
