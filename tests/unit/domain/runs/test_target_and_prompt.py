import pytest

from lamplighter.domain.runs.prompt import completion_id, prompt, prompt_key, session_key
from lamplighter.domain.runs.target import (
    Ask,
    Candidate,
    How,
    NotSelected,
    Selected,
    Target,
    Wish,
    resolve,
    settle,
)

KNOWN = {
    one.name: one for one in (Candidate("web", "the site"), Candidate("api", "the service"), Candidate("mute", " "))
}
DECIDE = Wish(decide=True, allowed=("web", "api", "mute", "gone", "web"), fallback="web")


def test_a_fixed_target_asks_nobody() -> None:
    """Case 15."""
    assert resolve(Wish("web", allowed=("api",)), KNOWN) == Target(How.DEFAULT, "web", "selection_disabled")
    assert resolve(Wish(), KNOWN) == Target(How.DEFAULT, None, "selection_disabled")


def test_a_fixed_target_that_is_gone_fails() -> None:
    found = resolve(Wish("gone"), KNOWN)
    assert isinstance(found, Target)
    assert (found.how, found.failure) == (How.FAILED, "missing_configuration")


def test_an_empty_allowlist_fails_without_a_session() -> None:
    """Case 16."""
    found = resolve(Wish("web", decide=True, fallback="web"), KNOWN)
    assert isinstance(found, Target)
    assert (found.how, found.failure) == (How.FAILED, "configuration_selection_failed")


def test_only_what_describes_itself_can_be_chosen() -> None:
    assert resolve(DECIDE, KNOWN) == Ask((KNOWN["web"], KNOWN["api"]))
    none = resolve(Wish(decide=True, allowed=("mute",), fallback="web"), KNOWN)
    assert none == Target(How.FALLBACK, "web", "no_eligible_candidates; using_fallback")


def test_the_model_s_choice_goes_on_record_with_its_reason() -> None:
    assert settle(DECIDE, KNOWN, Selected("api", "it names the service")) == Target(
        How.SELECTED, "api", "it names the service"
    )
    assert settle(DECIDE, KNOWN, Selected("api", "x")).failure is None


@pytest.mark.parametrize("chosen", ["mute", "gone", "other", ""])
def test_a_choice_outside_the_eligible_falls_back(chosen: str) -> None:
    """Case 17."""
    found = settle(DECIDE, KNOWN, Selected(chosen, "x"))
    assert found == Target(How.FALLBACK, "web", "selected_id_not_in_eligible_set; using_fallback")


def test_a_failed_choice_falls_back_to_the_fallback_then_to_the_default() -> None:
    failed = NotSelected("llm_call_failed: timeout")
    assert settle(Wish("api", decide=True, allowed=("web",)), KNOWN, failed).configuration == "api"
    assert settle(Wish("api", decide=True, allowed=("web",), fallback="web"), KNOWN, failed).configuration == "web"
    assert settle(Wish("api", decide=True, allowed=("web",), fallback="gone"), KNOWN, failed).configuration == "api"


def test_a_failed_choice_without_fallback_or_default_fails() -> None:
    """Case 18."""
    found = settle(Wish(decide=True, allowed=("web",)), KNOWN, NotSelected("empty_llm_response"))
    assert found.as_json() == {"type": "failed", "reason": "empty_llm_response", "configuration": None}
    assert found.failure == "configuration_selection_failed"


def test_the_prompt_names_tool_run_and_completion_and_points_to_the_context() -> None:
    text = prompt("  Light the lamps.\n", run="run_1", context_file="/c/trigger.json")
    blocks = text.split("\n\n")
    assert blocks[0] == "Light the lamps."
    assert "/c/trigger.json" in blocks[1]
    for word in (
        "automation_complete",
        "run_1",
        completion_id("run_1"),
        "succeeded",
        "failed",
        "needs_human",
        "citations",
    ):
        assert word in blocks[2]
    assert "__automation_complete" not in text, "prefixes differ from program to program"
    assert "automation.complete" not in text


def test_blank_instructions_and_no_context_leave_the_contract() -> None:
    assert prompt(" \n", run="run_1", context_file=None).startswith("When you are finished")


def test_a_program_without_mcp_is_given_a_command() -> None:
    text = prompt("Go.", run="run_1", context_file=None, has_mcp=False)
    assert "lamp run complete run_1 --completion-id run:run_1:completion:v1" in text
    assert "automation_complete" not in text


def test_keys_are_the_same_for_every_try() -> None:
    assert (session_key("run_1"), prompt_key("run_1")) == ("run:run_1:session", "run:run_1:prompt:v1")
