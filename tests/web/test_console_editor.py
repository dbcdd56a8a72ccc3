"""The editor of automations: what the form says, what is refused beside its field, and what is stored."""

import html
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from served import Served
from test_hooks import connect, send

from lamplighter.domain.access import owner
from lamplighter.domain.connections.polling import GITHUB
from lamplighter.domain.delivery_fields import Provider
from lamplighter.services.automations import editing
from lamplighter.services.automations.operations import CREATE, CreateAutomation
from lamplighter.services.automations.queries import EXPORT, ExportAutomation
from lamplighter.store.connections import ConnectionRow
from lamplighter.store.polls import PollRow

OWN = {"Sec-Fetch-Site": "same-origin"}
EVERYTHING: Mapping[str, Any] = {
    "name": "all-of-it",
    "description": "Has <everything>.",
    "timezone": "Europe/Berlin",
    "agent": {"prompt": "Look.\n\nThen say.\n", "mode": "plan", "path": "/tmp", "model": "m", "effort": "high"},  # noqa: S108
    "triggers": [
        {"gate": "schedule", "cadence": "hourly", "minute": 5},
        {"gate": "schedule", "cadence": "daily", "hour": 3, "minute": 30},
        {"gate": "schedule", "cadence": "weekly", "weekday": "fri", "hour": 15, "minute": 0},
        {"gate": "schedule", "cadence": "once", "at": "2099-12-01T09:00:00+01:00"},
        {"gate": "cron", "schedule": "0 9 * * mon-fri"},
        {"gate": "cooldown", "interval": "2h"},
        {"gate": "condition", "check": "test -e x", "interval": "5m", "check_timeout": "3s"},
        {"gate": "event", "on": "bead.*", "match": {"a.b": ["x", 1], "c": True}, "batch": 7},
        {"gate": "manual"},
    ],
    "overlap": "queue",
    "catch_up": {"mode": "all", "within": "3h", "limit": 4},
    "retry": {"count": 2, "backoff": "1m", "most": "9m"},
    "auto_disable_after": 0,
    "quiet_after": "1d",
    "precheck": "true",
    "verify": "make test",
    "verify_timeout": "4m",
    "rounds": 3,
    "timeout": "8m",
    "deadline": "5h",
    "idle_timeout": "6m",
    "budget": {"cost": 1.5, "tokens": 9000, "time": "7m"},
    "notify": {"to": ["inbox"], "on": ["failed"], "after": 3},
    "jitter": "10s",
    "enabled": False,
}


@pytest.fixture
async def browser(city: Served) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=180) as client:
        token = city.owner["Authorization"].removeprefix("Bearer ")
        assert (await client.post("/sign-in", data={"token": token}, headers=OWN)).status_code == 303
        yield client


