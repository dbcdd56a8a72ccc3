"""Each key of automation.toml has an effect: what follows from two definitions, with and without it, differs.

What follows is taken from those that act by a definition: gates, admission, limits, plans, decisions, answers. A new
key needs its case here.
"""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lamplighter.domain.automations import catch_up
from lamplighter.domain.automations.admission import Origin as From
from lamplighter.domain.automations.admission import decide
from lamplighter.domain.automations.decisions import ActiveRun, Outcome, Switches, retry, streak
from lamplighter.domain.automations.decode import Invalid, Origin, decode_file
from lamplighter.domain.automations.decode_triggers import TRIGGER_KEYS
from lamplighter.domain.automations.events import SeenEvent
from lamplighter.domain.automations.gates import Checked, Due, Waiting, check
from lamplighter.domain.automations.model import AgentAction, Automation, Event, TriggerKind, deadline, time_limit
from lamplighter.domain.automations.policies import Budget, CatchUp, Notify, Policies, Retry
from lamplighter.domain.automations.shape import to_shape
from lamplighter.domain.automations.state import Timing, next_due, registered
from lamplighter.domain.city.model import City, Provider, Workspace
from lamplighter.domain.city.run_plan import CannotRun, run_plan
from lamplighter.domain.city.run_sections import Runs
from lamplighter.domain.sessions.presets.model import Request
from lamplighter.services.automations.registering import quiet_at
from lamplighter.services.rules import Rules
from lamplighter.services.runs.executing import wish_of
from lamplighter.services.runs.finalizing import policy_of

TESTS = Path(__file__).parent.parent
NOW = datetime(2026, 3, 2, 9, 32, tzinfo=UTC)
THEN = NOW - timedelta(days=2)
CITY = City(workspace=Workspace(name="town", provider="bot"), providers={"bot": Provider(command="bot")})
EVENTS = tuple(SeenEvent(seq, "lamp.lit", NOW, {"n": seq}) for seq in (1, 2, 3))

EXEC: dict[str, Any] = {"exec": "true", "gate": "manual"}
COOK: dict[str, Any] = {"formula": "f", "gate": "manual"}
AGENT: dict[str, Any] = {"agent": {"prompt": "p"}, "gate": "manual"}
CRON: dict[str, Any] = {"exec": "true", "gate": "cron", "schedule": "*/5 * * * *"}
CODEX: dict[str, Any] = {"prompt": "p", "preset": "codex"}
DECIDE: dict[str, Any] = {"prompt": "p", "strategy": "agent_decide", "configurations": ["a"]}


def effects(automation: Automation) -> dict[str, str]:
    rules, policies = Rules(ZoneInfo("UTC"), cap=timedelta(hours=1)), automation.policies
    active = [ActiveRun("run_1", NOW + timedelta(hours=1))]
    parts = {
        "gates": [_gate(automation, one, rules.timing(automation, one.id)) for one in automation.triggers],
        "admission": decide(Switches(enabled=automation.enabled), policies.overlap, active, From.SLOT, NOW),
        "alone": decide(Switches(enabled=automation.enabled), policies.overlap, [], From.SLOT, NOW),
        "limits": [time_limit(automation, rules.cap), deadline(automation, TriggerKind.MANUAL)],
        "retry": [retry(policies.retry, Outcome.FAILED, attempt, NOW) for attempt in range(12)],
        "streak": streak(2, Outcome.FAILED, limit=policies.auto_disable_after, by_hand=False),
        "quiet": quiet_at(automation, NOW),
        "verdict": policy_of(automation, Runs()),
        "run": _run(automation),
        "beads": (automation.scoped_name, automation.pool),
        "answer": (automation.description, to_shape(automation)["action"]),
    }
    return {name: repr(part) for name, part in parts.items()}


def _gate(automation: Automation, trigger: Any, timing: Timing) -> Any:
    state = registered(trigger.gate, THEN, timing)
    evidence = Waiting(EVENTS) if isinstance(trigger.gate, Event) else Checked(None)
    found = check(trigger.gate, state, NOW, timing, evidence, automation=automation.scoped_name)
    passed = check(trigger.gate, state, NOW, timing, Checked(0), automation=automation.scoped_name)
    late = (
        catch_up.plan(automation.policies.catch_up, trigger.gate, found, NOW, timing) if isinstance(found, Due) else ""
    )
    fired = replace(registered(trigger.gate, NOW, timing), last_fired_at=NOW)
    return trigger.id, trigger.gate.kind, found, passed, late, next_due(trigger.gate, fired, NOW, timing)


