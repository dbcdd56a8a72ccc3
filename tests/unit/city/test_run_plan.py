"""Whether an agent run can be done as declared, before anything is spent on it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lamplighter.domain.automations.model import AgentAction, Automation, Manual, Mode, Trigger
from lamplighter.domain.automations.policies import Budget, Policies
from lamplighter.domain.city.model import Agent, City, Configuration, Pool, Provider
from lamplighter.domain.city.run_plan import CannotRun, RunPlan, run_plan
from lamplighter.domain.city.sections import Workspace
from lamplighter.domain.city.variables import pool_check
from lamplighter.domain.sessions.presets.model import McpServer, Request

CITY = City(
    workspace=Workspace(name="bright"),
    root=Path("/srv/city"),
    prefix="br",
    providers={"mine": Provider(command="mine")},
)


def planned(preset: str, mode: str = "full_access", *, chosen: Configuration | None = None, **budget: Any) -> RunPlan:
    automation = Automation(
        "light", AgentAction("Light.", preset=preset, mode=Mode(mode)), (Trigger("1", Manual()),),
        policies=Policies(budget=Budget(**budget)),
    )  # fmt: skip
    return run_plan(CITY, automation, chosen, lambda _program: True)


@pytest.mark.parametrize(
    ("preset", "mode"),
    [
        ("goose", "plan"), ("goose", "approval"), ("cline", "approval"), ("openhands", "plan"), ("shell", "plan"),
        ("mine", "approval"),
    ],
)  # fmt: skip
def test_a_mode_in_which_a_program_can_never_complete_is_refused_with_those_it_can(preset: str, mode: str) -> None:
    with pytest.raises(CannotRun, match=f"mode `{mode}`") as refused:
        planned(preset, mode)
    assert refused.value.reason == "mode_not_offered"
    assert "`full_access`" in refused.value.hint
    assert planned(preset).preset.name == preset


def test_the_mode_of_a_configuration_is_refused_too() -> None:
    with pytest.raises(CannotRun) as refused:
        planned("cline", chosen=Configuration(name="careful", mode="approval"))
    assert refused.value.reason == "mode_not_offered"
    assert planned("cline", chosen=Configuration(name="careful", mode="plan")).mode == "plan"


def test_a_program_that_cannot_complete_a_run_is_refused_with_the_reason() -> None:
    with pytest.raises(CannotRun, match="Aider calls no tools") as refused:
        planned("aider")
    assert refused.value.reason == "cannot_complete"


@pytest.mark.parametrize(
    ("preset", "limit"), [("copilot", "tokens"), ("openhands", "cost"), ("mine", "tokens"), ("codex", "cost")]
)
def test_a_budget_that_the_program_s_output_says_nothing_about_is_refused(preset: str, limit: str) -> None:
    with pytest.raises(CannotRun, match=f"budget.{limit}") as refused:
        planned(preset, **{limit: 1})
    assert refused.value.reason == "budget_not_counted"


@pytest.mark.parametrize(("preset", "limit"), [("codex", "tokens"), ("claude", "cost"), ("cline", "cost")])
def test_a_budget_that_can_be_kept_is_accepted(preset: str, limit: str) -> None:
    assert planned(preset, **{limit: 1}).preset.name == preset


def test_arguments_of_a_provider_may_name_the_city_and_a_file_with_the_run_s_tools() -> None:
    provider = Provider(command="sh", args=("{{.CityRoot}}/agents/caretaker.sh", "--mcp={{.McpFile}}"))
    city = replace(CITY, providers={"caretaker": provider})
    automation = Automation("light", AgentAction("Light.", preset="caretaker"), (Trigger("1", Manual()),))
    preset = run_plan(city, automation, None, lambda _program: True).preset
    assert preset.has_mcp
    assert preset.headless is not None
    server = McpServer("http://127.0.0.1:1/mcp", "secret-token")
    called = preset.headless(Request(work_dir="/w", files_dir="/f", prompt="Light.", mcp=server))
    assert called.argv == ("sh", "/srv/city/agents/caretaker.sh", "--mcp=/f/mcp.json", "Light.")
    assert [(file.path, "secret-token" in file.content) for file in called.files] == [("mcp.json", True)]
    assert not planned("mine").preset.has_mcp


def test_a_pool_check_may_name_the_city_and_keeps_the_templates_of_other_programs() -> None:
    pool = Pool(check="{{.CityRoot}}/count.sh {{ .Rig }}; docker ps --format '{{.Names}}'")
    agent = Agent(name="coder", pool=pool)
    assert pool_check(CITY, agent) == "/srv/city/count.sh ; docker ps --format '{{.Names}}'"
