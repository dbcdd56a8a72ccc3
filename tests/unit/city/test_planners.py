"""Which agent programs can make a plan that a person approves, and why others cannot."""

import pytest

from lamplighter.domain.automations.model import AgentAction, Mode
from lamplighter.domain.city.model import City, Configuration, Provider, Workspace
from lamplighter.domain.city.modes import modes_told, offered
from lamplighter.domain.city.planners import cannot_plan, mode_refused
from lamplighter.domain.city.run_plan import named_preset

CITY = City(workspace=Workspace(name="town"), providers={"own": Provider(command="own")})
CONFIGURATIONS = {
    "site": Configuration(name="site", preset="goose"),
    "plain": Configuration(name="plain", preset="claude"),
    "careful": Configuration(name="careful", preset="claude", mode="plan"),
    "other": Configuration(name="other", preset="claude", fallback_preset="shell"),
}


@pytest.mark.parametrize(
    ("action", "told"),
    [
        (AgentAction(preset="claude"), ""),
        (AgentAction(preset="codex", fallback_preset="gemini"), ""),
        (AgentAction(), ""),
        (AgentAction(preset="nothing"), ""),
        (AgentAction(configuration="plain"), ""),
        (AgentAction(preset="goose"), "goose in chat mode calls no tool at all"),
        (AgentAction(preset="own"), "how own is told to plan only is not known"),
        (AgentAction(preset="aider"), "aider calls no tools"),
        (AgentAction(preset="claude", fallback_preset="amp"), "Amp has no mode in which it only plans"),
        (AgentAction(configuration="site"), "goose"),
        (AgentAction(configurations=("plain", "site")), "goose"),
        (AgentAction(configuration="other"), "a shell does what it is told"),
        (AgentAction(configuration="careful"), "the configuration `careful` has the mode `plan`"),
    ],
)
def test_it_is_told_why_a_program_cannot_plan(action: AgentAction, told: str) -> None:
    found = cannot_plan(CITY, action, CONFIGURATIONS)
    assert told in found
    assert bool(found) == bool(told)


def test_the_citys_own_program_counts_where_none_is_named() -> None:
    city = City(workspace=Workspace(name="town", provider="goose"))
    assert "goose" in cannot_plan(city, AgentAction(), {})
    assert cannot_plan(city, AgentAction(preset="claude"), {}) == ""


@pytest.mark.parametrize(
    ("action", "told"),
    [
        (AgentAction(preset="own", mode=Mode.FULL_ACCESS), ""),
        (AgentAction(preset="own"), ""),
        (AgentAction(preset="claude", mode=Mode.PLAN), ""),
        (AgentAction(preset="nothing", mode=Mode.PLAN), ""),
        (AgentAction(preset="own", mode=Mode.PLAN), "own cannot complete a run in mode `plan`: it is a program of the"),
        (AgentAction(preset="own", mode=Mode.APPROVAL), "; set it to `full_access`, or choose another preset"),
        (AgentAction(preset="claude", fallback_preset="own", mode=Mode.PLAN), "own cannot complete a run"),
        (AgentAction(configuration="site", mode=Mode.PLAN), "goose in chat mode calls no tool at all"),
    ],
)
def test_it_is_told_why_a_program_cannot_complete_a_run_in_its_mode(action: AgentAction, told: str) -> None:
    found = mode_refused(CITY, action, CONFIGURATIONS)
    assert told in found
    assert bool(found) == bool(told)


def test_only_modes_in_which_a_run_can_complete_are_offered() -> None:
    assert offered(modes_told(named_preset(CITY, "own"))) == ["full_access"]
    assert offered(modes_told(None)) == ["approval", "plan", "full_access"]
