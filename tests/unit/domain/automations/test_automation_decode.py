import tomllib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamplighter.domain.automations.decode import Invalid, Origin, decode_file, decode_json, decode_snapshot
from lamplighter.domain.automations.model import (
    AgentAction,
    Automation,
    Condition,
    Cooldown,
    Cron,
    Event,
    Exec,
    Formula,
    Manual,
    Mode,
    Schedule,
    Strategy,
    Trigger,
    TriggerKind,
    Webhook,
    deadline,
    time_limit,
)
from lamplighter.domain.automations.policies import Budget, CatchUp, CatchUpMode, Notify, Overlap, Policies, Retry
from lamplighter.domain.automations.shape import to_file, to_shape
from lamplighter.domain.automations.words import gate_badge, human_gate
from lamplighter.kit.cron import parse_cron
from lamplighter.kit.schedule import Daily, Hourly, Once, Weekly

NOW = datetime(2026, 6, 23, 12, 0, 30, tzinfo=UTC)
ORIGIN = Origin("file", "db-health", path="/city/automations/db-health/automation.toml")

FULL = """
[automation]
description = "Look after the database"
timezone = "Europe/Berlin"
enabled = false
overlap = "queue"
catch_up = { mode = "all", within = "2h", limit = 3 }
retry = { count = 2, backoff = "1m", most = "10m" }
auto_disable_after = 0
quiet_after = "2d"
precheck = "test -n work"
timeout = "90s"
deadline = "1h"
idle_timeout = "15m"
jitter = "30s"
budget = { cost = 2.5, tokens = 100000, time = "20m" }
notify = { to = ["ops", "inbox"], on = ["failed"], after = 3 }

[automation.agent]
prompt = "Look."
path = "/srv/app"
configuration = "main"
strategy = "agent_decide"
configurations = ["main", "other"]
fallback = "main"
preset = "claude"
model = "large"
mode = "plan"

[[automation.triggers]]
gate = "cron"
schedule = "*/15 9-17 * * mon-fri"
[[automation.triggers]]
id = "nightly"
gate = "schedule"
cadence = "weekly"
weekday = "mon"
hour = 14
minute = 30
[[automation.triggers]]
gate = "schedule"
cadence = "once"
at = 2026-12-01T09:00:00+01:00
[[automation.triggers]]
gate = "condition"
check = "test -f flag"
interval = "1m"
check_timeout = "5s"
[[automation.triggers]]
gate = "event"
on = "bead.*"
match = { "bead.status" = ["closed", "open"] }
batch = 1
[[automation.triggers]]
gate = "webhook"
connection = "github"
events = ["push"]
[[automation.triggers]]
gate = "cooldown"
interval = "5m"
[[automation.triggers]]
gate = "manual"
"""


def test_every_field_of_a_file_is_read() -> None:
    assert good(FULL) == Automation(
        name="db-health",
        description="Look after the database",
        timezone="Europe/Berlin",
        enabled=False,
        source="file",
        path=ORIGIN.path,
        action=AgentAction(
            "Look.", "/srv/app", "main", Strategy.AGENT_DECIDE, ("main", "other"), "main", "claude", "large", Mode.PLAN
        ),
        triggers=(
            Trigger("cron", Cron(parse_cron("*/15 9-17 * * mon-fri"))),
            Trigger("nightly", Schedule(Weekly(1, 14, 30))),
            Trigger("schedule", Schedule(Once(datetime(2026, 12, 1, 8, tzinfo=UTC)))),
            Trigger("condition", Condition("test -f flag", timedelta(minutes=1), timedelta(seconds=5))),
            Trigger("event", Event("bead.*", {"bead.status": ["closed", "open"]}, 1)),
            Trigger("webhook", Webhook("github", ("push",))),
            Trigger("cooldown", Cooldown(timedelta(minutes=5))),
            Trigger("manual", Manual()),
        ),
        policies=Policies(
            overlap=Overlap.QUEUE,
            catch_up=CatchUp(CatchUpMode.ALL, timedelta(hours=2), 3),
            retry=Retry(2, timedelta(minutes=1), timedelta(minutes=10)),
            auto_disable_after=0,
            quiet_after=timedelta(days=2),
            precheck="test -n work",
            timeout=timedelta(seconds=90),
            deadline=timedelta(hours=1),
            idle_timeout=timedelta(minutes=15),
            budget=Budget(2.5, 100000, timedelta(minutes=20)),
            notify=Notify(("ops", "inbox"), ("failed",), 3),
            jitter=timedelta(seconds=30),
        ),
    )


