"""The selector against a real HTTP server that speaks both protocols."""

import json
from datetime import timedelta

import pytest

from lamplighter.adapters.models.selector import Endpoint, ModelSelector, Speaks, endpoint_of
from lamplighter.domain.runs.enrichment import Occasion, enrich
from lamplighter.domain.runs.target import Candidate, NotSelected, Selected
from lamplighter.testing.model_server import Hang, ModelServer, Raw, Refuse, Say, Step

CANDIDATES = [Candidate("web", "the site", "rigs/web"), Candidate("api", "the service")]
PAYLOAD = enrich(
    Occasion(
        "triage", "webhook", "github", event_type="issues:opened",
        parsed={"title": "Login page is blank", "description": "…", "relatedFiles": [f"f{n}" for n in range(20)]},
    )
)  # fmt: skip
CHOICE = json.dumps({"configuration": "web", "rationale": "It is\n about the site."})


@pytest.fixture(params=Speaks)
def speaks(request: pytest.FixtureRequest) -> Speaks:
    found: Speaks = request.param
    return found


async def asked(speaks: Speaks, step: Step) -> tuple[Selected | NotSelected, ModelServer]:
    with ModelServer(step) as model:
        selector = ModelSelector(Endpoint(speaks, model.url, "small", "sk-secret"))
        return await selector.select(PAYLOAD, CANDIDATES), model


FOREIGN = CHOICE.replace("configuration", "configurationId")


@pytest.mark.parametrize("text", [CHOICE, FOREIGN, f"```json\n{CHOICE}\n```", f"  ```\n{CHOICE}```\n"])
async def test_the_model_s_choice_is_taken(speaks: Speaks, text: str) -> None:
    found, model = await asked(speaks, Say(text))
    assert found == Selected("web", "It is about the site.")
    assert [one.protocol for one in model.asked] == ["messages" if speaks is Speaks.ANTHROPIC else "chat"]


async def test_the_question_names_the_candidates_and_the_work_and_carries_the_key(speaks: Speaks) -> None:
    _, model = await asked(speaks, Say(CHOICE))
    request = model.asked[0]
    body = json.dumps(request.body)
    for word in ("web", "the site", "rigs/web", "api", "the service", "Login page is blank", "issues:opened", "f9"):
        assert word in body
    assert "f10" not in body
    assert (request.body["model"], request.body["temperature"], request.body["max_tokens"]) == ("small", 0, 256)
    assert "sk-secret" in (request.headers.get("x-api-key") or request.headers["authorization"])


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Say(""), "empty_llm_response"),
        (Say(" \n"), "empty_llm_response"),
        (Raw(b"{}"), "empty_llm_response"),
        (Raw(b'{"choices": [], "content": 3}'), "empty_llm_response"),
        (Say("the web one"), "invalid_llm_response"),
        (Say(f"Sure! {CHOICE}"), "invalid_llm_response"),
        (Say('["web"]'), "invalid_llm_response"),
        (Say('{"configuration": "web"}'), "invalid_llm_response"),
        (Say('{"configuration": 1, "rationale": "x"}'), "invalid_llm_response"),
        (Say("```"), "invalid_llm_response"),
        (Say("[" * 100_000), "invalid_llm_response"),
        (Say('{"configuration": "other", "rationale": "x"}'), "selected_id_not_in_eligible_set"),
        (Refuse(500), "llm_call_failed: CallFailed: HTTP 500"),
        (Refuse(401), "llm_call_failed: CallFailed: HTTP 401"),
        (Refuse(302), "llm_call_failed: CallFailed: HTTP 302"),
        (Raw(b"x" * (2 << 20)), "llm_call_failed: CallFailed: the answer is too large"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_any_other_answer_is_a_reason(speaks: Speaks, step: Step, reason: str) -> None:
    found, _ = await asked(speaks, step)
    assert found == NotSelected(reason)


async def test_a_body_that_is_no_json_is_a_failed_call(speaks: Speaks) -> None:
    found, _ = await asked(speaks, Raw(b"<html>"))
    assert isinstance(found, NotSelected)
    assert found.reason.startswith("llm_call_failed: JSONDecodeError")


async def test_a_model_that_hangs_is_left_after_the_limit(speaks: Speaks) -> None:
    with ModelServer(Hang()) as model:
        selector = ModelSelector(Endpoint(speaks, model.url, "small"), limit=timedelta(seconds=0.2))
        found = await selector.select(PAYLOAD, CANDIDATES)
    assert found == NotSelected("llm_call_failed: no answer within 0.2 s")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "nonsense", "http://user:pass@127.0.0.1:9/x", ""])
async def test_a_service_that_is_not_there_is_a_failed_call_without_its_password(speaks: Speaks, url: str) -> None:
    found = await ModelSelector(Endpoint(speaks, url, "small")).select(PAYLOAD, CANDIDATES)
    assert isinstance(found, NotSelected)
    assert found.reason.startswith("llm_call_failed: ")
    assert "pass" not in found.reason


async def test_without_candidates_or_a_model_nobody_is_asked() -> None:
    with ModelServer(Say(CHOICE)) as model:
        selector = ModelSelector(Endpoint(Speaks.OPENAI, model.url, "small"))
        assert await selector.select(PAYLOAD, []) == NotSelected("no_eligible_candidates")
        found = await ModelSelector(None).select(PAYLOAD, CANDIDATES)
        assert isinstance(found, NotSelected)
        assert found.reason.startswith("llm_call_failed: no model")
        assert model.asked == []


async def test_a_base_that_ends_in_its_version_is_understood(speaks: Speaks) -> None:
    with ModelServer(Say(CHOICE)) as model:
        found = await ModelSelector(Endpoint(speaks, f"{model.url}/v1/", "small")).select(PAYLOAD, CANDIDATES)
    assert isinstance(found, Selected)


def test_the_endpoint_comes_from_the_environment() -> None:
    assert endpoint_of({"OPENAI_API_KEY": "k"}) is None
    small = {"LAMP_SELECTOR_MODEL": "small"}
    assert endpoint_of(small | {"OPENAI_API_KEY": "k"}) == Endpoint(
        Speaks.OPENAI, "https://api.openai.com", "small", "k"
    )
    both = small | {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": "http://gate"}
    assert endpoint_of(both) == Endpoint(Speaks.ANTHROPIC, "http://gate", "small", "a")
    chosen = both | {"LAMP_SELECTOR_PROTOCOL": "openai", "LAMP_SELECTOR_URL": "http://own", "LAMP_SELECTOR_KEY": "x"}
    found = endpoint_of(chosen)
    assert found == Endpoint(Speaks.OPENAI, "http://own", "small", "x")
    assert "'x'" not in repr(found)