def _run(automation: Automation) -> Any:
    if not isinstance(automation.action, AgentAction):
        return None
    try:
        plan = run_plan(CITY, automation, None, lambda _: True)
    except CannotRun as error:
        return error.reason
    assert plan.preset.headless is not None
    asked = Request(work_dir=str(plan.directory), files_dir="/f", prompt=plan.instructions, session="s",
                    mode=plan.mode, model=plan.model)  # fmt: skip
    return wish_of(automation.action), plan.directory, plan.preset.headless(asked).argv


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]] | str] = {
    "exec": "daemon/test_exec_runs.py",
    "precheck": "daemon/test_exec_runs.py",
    "verify": "daemon/test_verified_runs.py",
    "verify_timeout": "daemon/test_verified_runs.py",
    "rounds": "daemon/test_verified_runs.py",
    "approve": "daemon/test_plans.py",
    "formula": "services/test_named_things.py",
    "pool": (COOK, {"pool": "crew"}),
    "vars": "services/test_every_automation_key_counts.py",
    "agent": (EXEC, {"exec": None, "agent": {"prompt": "p"}}),
    "description": (EXEC, {"description": "For the shop."}),
    "enabled": (EXEC, {"enabled": False}),
    "timezone": ({**EXEC, "gate": "cron", "schedule": "0 3 * * *"}, {"timezone": "Asia/Tokyo"}),
    "gate": (EXEC, {"gate": "cooldown", "interval": "1h"}),
    "triggers": (EXEC, {"gate": None, "triggers": [{"id": "mine", "gate": "manual"}]}),
    "interval": ({**EXEC, "gate": "cooldown", "interval": "1h"}, {"interval": "9h"}),
    "schedule": (CRON, {"schedule": "*/7 * * * *"}),
    "cadence": ({**EXEC, "gate": "schedule", "cadence": "hourly"}, {"cadence": "daily"}),
    "minute": ({**EXEC, "gate": "schedule", "cadence": "hourly"}, {"minute": 7}),
    "hour": ({**EXEC, "gate": "schedule", "cadence": "daily"}, {"hour": 7}),
    "weekday": ({**EXEC, "gate": "schedule", "cadence": "weekly"}, {"weekday": "wed"}),
    "at": (
        {**EXEC, "gate": "schedule", "cadence": "once", "at": "2026-03-01T09:00:00Z"}, {"at": "2026-03-09T09:00:00Z"}
    ),
    "check": "daemon/test_scheduler_ticks.py",
    "check_timeout": ({**EXEC, "gate": "condition", "check": "true"}, {"check_timeout": "9s"}),
    "on": ({**EXEC, "gate": "event", "on": "lamp.lit"}, {"on": "bead.*"}),
    "match": ({**EXEC, "gate": "event", "on": "lamp.lit"}, {"match": {"n": 2}}),
    "batch": ({**EXEC, "gate": "event", "on": "lamp.lit"}, {"batch": 1}),
    "continue_by": "daemon/test_conversations.py",
    "filter": "services/test_delivery_cases.py",
    "gather": "services/test_delivery_cases.py",
    "gather_most": "services/test_delivery_cases.py",
    "connection": "services/test_named_things.py",
    "events": "unit/domain/automations/test_automation_gates.py",
    "overlap": (EXEC, {"overlap": "allow"}),
    "catch_up": (CRON, {"catch_up": "skip"}),
    "catch_up.mode": (CRON, {"catch_up": {"mode": "all"}}),
    "catch_up.within": (CRON, {"catch_up": {"mode": "all", "within": "20m", "limit": 100}}),
    "catch_up.limit": ({**CRON, "catch_up": "all"}, {"catch_up": {"mode": "all", "limit": 3}}),
    "retry": (EXEC, {"retry": 2}),
    "retry.count": (EXEC, {"retry": {"count": 2}}),
    "retry.backoff": ({**EXEC, "retry": 2}, {"retry": {"count": 2, "backoff": "9s"}}),
    "retry.most": ({**EXEC, "retry": 12}, {"retry": {"count": 12, "most": "40s"}}),
    "auto_disable_after": (EXEC, {"auto_disable_after": 3}),
    "env": "cli/test_secret_commands.py",
    "connections": "cli/test_connections_of_runs.py",
    "quiet_after": (EXEC, {"quiet_after": "1h"}),
    "timeout": (EXEC, {"timeout": "9s"}),
    "deadline": (EXEC, {"deadline": "9s"}),
    "idle_timeout": (AGENT, {"idle_timeout": "9s"}),
    "budget": (AGENT, {"budget": {"time": "9s"}}),
    "budget.time": (AGENT, {"budget": {"time": "9s"}}),
    "budget.cost": (AGENT, {"budget": {"cost": 2.5}}),
    "budget.tokens": (AGENT, {"budget": {"tokens": 100}}),
    "budget.day_cost": (AGENT, {"budget": {"day_cost": 2.5}}),
    "budget.day_tokens": "daemon/test_bounds.py",
    "budget.day_time": "daemon/test_bounds.py",
    "stuck_after": (AGENT, {"stuck_after": 3}),
    "notify": "services/test_notices.py",
    "notify.to": "services/test_notices.py",
    "notify.on": "services/test_notices.py",
    "notify.after": "services/test_notices.py",
    "notify.thread": "daemon/test_slack_opened.py",
    "agent.effort": "daemon/test_logins.py",
    "agent.fallback_model": "daemon/test_logins.py",
    "agent.fallback_preset": "daemon/test_logins.py",
    "agent.prompt_file": "daemon/test_logins.py",
    "agent.includes": "daemon/test_logins.py",
    "agent.session": "daemon/test_spoken_sessions.py",
    "agent.agent": "daemon/test_spoken_agents.py",
    "jitter": (CRON, {"jitter": "2m"}),
    "agent.prompt": (AGENT, {"agent": {"prompt": "other"}}),
    "agent.path": (AGENT, {"agent": {"prompt": "p", "path": "/there"}}),
    "agent.configuration": (AGENT, {"agent": {"prompt": "p", "configuration": "web"}}),
    "agent.strategy": (AGENT, {"agent": DECIDE}),
    "agent.configurations": ({**AGENT, "agent": DECIDE}, {"agent": {**DECIDE, "configurations": ["a", "b"]}}),
    "agent.fallback": ({**AGENT, "agent": DECIDE}, {"agent": {**DECIDE, "fallback": "a"}}),
    "agent.preset": (AGENT, {"agent": {"prompt": "p", "preset": "codex"}}),
    "agent.model": ({**AGENT, "agent": CODEX}, {"agent": {**CODEX, "model": "m"}}),
    "agent.mode": (AGENT, {"agent": {"prompt": "p", "mode": "plan"}}),
}  # fmt: skip
TOP = {"exec", "formula", "agent", "pool", "vars", "description", "enabled", "timezone"}