def test_the_file_of_the_seed_loads_unchanged() -> None:
    automation = good("""
        [automation]
        description = "Check database health"
        formula = "mol-db-health"
        gate = "cooldown"
        interval = "5m"
        pool = "worker"
        timeout = "90s"
        enabled = true
    """)
    assert automation.action == Formula("mol-db-health", "worker")
    assert automation.triggers == (Trigger("cooldown", Cooldown(timedelta(minutes=5))),)


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ('gate = "manual"', "exec", "exactly one of"),
        ('exec = "a"\nformula = "b"\ngate = "manual"', "exec", "`exec` and `formula` are given"),
        ('exec = "a"\npool = "p"\ngate = "manual"', "pool", "goes with `formula` only"),
        ('exec = "a"', "gate", "is missing; it is one of cooldown, cron"),
        ('exec = "a"\ngate = "cooldown"', "interval", "is missing"),
        ('exec = "a"\ngate = "cooldown"\ninterval = "soon"', "interval", "`soon` is not a duration"),
        ('exec = "a"\ngate = "cooldown"\ninterval = "0s"', "interval", "longer than nothing"),
        ('exec = "a"\ngate = "cron"', "schedule", "is missing"),
        ('exec = "a"\ngate = "cron"\nschedule = "61 * * * *"', "schedule", "minutes go from 0 to 59"),
        ('exec = "a"\ngate = "condition"', "check", "is missing"),
        ('exec = "a"\ngate = "event"', "on", "is missing"),
        ('exec = "a"\ngate = "event"\non = "bead closed"', "on", "is not an event type"),
        ('exec = "a"\ngate = "webhook"', "connection", "is missing"),
        ('exec = "a"\ngate = "cooldwn"', "gate", "did you mean `cooldown`?"),
        ('exec = "a"\ngate = "manual"\ntimeout = "long"', "timeout", "`long` is not a duration"),
        ('exec = "a"\ngate = "manual"\ntimeout = 90', "timeout", "is the number 90; it takes a duration"),
        ('exec = "a"\ngate = "cron"\nschedule = "@daily"\ninterval = "5m"', "interval", "belongs to cooldown"),
        ('exec = "a"\ngate = "manual"\nidle_timeout = "5m"', "idle_timeout", "goes with `agent` only"),
        ('agent = {prompt="x"}\ngate = "manual"\nidle_timeout = "soon"', "idle_timeout", "`soon` is not a duration"),
        ('exec = "a"\ngate = "manual"\ntimezone = "Mars"', "timezone", "is not a time zone"),
        ('exec = "a"\ngate = "manual"\nenabled = "yes"', "enabled", "takes true or false"),
        ('exec = "a"\ngate = "manual"\nname = "x"', "name", "the name of the file's directory"),
        ('exec = "a"\ngate = "manual"\noverlp = "skip"', "overlp", "is not a setting; did you mean `overlap`?"),
        ('exec = "a"\ngate = "manual"\nretry = true', "retry", "it takes a whole number"),
        ('exec = "a"\ngate = "manual"\nretry = 21', "retry", "it goes from 0 to 20"),
        ('exec = "a"\ngate = "manual"\nretry = {backoff="1h", most="1m"}', "retry.most", "shorter than `backoff`"),
        ('exec = "a"\ngate = "manual"\nnotify = ["a b"]', "notify", "`a b` is not the name of a destination"),
        ('exec = "a"\ngate = "manual"\nnotify = ["slack:#ops"]', "notify", "slack:#ops"),
        ('exec = "a"\ngate = "manual"\nnotify = {on=["broken"]}', "notify.on", "`broken` is not an end that is told"),
        ('exec = "a"\ngate = "manual"\nbudget = {cost=0}', "budget.cost", "must be above 0"),
        ('exec = "a"\ngate = "manual"\ndescription = 3', "description", "takes a text"),
        ('exec = "a"\ntriggers = []', "triggers", "is empty"),
        ('exec = "a"\ntriggers = 3', "triggers", "takes a list of tables"),
        ('exec = "a"\ninterval = "5m"\ntriggers = [{gate="manual"}]', "interval", "stands beside no `gate`"),
        ('exec = "a"\ntriggers = [{gate="manual", id="a"}, {gate="manual", id="a"}]', "triggers[1].id", "another"),
        ('exec = "a"\ntriggers = [{gate="manual", id="a b"}]', "triggers[0].id", "is not a name"),
        ('exec = "a"\ntriggers = [{gate="manual", colour="red"}]', "triggers[0].colour", "is not a setting"),
        ('exec = "a"\ngate = "event"\non = "x"\nmatch = {a={b=1}}', "match.a", "takes a text, a number"),
        ('exec = "a"\ngate = "event"\non = "x"\nbatch = 0', "batch", "it goes from 1 to 1000"),
        ('exec = "a"\ngate = "schedule"', "cadence", "is missing"),
        ('exec = "a"\ngate = "schedule"\ncadence = "once"\nat = "soon"', "at", "is not a time with its offset"),
        ('exec = "a"\ngate = "schedule"\ncadence = "once"\nat = 2026-12-01T09:00:00', "at", "with its offset"),
        ('exec = "a"\ngate = "schedule"\ncadence = "weekly"\nweekday = "noday"', "weekday", "is not a day of the week"),
        ('formula = "f"\nvars = {a=[1]}\ngate = "manual"', "vars.a", "takes a text or a number"),
        ('agent = {prompt="x", strategy="agent_decide"}\ngate = "manual"', "agent.configurations", "it is empty"),
        ('agent = {}\ngate = "manual"', "agent.prompt", "is missing"),
        ('agent = {prompt="x", path="ssh://h/p"}\ngate = "manual"', "agent.path", "is remote"),
        ('agent = {prompt="x", path="src/p"}\ngate = "manual"', "agent.path", "is relative"),
        ('exec = "a"\ngate = "schedule"\ncadence = "once"', "at", "is missing"),
        ('exec = "a"\ngate = "schedule"\ncadence = "once"\nat = 2026-12-01', "at", "with its offset"),
        ('exec = "a"\ngate = "manual"\ncatch_up = "al"', "catch_up", "did you mean `all`?"),
        ('exec = "a"\ngate = "manual"\nbudget = {cost="x"}', "budget.cost", "is a text; it takes a number"),
        ('exec = "a"\ngate = "manual"\nnotify = {to="x"}', "notify.to", "takes a list of texts"),
        ('exec = ["a"]\ngate = "manual"', "exec", "is a list; it takes a text"),
        ('exec = {a=1}\ngate = "manual"', "exec", "is a table; it takes a text"),
        ('exec = 2026-12-01\ngate = "manual"', "exec", "is a date; it takes a text"),
        ('exec = "a\\u0000b"\ngate = "manual"', "exec", "NUL"),
    ],
)
def test_case_11_a_bad_file_is_refused_with_the_key_and_the_automation_named(text: str, key: str, message: str) -> None:
    refused = bad(f"[automation]\n{text}")
    assert refused.name == "db-health"
    told = {one.key: one.message for one in refused.problems}
    assert message in told[f"automation.{key}"]
    assert "db-health" in str(refused)


