"""Small rules, each as a table: names, destinations, artifacts, what waits, and what may go on."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamplighter.domain.automations.admission import (
    LOOK_AGAIN,
    Fire,
    Hold,
    Origin,
    Replace,
    Skip,
    UsedUp,
    barred,
    by_budget,
    while_a_person_decides,
)
from lamplighter.domain.automations.decisions import SkipReason, Switches
from lamplighter.domain.automations.model import AgentAction
from lamplighter.domain.automations.model import Mode as WishedMode
from lamplighter.domain.city.model import Agent, City, Configuration, Pool, Provider, Workspace
from lamplighter.domain.city.planners import not_spoken_to
from lamplighter.domain.city.run_plan import CannotRun, chosen_preset, mode_of
from lamplighter.domain.city.sections import slack_destination
from lamplighter.domain.delivery.reach import need_of, stage_of
from lamplighter.domain.runs.artifacts import LONGEST_KEY, KeyRefused, checked_key, checked_prefix
from lamplighter.domain.sessions.crashes import signal_name
from lamplighter.domain.sessions.logins import (
    CHECK_EVERY,
    LONGEST_TRY,
    TRY_EVERY,
    GiveUp,
    Go,
    Login,
    LoginKey,
    LoginState,
    Wait,
    Waiting,
    account_of,
    decide,
    home_of,
    in_the_way,
)
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.sessions.presets.model import Mode
from lamplighter.domain.sessions.resuming import QUICK, Conversed, may_go_on
from lamplighter.domain.slack.doing import MOST, THINKS, doing, kind_of

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
HOUR, SECOND, INSTANT = timedelta(hours=1), timedelta(seconds=1), timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("name", "kind", "place"),
    [
        ("slack:C1", "slack_channel", "C1"), ("slack:G1", "slack_channel", "G1"), ("slack:U1", "slack_dm_user", "U1"),
        ("slack:", None, None), ("slack:ops", None, None), ("C1", None, None), ("Slack:C1", None, None),
        ("slack:T1", None, None),
    ],
)  # fmt: skip
def test_a_place_in_slack_is_a_destination_by_its_name(name: str, kind: str | None, place: str | None) -> None:
    found = slack_destination(name)
    if kind is None or found is None:
        assert found is None
        assert kind is None
        return
    assert (found.name, found.kind, found.channel or found.user) == (name, kind, place)


@pytest.mark.parametrize(
    ("status", "name"),
    [(137, "SIGKILL"), (143, "SIGTERM"), (129, "SIGHUP"), (128, None), (1, None), (0, None), (None, None), (255, None)],
)
def test_a_status_above_128_names_the_signal(status: int | None, name: str | None) -> None:
    assert signal_name(status) == name


@pytest.mark.parametrize("key", ["a", "runs/run_1/plan.md", "a@b+c-d.e/_f", "a" * LONGEST_KEY])
def test_a_sound_key_names_an_artifact(key: str) -> None:
    assert checked_key(key) == key
    assert checked_prefix(f"{key}/"[:LONGEST_KEY] if len(key) < LONGEST_KEY else "a/")
    assert checked_prefix("") == ""


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/../b", ".", "a b", "a\n", "a" * (LONGEST_KEY + 1), "é"]
)
def test_a_key_that_leads_elsewhere_is_refused(key: str) -> None:
    with pytest.raises(KeyRefused):
        checked_key(key)
    with pytest.raises(KeyRefused):
        checked_prefix(f"{key}/" if key else "/")
    with pytest.raises(KeyRefused):
        checked_prefix("a")


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("Bash", "runs commands"), ("mcp__x__shell", "runs commands"), ("Edit", "changes files"),
        ("TodoWrite", "plans"),
        ("run_tests", "verifies"), ("Task", "hands work on"), ("WebFetch", "asks the web"), ("Read", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_thread_shows_the_kind_of_what_is_done(tool: str, kind: str) -> None:
    assert kind_of(tool) == kind


def test_the_last_kinds_are_shown_each_once_and_the_newest_last() -> None:
    assert doing("", ["Read"]) == ""
    assert doing(THINKS, ["Read"]) == THINKS
    assert doing(THINKS, ["Bash", "Edit", "Bash"]) == "changes files, runs commands"
    assert doing("changes files, runs commands", ["Edit"]) == "runs commands, changes files"
    many = doing("", ["Bash", "Edit", "Task", "WebFetch", "TodoWrite"])
    assert (len(many.split(", ")), many.split(", ")[0]) == (MOST, "changes files")


@pytest.mark.parametrize(
    ("kind", "payload", "need"),
    [
        ("enqueue_execute", {"rig": "web"}, "rig:web"), ("cook", {"rig": "web"}, "rig:web"),
        ("enqueue_enrich", {"rig": "web"}, None), ("stop_session", {"node": "here", "rig": "web"}, "node:here"),
        ("enqueue_execute", {"rig": ""}, None), ("enqueue_execute", {"node": None, "rig": "web"}, "rig:web"),
        ("cook", {}, None),
    ],
)  # fmt: skip
def test_an_item_needs_its_node_or_its_rig_or_neither(kind: str, payload: dict[str, Any], need: str | None) -> None:
    assert need_of(kind, payload) == need


def test_a_stage_names_what_there_is_to_name() -> None:
    assert stage_of("run_1", None) == {"run": "run_1"}
    assert stage_of("run_1", "web", "exec") == {"run": "run_1", "rig": "web", "action": "exec"}


# ── admission ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_KEEPS, _SKIPS = {Origin.EVENTS, Origin.DELIVERY}, {Origin.HAND, Origin.SLOT, Origin.LATER_SLOT}


@pytest.mark.parametrize("origin", list(Origin))
def test_only_events_and_deliveries_wait_for_a_person_and_for_the_next_day(origin: Origin) -> None:
    waits = while_a_person_decides("run_1", origin, NOW)
    used_up = UsedUp("no more today", NOW + HOUR)
    spent = by_budget(Fire(), used_up, origin)
    if origin in _KEEPS:
        assert (waits, spent) == (Hold(until=NOW + LOOK_AGAIN), Hold(until=NOW + HOUR))
    else:
        assert (waits, spent) == (
            Skip(SkipReason.OVERLAP, "run_1", "its conversation waits for a person"),
            Skip(SkipReason.BUDGET, why="no more today"),
        )
    replaced = Replace(("run_1",))
    assert by_budget(replaced, None, origin) is replaced
    for other in (Hold("run_1"), Skip(SkipReason.PAUSED)):
        assert by_budget(other, used_up, origin) is other
    assert isinstance(by_budget(replaced, used_up, origin), Hold | Skip)


@pytest.mark.parametrize("origin", list(Origin))
def test_what_is_off_skips_all_but_events_and_what_is_held_back_keeps_deliveries_too(origin: Origin) -> None:
    by_hand = origin is Origin.HAND
    for off, reason in ((Switches(enabled=False), SkipReason.DISABLED), (Switches(left_out=True), SkipReason.LEFT_OUT)):
        expected = None if by_hand else Hold() if origin is Origin.EVENTS else Skip(reason)
        assert barred(off, origin) == expected
    assert barred(Switches(paused=True), origin) == (Hold() if origin in _KEEPS else Skip(SkipReason.PAUSED))
    assert barred(Switches(), origin) is None


# ── programs and their logins ─────────────────────────────────────────────────────────────────────────────────────────

CLAUDE = PRESETS["claude"]
KEY = LoginKey("here", "claude", "/h")


def test_a_login_is_kept_where_the_program_is_told_to_or_below_home() -> None:
    assert CLAUDE.login is not None
    variable, root = CLAUDE.login.variable, CLAUDE.login.root
    assert home_of(CLAUDE, {"HOME": "/home/ada"}) == (f"/home/ada/{root}" if root else "/home/ada")
    assert home_of(CLAUDE, {"HOME": "/home/ada", variable: "/elsewhere/"}) == "/elsewhere"
    assert home_of(PRESETS["shell"], {"HOME": "/home/ada"}) == "/home/ada"
    name = min(CLAUDE.keys)
    assert account_of(CLAUDE, {name: ""}) == account_of(CLAUDE, {"OTHER": "x"}) == ""
    assert len(account_of(CLAUDE, {name: "a"})) == 12
    assert account_of(CLAUDE, {name: "a"}) != account_of(CLAUDE, {name: "b"})


def login(state: LoginState, **fields: Any) -> Login:
    return Login(KEY, state, NOW, **fields)


def test_a_refusal_is_in_the_way_of_every_model_and_a_limit_of_its_own() -> None:
    refused, limited = login(LoginState.REFUSED), login(LoginState.LIMITED, model="big")
    other = Login(LoginKey("here", "claude", "/x"), LoginState.REFUSED, NOW)
    assert in_the_way((other, login(LoginState.WORKS)), KEY, "big") is None
    assert in_the_way((limited,), KEY, "small") is None
    assert in_the_way((limited,), KEY, "big") is limited
    assert in_the_way((limited, refused), KEY, "big") is refused


PATIENT = Waiting("run_1", NOW + HOUR)


@pytest.mark.parametrize(
    ("held", "marks", "waiting", "becomes"),
    [
        (None, "", PATIENT, Go()),
        (login(LoginState.LIMITED), "", PATIENT, Go()),
        (login(LoginState.LIMITED, until=NOW), "", PATIENT, Go()),
        (login(LoginState.LIMITED, until=NOW + INSTANT), "", PATIENT, Wait),
        (login(LoginState.LIMITED, until=NOW + HOUR), "", PATIENT, Wait),
        (login(LoginState.LIMITED, until=NOW + HOUR + INSTANT), "", PATIENT, GiveUp),
        (login(LoginState.LIMITED, until=NOW + 9 * HOUR), "", Waiting("r", NOW, by_hand=True), Go()),
        (login(LoginState.REFUSED), "", PATIENT, Go),
        (login(LoginState.REFUSED, looked_at=NOW), "", PATIENT, Wait),
        (login(LoginState.REFUSED, looked_at=NOW), "", Waiting("r", NOW + INSTANT), Wait),
        (login(LoginState.REFUSED, looked_at=NOW), "", Waiting("r", NOW), GiveUp),
        (login(LoginState.REFUSED, looked_at=NOW), "", Waiting("r", NOW, by_hand=True), Go),
        (login(LoginState.REFUSED, looked_at=NOW, marks="a"), "b", PATIENT, Go),
        (login(LoginState.REFUSED, looked_at=NOW - TRY_EVERY + INSTANT), "", PATIENT, Wait),
        (login(LoginState.REFUSED, looked_at=NOW - TRY_EVERY), "", PATIENT, Go),
        (login(LoginState.REFUSED, trying="run_2", trying_since=NOW), "", PATIENT, Wait),
        (login(LoginState.REFUSED, trying="run_2"), "", PATIENT, Wait),
        (login(LoginState.REFUSED, trying="run_1", trying_since=NOW), "", PATIENT, Go),
        (login(LoginState.REFUSED, trying="run_2", trying_since=NOW - LONGEST_TRY + INSTANT), "", PATIENT, Wait),
        (login(LoginState.REFUSED, trying="run_2", trying_since=NOW - LONGEST_TRY), "", PATIENT, Go),
    ],
)
def test_a_run_goes_waits_or_is_given_up_at_the_very_instant(
    held: Login | None, marks: str, waiting: Waiting, becomes: Any
) -> None:
    found = decide(held, marks, waiting, NOW)
    if becomes is Go:
        assert found == Go(held), "it tries the login for all others"
    elif isinstance(becomes, Go):
        assert found == becomes
    else:
        assert isinstance(found, becomes)
    if isinstance(found, Wait):
        assert held is not None
        assert found.until == (held.until or min(NOW + CHECK_EVERY, waiting.give_up_at))


@pytest.mark.parametrize(
    ("starts", "may"),
    [
        ([], True), ([0], True), ([SECOND], True), ([2 * SECOND, SECOND], False), ([QUICK + SECOND, SECOND], True),
        ([QUICK + SECOND - INSTANT, SECOND], False), ([9 * HOUR, 2 * SECOND, SECOND], False),
        ([2 * QUICK, QUICK], True),
    ],
)  # fmt: skip
def test_a_conversation_that_ends_its_program_quickly_twice_is_left(starts: list[Any], may: bool) -> None:  # noqa: FBT001
    had = Conversed("claude", "", "", "/w", tuple(NOW - (one or timedelta(0)) for one in starts))
    assert may_go_on(had, program="claude", work_dir="/w", now=NOW) is may
    assert not may_go_on(had, program="codex", work_dir="/w", now=NOW)
    assert not may_go_on(had, program="claude", work_dir="/x", now=NOW)


@pytest.mark.parametrize(
    ("wished", "configured", "mode"),
    [
        (None, "", Mode.FULL_ACCESS), (None, "plan", Mode.PLAN), (WishedMode.PLAN, "", Mode.PLAN),
        (WishedMode.PLAN, "approval", Mode.PLAN), (WishedMode.FULL_ACCESS, "approval", Mode.APPROVAL),
        (WishedMode.FULL_ACCESS, "", Mode.FULL_ACCESS),
    ],
)  # fmt: skip
def test_a_configuration_bounds_the_mode_and_an_automation_may_bound_it_further(
    wished: WishedMode | None, configured: str, mode: Mode
) -> None:
    assert mode_of(AgentAction("x", mode=wished), Configuration(name="c", mode=configured)) is mode


def test_the_program_of_a_run_is_named_or_the_city_s_or_one_that_is_installed() -> None:
    city = City(workspace=Workspace(name="t"))
    own = City(workspace=Workspace(name="t"), providers={"mine": Provider(command="mine")})
    usual = City(workspace=Workspace(name="t", provider="codex"))
    there = lambda *names: lambda program: program in names  # noqa: E731
    assert chosen_preset(usual, "claude", there("claude")).name == "claude"
    assert chosen_preset(usual, "", there("codex", "claude")).name == "codex"
    assert chosen_preset(city, "", there("gemini")).name == "gemini"
    assert chosen_preset(own, "", there("mine", "gemini")).name == "mine"
    assert chosen_preset(own, "", there("gemini")).name == "gemini"
    refused = {
        ("", ()): "program_missing", ("cluade", ("claude",)): "preset_unknown",
        ("claude", ("codex",)): "program_missing", ("aider", ("aider",)): "cannot_complete",
    }  # fmt: skip
    for (name, programs), reason in refused.items():
        with pytest.raises(CannotRun) as caught:
            chosen_preset(city, name, there(*programs))
        assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("name", "rig", "told"),
    [
        ("mayor", None, ""), ("crew-1", None, ""), ("one", None, ""), ("one-1", None, "did you mean `one`"),
        ("crew", None, "is a pool"), ("myaor", None, "did you mean `mayor`"), ("fixer", None, "no agent"),
        ("fixer", "web", ""), ("web/fixer", None, ""), ("crew-9", None, "no agent"),
    ],
)  # fmt: skip
def test_a_run_is_told_to_one_agent(name: str, rig: str | None, told: str) -> None:
    agents = (
        Agent(name="mayor"), Agent(name="fixer", dir="web"), Agent(name="crew", pool=Pool(max=3)),
        Agent(name="one", pool=Pool(max=1)),
    )  # fmt: skip
    found = not_spoken_to(City(workspace=Workspace(name="t"), agents=agents), name, rig)
    assert told in found
    assert bool(found) is bool(told)
