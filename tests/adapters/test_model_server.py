"""The scripted model answers a request that insists on a schema by that schema, whatever its script says."""

import http.client
import json
from typing import Any

import pytest

from lamplighter.testing.model_server import CallTool, ModelServer, Say

RATING = {
    "type": "OBJECT",
    "properties": {
        "reasoning": {"type": "STRING"}, "score": {"type": "INTEGER"}, "model": {"type": "string", "enum": ["a", "b"]},
        "parts": {"type": "array"}, "sure": {"type": "boolean"},
    },
}  # fmt: skip


def answered(model: ModelServer, config: dict[str, Any]) -> str:
    body = {"contents": [{"role": "user", "parts": [{"text": "Light the lamps."}]}], "generationConfig": config}
    connection = http.client.HTTPConnection(model.url.removeprefix("http://"), timeout=60)
    try:
        connection.request("POST", "/v1beta/models/auto:generateContent", json.dumps(body))
        whole = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    text = whole["candidates"][0]["content"]["parts"][0]["text"]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("step", [Say("The lamps burn bright."), CallTool("automation_complete")])
def test_a_request_with_a_schema_is_answered_by_it(step: Say | CallTool) -> None:
    with ModelServer(step) as model:
        told = json.loads(answered(model, {"responseMimeType": "application/json", "responseJsonSchema": RATING}))
    assert told == {"reasoning": "Plain.", "score": 1, "model": "a", "parts": [], "sure": False}


def test_one_without_a_schema_is_answered_by_the_script() -> None:
    with ModelServer(Say("The lamps burn bright.")) as model:
        assert answered(model, {"temperature": 1}) == "The lamps burn bright."