@pytest.mark.parametrize(
    ("text", "key", "low", "high"),
    [
        ('gate = "manual"\nauto_disable_after = %s', "auto_disable_after", 0, 1000),
        ('gate = "manual"\nrounds = %s\nverify = "true"', "rounds", 0, 20),
        ('gate = "manual"\ncatch_up = { mode = "all", limit = %s }', "catch_up.limit", 1, 100),
        ('gate = "manual"\nretry = %s', "retry", 0, 20),
        ('gate = "manual"\nretry = { count = %s }', "retry.count", 0, 20),
        ('gate = "manual"\nbudget = { tokens = %s }', "budget.tokens", 1, 10**12),
        ('gate = "manual"\nnotify = { after = %s }', "notify.after", 0, 1000),
        ('gate = "event"\non = "bead.closed"\nbatch = %s', "batch", 1, 1000),
        ('gate = "schedule"\ncadence = "daily"\nhour = %s', "hour", 0, 23),
        ('gate = "schedule"\ncadence = "daily"\nminute = %s', "minute", 0, 59),
        ('gate = "schedule"\ncadence = "weekly"\nweekday = %s', "weekday", 0, 6),
    ],
)
def test_a_number_is_taken_from_its_first_to_its_last_and_no_further(text: str, key: str, low: int, high: int) -> None:
    whole = '[automation]\nagent = { prompt = "x" }\n' + text
    for number in (low, high):
        good(whole % number)
    for number in (low - 1, high + 1):
        told = {one.key: one.message for one in bad(whole % number).problems}
        assert f"it goes from {low} to {high}" in told[f"automation.{key}"]


