"""The JSON schemas of the tools' arguments."""

from collections.abc import Mapping
from typing import Any

from lamplighter.domain.runs.completion import Outcome

Schema = Mapping[str, Any]


def text(description: str) -> Schema:
    return {"type": "string", "description": description}


def texts(description: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def one_of(description: str, *values: str) -> Schema:
    return {"type": "string", "enum": list(values), "description": description}


def number(description: str) -> Schema:
    return {"type": "integer", "minimum": 1, "description": description}


def free(description: str) -> Schema:
    return {"type": "object", "description": description, "additionalProperties": True}


def arguments(properties: Mapping[str, Schema], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


# No argument is called `summary` or `security_risk`: some programs add those names to every tool themselves.
COMPLETION = arguments(
    {
        "run_id": text("The run's id, from your instructions."),
        "completion_id": text("The completion id, from your instructions."),
        "outcome": one_of("How it ended.", *Outcome),
        "summary_markdown": text("A few lines on what was done and found."),
        "citations": texts("Files, links or commits that show it."),
        "diff_ref": text("Where the change can be seen: a branch, commit or link."),
        "test_report_ref": text("Where the results of tests can be seen."),
        "side_effect_refs": texts("What was changed outside: issues, pull requests, messages."),
    },
    "run_id",
    "completion_id",
    "outcome",
)