def controls(text: str) -> dict[str, str]:
    """What a browser would send of the form as it stands."""
    (form,) = re.findall(r'<form method="post"[^>]*data-preview.*?</form>', text, re.DOTALL)
    found = {}
    for tag in re.findall(r"<input [^>]*>", form):
        facts = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if facts.get("type") not in {"radio", "checkbox"} or " checked" in tag:
            found[facts["name"]] = facts.get("value", "")
    found |= dict(re.findall(r'<textarea [^>]*?name="([^"]*)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL))
    for name, inside in re.findall(r'<select [^>]*?name="([^"]*)"[^>]*>(.*?)</select>', form, re.DOTALL):
        (chosen,) = re.findall(r'<option(?: value="([^"]*)")? selected>([^<]*)<', inside) or [("", "")]
        found[name] = chosen[0] or chosen[1]
    return {name: html.unescape(value) for name, value in found.items()}


async def toml(city: Served, name: str) -> str:
    return (await city.operations.do(EXPORT, ExportAutomation(name), owner("ada"), surface="test")).toml


async def test_the_form_of_a_stored_automation_says_the_same_again(browser: httpx2.AsyncClient, city: Served) -> None:
    """Every kind of trigger and every policy, through the form and back."""
    await city.operations.do(CREATE, CreateAutomation(EVERYTHING), owner("ada"), surface="test")
    before = await toml(city, "all-of-it")
    page = await browser.get("/automations/all-of-it/edit")
    assert "Right as it is" in page.text
    assert "Nothing so far." in page.text
    form = controls(page.text)
    assert form["t7.event.match"] == '"a.b" = ["x", 1]\nc = true'
    done = await browser.post("/automations/all-of-it/edit", data=form, headers=OWN)
    assert (done.status_code, done.headers["location"]) == (303, "/automations/all-of-it")
    assert await toml(city, "all-of-it") == before
    form |= {"t5.kind": "none", "retry.count": "", "action": "exec", "exec": "make", "budget.cost": "",
             "budget.tokens": "", "budget.time": "", "idle_timeout": "", "rounds": ""}  # fmt: skip
    looked = await browser.post("/automations/all-of-it/edit/preview", data=form, headers=OWN)
    assert '<li class="line-del">-interval = &#34;2h&#34;</li>' in looked.text
    assert await toml(city, "all-of-it") == before  # nothing is stored by looking
    stale = await browser.post("/automations/all-of-it/edit", data=form | {"version": "other"}, headers=OWN)
    assert (stale.status_code, "has changed since it was read" in stale.text) == (412, True)
    assert (await browser.post("/automations/all-of-it/edit", data=form, headers=OWN)).status_code == 303
    after = await toml(city, "all-of-it")
    assert 'exec = "make"' in after
    assert "cooldown" not in after
    assert "agent" not in after


@pytest.mark.parametrize("listed", [["gh", "other"], [], None])
async def test_the_connections_of_runs_stay_as_they_are_listed(
    browser: httpx2.AsyncClient, city: Served, listed: list[str] | None
) -> None:
    """None listed, and no list, are two things: the first keeps tokens away from its runs."""

    def add(tx: Any) -> None:
        now = city.opened.clock.now()
        for name in ("gh", "other"):
            tx.connections.add(ConnectionRow(name, Provider.GITHUB, "", (), (), (), now, "ada"))
            tx.polls.add(PollRow(name, "acme/web", GITHUB, "TOKEN", {}, now))

    city.opened.store.transact(add)
    body: dict[str, Any] = {"name": "uses", "exec": "true", "gate": "manual"}
    body |= {} if listed is None else {"connections": listed}
    assert (await browser.post("/api/v1/automations", json=body, headers=city.owner)).status_code == 201
    said = controls((await browser.get("/automations/uses/edit")).text)
    assert said["connections"] == {0: "none", 2: "gh, other"}.get(-1 if listed is None else len(listed), "")
    done = await browser.post("/automations/uses/edit", data=said, headers=OWN)
    assert done.status_code == 303, done.text
    kept = (await browser.get("/api/v1/automations/uses", headers=city.owner)).json()
    assert kept["policies"]["connections"] == listed


async def test_what_is_wrong_is_said_beside_its_field_and_what_was_typed_stays(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    form = controls((await browser.get("/automations/new/own")).text)
    form |= {"name": "tidy up", "exec": "make tidy", "t0.kind": "cron", "t0.cron.schedule": "61 * * * *",
             "retry.count": "many", "t1.kind": "weekly", "t1.weekly.time": "late",
             "t1.weekly.weekday": "mon"}  # fmt: skip
    for path, status in (("/automations/new/own/preview", 200), ("/automations/new/own", 422)):
        page = await browser.post(path, data=form, headers=OWN)
        assert page.status_code == status
        for control, told in (
            ("name", "holds a space; write `tidy-up`"), ("t0-cron-schedule", "has a minute of 61"),
            ("retry-count", "takes a whole number"), ("t1-weekly-time", "it takes a whole number"),
        ):  # fmt: skip
            (wrong,) = re.findall(rf'id="p-{control}" data-problem>([^<]*)<', page.text)
            assert told in html.unescape(wrong), control
        assert 'value="61 * * * *"' in page.text
    form |= {"name": "tidy", "t0.kind": "daily", "t0.daily.time": "03:30", "retry.count": "2", "t1.kind": "none"}
    page = await browser.post("/automations/new/own/preview", data=form, headers=OWN)
    assert "Right as it is" in page.text
    assert page.text.count(" 03:30</td>") == 5
    form.pop("enabled")
    done = await browser.post("/automations/new/own", data=form, headers=OWN)
    assert done.headers["location"] == "/automations/tidy"
    row = city.opened.store.read(lambda tx: editing.get(tx, "tidy"))
    assert (row.enabled, row.source) == (False, "web")
    again = await browser.post("/automations/new/own", data=form, headers=OWN)
    assert (again.status_code, "already an automation" in again.text) == (409, True)


async def test_an_agent_without_a_mode_and_rubbish_are_told(browser: httpx2.AsyncClient) -> None:
    form = {"name": "look", "action": "agent", "agent.prompt": "x", "t0.kind": "manual"}
    page = await browser.post("/automations/new/own/preview", data=form, headers=OWN)
    assert "what the agent may do without asking" in page.text
    rubbish = {"action": "<b>", "t0.kind": "nonsense", "t19.kind": "event", "t19.event.match": "not toml ]"}
    page = await browser.post("/automations/new/own", data=rubbish, headers=OWN)
    assert page.status_code == 422
    assert "it takes a table" in page.text
    assert "<b>" not in re.sub(r'<b class="count".*?</b>', "", page.text)


async def test_a_dry_run_runs_what_decides_once_and_stores_nothing(browser: httpx2.AsyncClient, city: Served) -> None:
    """On the editor's page with what the form says, and on the automation's page as it is stored."""
    root = city.opened.paths.root
    form = {"name": "guard", "exec": f"touch {root}/ran", "t0.kind": "condition", "t0.condition.check": "test -e lit",
            "precheck": "echo 'nothing <b>waits</b>'; exit 75"}  # fmt: skip
    page = html.unescape((await browser.post("/automations/new/own/test", data=form, headers=OWN)).text)
    assert "Nothing to do: the run would be skipped." in page
    assert "The trigger would not fire: exit code 1." in page
    assert "nothing <b>waits</b>" in page
    assert 'data-refetch="/automations/new/own"' in page
    assert (await browser.get("/automations/guard")).status_code == 404
    wrong = await browser.post("/automations/new/own/test", data=form | {"retry.count": "many"}, headers=OWN)
    assert "nothing was tried" in wrong.text
    assert (await browser.post("/automations/new/own", data=form, headers=OWN)).status_code == 303
    (root / "lit").touch()
    page = html.unescape((await browser.post("/automations/guard/test", headers=OWN)).text)
    assert "The trigger would fire." in page
    assert 'data-refetch="/automations/guard"' in page
    changed = controls((await browser.get("/automations/guard/edit")).text) | {"precheck": "exit 3"}
    page = html.unescape((await browser.post("/automations/guard/edit/test", data=changed, headers=OWN)).text)
    assert "The run would fail: exit code 3 is neither 0 nor 75." in page
    changed |= {"precheck": "sleep 60", "timeout": "1s"}
    page = html.unescape((await browser.post("/automations/guard/edit/test", data=changed, headers=OWN)).text)
    assert "It did not end within 1 s and was killed." in page
    assert "exit 75" in await toml(city, "guard")
    assert not (root / "ran").exists()
    assert await city.operations.host.commands.kept() == []
    plain = {"name": "plain", "exec": "true", "t0.kind": "manual"}
    page = await browser.post("/automations/new/own/test", data=plain, headers=OWN)
    assert "Nothing decides beforehand" in page.text


async def test_a_dry_run_judges_by_the_filters_what_came_in_lately(browser: httpx2.AsyncClient, city: Served) -> None:
    await connect(city, "plain", provider="bearer")
    token = await connect(city, "shop", provider="bearer")
    for title in ("one", "two"):
        body = json.dumps({"type": "order", "title": title, "data": {"lamp": title}}).encode()
        assert (await send(city, {"authorization": f"Bearer {token}"}, body, "shop")).status_code == 202
    await browser.post("/api/v1/events", json={"type": "bell.rung", "payload": {"loud": True}}, headers=city.owner)
    form = {"name": "guard", "exec": "true", "t0.kind": "webhook", "t0.webhook.connection": "shop",
            "t0.webhook.match": 'data.lamp = "one"', "t1.kind": "event", "t1.event.on": "bell.*"}  # fmt: skip
    text = (await browser.post("/automations/new/own/test", data=form, headers=OWN)).text
    tried = html.unescape(text.partition('id="tried"')[2].partition("</section>")[0])
    assert tried.count("would fire") == 2
    assert tried.count("would not") == 1
    assert '<code>data.lamp</code> is "two"; wanted is "one"' in tried
    assert f"{city.url}/hooks/shop" in text  # where to send it, beside the trigger


async def test_one_that_a_file_defines_is_read_only_and_one_of_an_agent_is_to_be_armed(
    browser: httpx2.AsyncClient, city: Served
) -> None:
    def by_agent(tx: Any) -> None:
        body = {"name": "idea", "gate": "manual", "exec": "true", "enabled": False}
        editing.create(tx, body, source="agent", rules=city.operations.configured().rules, ctx=city.opened.context())
        row = editing.create(
            tx, body | {"name": "filed"}, source="file", rules=city.operations.configured().rules,
            ctx=city.opened.context(),
        )  # fmt: skip
        assert row.source == "file"

    city.opened.store.transact(by_agent)
    page = await browser.get("/automations/filed/edit")
    assert "read-only here" in page.text
    file = city.opened.paths.root / "filed.toml"
    file.write_text('# why it is there\n\n[automation]\nexec = "true"\n')
    city.opened.store.transact(lambda tx: tx.automations.save(replace(editing.get(tx, "filed"), path=str(file))))
    text = (await browser.get("/automations/filed/edit")).text
    assert f"<code>{file}</code>, line 3, and read-only here" in text
    assert '<li class="here">[automation]</li>' in text
    assert "# why it is there" in text
    assert f"{file}:3</a>" in (await browser.get("/automations/filed")).text
    assert "data-preview" not in page.text
    refused = await browser.post("/automations/filed/edit", data={"name": "filed", "exec": "x"}, headers=OWN)
    assert refused.status_code == 409
    page = await browser.get("/automations/idea")
    assert "An agent proposes it." in page.text
    assert (await browser.post("/automations/idea/enable", headers=OWN)).status_code == 303
    assert "An agent proposes it." not in (await browser.get("/automations/idea")).text
    assert (await browser.post("/automations/idea/delete", headers=OWN)).status_code == 400
    gone = await browser.post("/automations/idea/delete", data={"sure": "yes"}, headers=OWN)
    assert gone.headers["location"] == "/automations"
    assert (await browser.get("/automations/idea")).status_code == 404
