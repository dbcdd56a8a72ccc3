"""What the end of an agent run says about the login that it was started with."""

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from automation_city import CITY, City
from test_pipeline_cases import AGENT, ready, take

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.sessions.logins import Login, LoginKey, LoginState, Wait
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import NotFound
from lamplighter.kit.records import changed
from lamplighter.services import logins
from lamplighter.services.logins import FORGOTTEN_AFTER, NOTED_EVERY
from lamplighter.services.runs import executing, review
from lamplighter.services.runs.bounds import HELD
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.url import open_store

HOME = "/home/ada"
KEY = LoginKey("here", "claude", HOME)
IN_FORCE = {"preset": "claude", "login_home": HOME}
SECOND = timedelta(seconds=1)


@pytest.fixture
def run(city: City) -> Run:
    city.add("sweep", agent=AGENT)
    row = city.get(city.run_now("sweep").run)
    return changed(row, node="here", in_force=IN_FORCE, state=RunState.SUCCEEDED, configuration="docs")


def ended(city: City, run: Run, found: Login | None = None, **fields: Any) -> None:
    city.run(logins.after_run, changed(run, **fields), found, ctx=city.context)


def known(city: City) -> dict[tuple[str, str, str], str]:
    rows = city.read(lambda tx: tx.logins.all())
    return {(one.key.home, one.key.account, one.model): one.state.value for one in rows}


def put(city: City, state: LoginState, key: LoginKey = KEY, **fields: Any) -> Login:
    made = Login(key, state, city.clock.now(), **fields)
    city.run(lambda tx: tx.logins.put(made))
    return made


@pytest.mark.parametrize(
    ("fields", "works"),
    [
        ({}, True),
        ({"state": RunState.NEEDS_HUMAN}, True),
        ({"state": RunState.FAILED, "reason": "no_completion", "tokens": 7}, True),
        ({"state": RunState.FAILED, "reason": "no_completion", "tokens": 0}, False),
        ({"state": RunState.FAILED, "reason": "stuck", "tokens": 7}, False),
        ({"state": RunState.CANCELED, "tokens": 7}, False),
        ({"node": None}, False),
        ({"in_force": None}, False),
        ({"in_force": {"preset": "claude"}}, False),
    ],
)
def test_a_run_that_its_program_worked_on_shows_that_the_login_works(
    city: City, run: Run, fields: Mapping[str, Any], works: bool  # noqa: FBT001  a table
) -> None:  # fmt: skip
    ended(city, run, **fields)
    assert known(city) == ({(HOME, "", ""): "works"} if works else {})


def test_a_login_that_works_again_is_told_once_and_takes_refusals_of_its_home_with_it(city: City, run: Run) -> None:
    other = LoginKey("here", "claude", HOME, "old-keys")
    elsewhere = [LoginKey("there", "claude", HOME), LoginKey("here", "codex", HOME), LoginKey("here", "claude", "/x")]
    for key in (KEY, other, *elsewhere):
        put(city, LoginState.REFUSED, key)
    for model in ("", "big"):
        put(city, LoginState.LIMITED, KEY, model=model or "small", until=city.clock.now())
    put(city, LoginState.LIMITED, other, model="big", until=city.clock.now())
    ended(city, run, in_force=IN_FORCE | {"model": "big"})
    left = city.read(lambda tx: tx.logins.all())
    assert {(one.key, one.model, one.state.value) for one in left} == {
        *((key, "", "login") for key in elsewhere), (KEY, "small", "provider_limit"), (other, "big", "provider_limit"),
        (KEY, "", "works"),
    }  # fmt: skip
    assert len(city.events("login.works")) == 3
    ended(city, run, in_force=IN_FORCE | {"model": "big"})
    assert len(city.events("login.works")) == 3


def test_that_a_login_works_is_noted_once_in_a_while_and_since_when(city: City, run: Run) -> None:
    row = lambda: city.read(lambda tx: tx.logins.all())[0]  # noqa: E731
    ended(city, run)
    began = city.clock.now()
    assert (row().since, row().looked_at, row().configuration) == (began, began, "docs")
    city.advance(seconds=(NOTED_EVERY - SECOND).total_seconds())
    ended(city, run, configuration="web")
    assert (row().looked_at, row().configuration) == (began, "docs")
    city.advance(seconds=1)
    ended(city, run, configuration="web")
    assert (row().since, row().looked_at, row().configuration) == (began, began + NOTED_EVERY, "web")


def test_a_login_that_stops_to_work_is_told_once_whatever_the_number_of_runs(city: City, run: Run) -> None:
    began = city.clock.now()
    failed = {"state": RunState.FAILED, "reason": "login"}
    for _ in range(2):
        ended(city, run, Login(KEY, LoginState.REFUSED, city.clock.now(), detail="Sign in."), **failed)
        city.advance(seconds=1)
    (row,) = city.read(lambda tx: tx.logins.all())
    assert (row.since, row.looked_at, row.configuration) == (began, began + SECOND, "docs")
    (told,) = city.events("login.refused")
    assert (told.subject, told.message, bool(told.payload["sign_in"])) == ("claude", "Sign in.", True)
    until = city.clock.now() + NOTED_EVERY
    ended(city, run, Login(KEY, LoginState.LIMITED, city.clock.now(), until=until), **failed)
    assert known(city) == {(HOME, "", ""): "provider_limit"}
    (limited,) = city.events("login.limited")
    assert "sign_in" not in limited.payload
    assert limited.payload["until"]
    ended(city, run, Login(KEY, LoginState.LIMITED, city.clock.now(), model="big"), **failed)
    assert known(city) == {(HOME, "", ""): "provider_limit"}, "nobody knows when it is lifted"