def known() -> set[str]:
    """Every key that the decoder takes."""
    found = TOP | set(TRIGGER_KEYS) | {one.name for one in fields(Policies)}
    for name, kind in {"catch_up": CatchUp, "retry": Retry, "budget": Budget, "notify": Notify}.items():
        found |= {f"{name}.{one.name}" for one in fields(kind)}
    return found | {f"agent.{one.name}" for one in fields(AgentAction)}


def test_every_key_has_its_case() -> None:
    assert known() - set(CASES) == set()


@pytest.mark.parametrize("key", sorted(key for key, case in CASES.items() if not isinstance(case, str)))
def test_a_key_makes_a_difference(key: str) -> None:
    case = CASES[key]
    assert not isinstance(case, str)
    without, given = (effects(decoded(tree)) for tree in (case[0], {**case[0], **case[1]}))
    changed = {name for name in without if without[name] != given[name]}
    assert changed - ({"answer"} if key != "description" else set()), f"{key} makes no difference"


@pytest.mark.parametrize("key", sorted(key for key, case in CASES.items() if isinstance(case, str)))
def test_what_only_a_run_shows_has_its_test(key: str) -> None:
    assert key.rpartition(".")[2] in (TESTS / str(CASES[key])).read_text()


def test_the_variables_of_a_formula_reach_its_beads() -> None:
    from lamplighter.domain.automations.model import Formula
    from lamplighter.domain.beads.formulas import decode, plan

    action = decoded({**COOK, "vars": {"name": "shop"}}).action
    assert isinstance(action, Formula)
    tree = {"formula": "f", "vars": {"name": {}}, "steps": [{"id": "a", "title": "Sweep the {{name}}"}]}
    made = plan(decode(tree, "f"), title=None, values=action.variables)
    assert made.steps[0].title == "Sweep the shop"


@pytest.mark.parametrize(
    ("tree", "key"),
    [
        ({**EXEC, "hour": 3}, "automation.hour"),
        ({**EXEC, "gate": "schedule", "cadence": "hourly", "hour": 3}, "automation.hour"),
        ({**EXEC, "gate": "schedule", "cadence": "daily", "weekday": "mon"}, "automation.weekday"),
        ({**EXEC, "budget": {"time": "9s"}}, "automation.budget"),
        ({**EXEC, "idle_timeout": "9s"}, "automation.idle_timeout"),
        ({**EXEC, "pool": "crew"}, "automation.pool"),
        ({**AGENT, "agent": {"prompt": "p", "fallback": "a"}}, "automation.agent.fallback"),
        ({**AGENT, "agent": {"prompt": "p", "configurations": ["a"]}}, "automation.agent.configurations"),
    ],
)
def test_a_key_that_could_have_no_effect_is_refused(tree: dict[str, Any], key: str) -> None:
    found = decode_file({"automation": tree}, Origin("file", "job"))
    assert isinstance(found, Invalid)
    assert [one.key for one in found.problems] == [key]


def decoded(tree: dict[str, Any]) -> Automation:
    given = {key: value for key, value in tree.items() if value is not None}
    found = decode_file({"automation": given}, Origin("file", "job"))
    assert isinstance(found, Automation), found
    return found