def test_all_problems_come_at_once() -> None:
    refused = bad('[automation]\nexec = "a"\nformula = "b"\ngate = "cron"\nschedule = "x"\ntimeout = "y"\nzzz = 1')
    assert len(refused.problems) == 4


def test_a_file_without_its_table_says_so() -> None:
    assert "no `[automation]` table" in str(bad('[automations]\nexec = "a"'))
    assert "takes a table" in str(bad("automation = 3"))


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": " a"}, "name"),
        ({"name": None}, "name"),
        ({"name": 7}, "name"),
        ({"agent": {"prompt": "  ", "path": "/p"}}, "agent.prompt"),
        ({"agent": {"prompt": "x" * 100_001, "path": "/p"}}, "agent.prompt"),
        ({"agent": {"prompt": "x", "path": " "}}, "agent.path"),
        ({"agent": {"prompt": "x", "path": "ssh://host/p"}}, "agent.path"),
        ({"agent": {"prompt": "x", "path": "src/p"}}, "agent.path"),
        ({"agent": {"prompt": "x", "path": "/p", "mode": "yolo"}}, "agent.mode"),
        ({"minute": 60}, "minute"),
        ({"hour": 24}, "hour"),
        ({"cadence": "weekly", "weekday": 7}, "weekday"),
        ({"cadence": "fortnightly"}, "cadence"),
    ],
)
def test_case_1_each_bad_field_of_a_new_automation_is_named(change: dict[str, Any], key: str) -> None:
    refused = decode_json(a_daily_job() | change, Origin())
    assert isinstance(refused, Invalid)
    assert [one.key for one in refused.problems] == [key]


def test_a_manual_trigger_refuses_the_keys_of_other_gates_as_they_would_have_no_effect() -> None:
    refused = decode_json(a_daily_job() | {"gate": "manual"}, Origin())
    assert isinstance(refused, Invalid)
    assert {one.key for one in refused.problems} >= {"hour", "cadence"}
    assert "has no meaning for a manual trigger" in refused.problems[0].message


def test_a_time_that_passed_is_refused_on_creation_and_kept_on_reading() -> None:
    body = a_daily_job() | {"cadence": "once", "at": "2026-06-23T11:59:59Z", "hour": None, "minute": None}
    assert isinstance(decode_json(body, Origin(), now=NOW), Invalid)
    assert isinstance(decode_json(body, Origin()), Automation)
    this_minute = body | {"at": "2026-06-23T12:00:00Z"}
    assert isinstance(decode_json(this_minute, Origin(), now=NOW), Automation)