def test_a_run_that_tried_a_login_and_found_nothing_out_leaves_it_to_the_next(city: City, run: Run) -> None:
    refused = put(city, LoginState.REFUSED)
    trying = lambda: city.read(lambda tx: tx.logins.all())[0].trying  # noqa: E731
    assert city.run(lambda tx: tx.logins.try_it(refused, run.id, city.clock.now()))
    ended(city, run, state=RunState.FAILED, reason="worktree_failed")
    assert trying() == run.id, "it did not try"
    ended(city, run, state=RunState.FAILED, reason="worktree_failed", in_force=IN_FORCE | {"tries_login": "yes"})
    assert trying() is None


def test_a_login_that_nobody_uses_is_forgotten(city: City) -> None:
    now = city.clock.now()
    put(city, LoginState.WORKS, looked_at=now)
    assert city.run(logins.prune, now=now + FORGOTTEN_AFTER) == 0
    assert city.run(logins.prune, now=now + FORGOTTEN_AFTER + SECOND) == 1


def test_a_run_that_waits_for_a_login_says_once_for_which_and_until_when_and_loses_no_time_by_it(city: City) -> None:
    city.add("sweep", agent=AGENT)
    run = city.run_now("sweep").run
    item = ready(city, run)
    now, later = city.clock.now(), city.clock.now() + timedelta(hours=3)
    refused = Login(KEY, LoginState.REFUSED, now, detail="Sign in.")
    limited = Login(KEY, LoginState.LIMITED, now, model="big", until=now + NOTED_EVERY, detail="Too much.")

    def held(why: Login) -> list[Mapping[str, Any]]:
        nonlocal item
        city.run(executing.hold, item, Wait(now + SECOND, why), later, ctx=city.context)
        row = city.get(run)
        assert (row.state, row.reason, row.error, row.deadline_at) == (
            RunState.READY, why.state.value, why.detail, later,
        )  # fmt: skip
        assert row.lifts_at == (why.until or now + SECOND)
        assert city.run(lambda tx: tx.outbox.lock(item.id)).due_at == now + SECOND
        city.advance(seconds=2)
        item = take(city, run, "enqueue_execute")
        return [event["data"] for event in city.shown(run)["events"] if event["type"] == HELD]

    told = {"reason": "login", "preset": "claude", "home": HOME}
    assert held(refused) == [told]
    assert held(refused) == [told]
    until = {"reason": "provider_limit", "until": rfc3339(now + NOTED_EVERY)}
    assert held(limited) == [told, told | until]
    city.run(review.cancel, run, ctx=city.context)
    city.run(executing.hold, item, Wait(now, refused), later, ctx=city.context)
    assert city.get(run).state is RunState.CANCELED
    assert city.run(lambda tx: tx.outbox.lock(item.id)).state == "done"


async def test_a_check_asks_each_program_once_and_lets_a_refused_login_be_tried_again(city: City) -> None:
    now = city.clock.now()
    codex = LoginKey("here", "codex", HOME)
    put(city, LoginState.REFUSED, looked_at=now, detail="Sign in.")
    put(city, LoginState.LIMITED, model="big", until=now)
    put(city, LoginState.WORKS, codex, looked_at=now)
    answers: dict[str, bool | None] = {"claude": None, "codex": True}

    async def ask_login(one: Login) -> bool | None:
        return answers[one.key.preset]

    store = open_store(city.place, CITY, Wakes())
    host: Any = SimpleNamespace(store=store, ask_login=ask_login)

    async def check(preset: str | None = None) -> list[tuple[str, bool | None, str, bool]]:
        found = await logins.check_logins(host, logins.CheckLogins(preset), city.context)
        return [(one.preset, one.signed_in, one.detail.split(";")[0].rstrip("."), bool(one.sign_in)) for one in found]

    try:
        refused = ("claude", None, "It was refused", True)
        assert await check() == [refused, ("codex", True, "It is signed in", False)]
        assert city.read(lambda tx: tx.logins.all())[0].looked_at is None
        put(city, LoginState.REFUSED, looked_at=now)
        answers = {"claude": False, "codex": None}
        assert await check("claude") == [("claude", False, "It is not signed in", True)]
        assert city.read(lambda tx: tx.logins.all())[0].looked_at == now
        ((_, _, detail, advice),) = await check("codex")
        assert (detail.startswith("It worked at 2026-03-02T09:00:00"), advice) == (True, False)
        for preset, near in (("cluade", "did you mean `claude`"), ("gemini", "gemini")):
            with pytest.raises(NotFound, match=near):
                await check(preset)
    finally:
        await store.close()