def test_the_shape_goes_round_through_snapshot_json_and_file() -> None:
    automation = good(FULL)
    assert decode_snapshot(to_shape(automation)) == automation
    assert decode_file(to_file(automation), ORIGIN) == automation
    assert decode_json(to_shape(automation), Origin("file", path=ORIGIN.path)) == automation


@pytest.mark.parametrize("action", ['exec = "make"', 'formula = "mol"\npool = "coder"\nvars = {a="1"}'])
def test_other_actions_go_round_too(action: str) -> None:
    automation = good(f'[automation]\n{action}\ngate = "schedule"\ncadence = "hourly"\nminute = 5')
    assert decode_snapshot(to_shape(automation)) == automation
    assert decode_file(to_file(automation), ORIGIN) == automation


def test_a_snapshot_of_a_newer_program_is_read_without_what_is_new() -> None:
    shape = to_shape(good(FULL)) | {"colour": "red"}
    shape["action"]["soul"] = "kind"
    shape["triggers"][0]["moon"] = "full"
    shape["policies"]["mercy"] = {"much": True}
    shape["policies"]["retry"]["luck"] = 1
    assert decode_snapshot(shape) == good(FULL)


def test_a_snapshot_that_makes_no_automation_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="`dance` is not one of exec, formula, agent"):
        decode_snapshot({"name": "x", "action": {"kind": "dance"}, "triggers": [{"kind": "manual"}]})


def test_problems_of_the_shape_are_told_by_the_keys_of_the_shape() -> None:
    body = {
        "name": "x",
        "action": {"kind": "agent", "prompt": "", "path": "rel"},
        "triggers": [{"kind": "cooldown", "interval": "x"}],
        "policies": {"retry": -1},
    }
    refused = decode_json(body, Origin())
    assert isinstance(refused, Invalid)
    assert [one.key for one in refused.problems] == [
        "action.prompt",
        "action.path",
        "triggers[0].interval",
        "policies.retry",
    ]


@pytest.mark.parametrize("body", [{}, {"action": 3}, {"policies": [1]}, {"triggers": "x"}, {"action": {}}, {"": ""}])
def test_rubbish_is_refused_not_raised(body: dict[str, Any]) -> None:
    assert isinstance(decode_json(body, Origin()), Invalid)


def test_what_interfaces_show_can_be_given_back() -> None:
    shape = to_shape(job(Exec("make")))
    assert "action" in shape
    assert isinstance(decode_json(shape, Origin()), Automation)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"gather_most": "1m"}, ["goes with `gather` only, and there is none"]),
        ({"gather": "2m", "gather_most": "1m"}, ["is shorter than `gather`"]),
        ({"gather": "1m", "gather_most": "1m"}, []),
    ],
)
def test_how_long_deliveries_are_gathered_has_a_bound_that_fits(keys: dict[str, str], told: list[str]) -> None:
    decoded = decode_json({"name": "x", "exec": "true", "gate": "webhook", "connection": "gh", **keys}, Origin())
    problems = decoded.problems if isinstance(decoded, Invalid) else ()
    assert [one.message for one in problems] == told


def test_case_20_time_limits_have_defaults_by_action_and_the_citys_cap() -> None:
    command, formula = job(Exec("make")), job(Formula("mol"))
    assert time_limit(command) == timedelta(minutes=5)
    assert time_limit(formula) == timedelta(seconds=30)
    assert time_limit(job(Exec("make"), timeout=timedelta(seconds=90))) == timedelta(seconds=90)
    assert time_limit(job(Formula("mol"), timeout=timedelta(seconds=90))) == timedelta(seconds=90)
    slow = job(Exec("make"), timeout=timedelta(seconds=120))
    assert time_limit(slow, timedelta(seconds=60)) == timedelta(seconds=60)
    assert time_limit(job(AgentAction("x")), timedelta(seconds=60)) is None
    assert time_limit(job(AgentAction("x"), timeout=timedelta(hours=1)), timedelta(seconds=60)) == timedelta(hours=1)


def test_deadlines_have_defaults_by_action_and_trigger() -> None:
    agent = job(AgentAction("x"))
    assert deadline(agent, TriggerKind.CRON) == timedelta(minutes=30)
    assert deadline(agent, TriggerKind.MANUAL) == timedelta(hours=2)
    assert deadline(agent, TriggerKind.MANUAL, city=timedelta(hours=1)) == timedelta(hours=1)
    assert deadline(job(Formula("mol")), TriggerKind.EVENT) == timedelta(hours=24)
    assert deadline(job(Exec("x"), deadline=timedelta(minutes=1)), TriggerKind.CRON) == timedelta(minutes=1)


def test_case_15_a_pool_is_qualified_by_its_rig_once() -> None:
    assert job(Formula("mol", "coder"), rig="demo").pool == "demo/coder"
    assert job(Formula("mol", "other/coder"), rig="demo").pool == "other/coder"
    assert job(Formula("mol", "coder")).pool == "coder"
    assert job(Exec("x"), rig="demo").pool is None


@pytest.mark.parametrize(
    ("gate", "words", "mark"),
    [
        (Cooldown(timedelta(minutes=5)), "Every 5 min", "Cooldown"),
        (Cron(parse_cron("0 3 * * *")), "At 03:00 every day", "Cron"),
        (Schedule(Daily(9, 0)), "Daily at 09:00", "Daily"),
        (Schedule(Hourly(5)), "Hourly at :05", "Hourly"),
        (Condition("true", timedelta(minutes=1)), "When `true` succeeds, at most every minute", "Condition"),
        (Condition("true"), "When `true` succeeds", "Condition"),
        (Event("bead.*", {"a": 1}), "On bead.* that matches", "Event"),
        (Webhook("github", ("push",)), "On push from github", "Webhook"),
        (Webhook("github"), "On any delivery from github", "Webhook"),
        (Manual(), "Manual", "Manual"),
    ],
)
def test_every_trigger_speaks_plainly(gate: Any, words: str, mark: str) -> None:
    assert human_gate(gate) == words
    assert gate_badge(gate) == mark


def test_triggers_of_one_kind_get_names_of_their_own() -> None:
    automation = good('[automation]\nexec = "a"\ntriggers = [{gate="manual"}, {gate="manual"}, {gate="manual"}]')
    assert [one.id for one in automation.triggers] == ["manual", "manual-2", "manual-3"]


def test_short_forms_mean_the_same_as_tables() -> None:
    base = '[automation]\nexec = "a"\ngate = "manual"\n'
    short = good(base + 'retry = 2\ncatch_up = "skip"\nnotify = ["inbox"]')
    assert short == good(base + 'retry = {count=2}\ncatch_up = {mode="skip"}\nnotify = {to=["inbox"]}')


def test_a_trigger_is_found_by_its_id() -> None:
    automation = Automation("a", Exec("x"), (Trigger("s", Schedule(Daily(9, 0))),))
    assert automation.trigger("s") == automation.triggers[0]
    assert automation.trigger("t") is None


def a_daily_job() -> dict[str, Any]:
    return {
        "name": "triage",
        "agent": {"prompt": "Look.", "path": "/srv/app"},
        "gate": "schedule",
        "cadence": "daily",
        "hour": 9,
        "minute": 0,
    }


def job(action: Any, rig: str | None = None, **policies: Any) -> Automation:
    return Automation("job", action, (Trigger("manual", Manual()),), rig=rig, policies=Policies(**policies))


def good(text: str) -> Automation:
    decoded = decode_file(tomllib.loads(text), ORIGIN)
    assert isinstance(decoded, Automation), decoded
    return decoded


def bad(text: str) -> Invalid:
    decoded = decode_file(tomllib.loads(text), ORIGIN)
    assert isinstance(decoded, Invalid), decoded
    return decoded
