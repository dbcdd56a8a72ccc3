from pathlib import Path

from lamplighter.domain.runs.completion import CompletionRefused, Outcome
from lamplighter.mcp.reference import reference

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_tools_page_says_what_the_tools_say() -> None:
    assert (REFERENCE / "tools.md").read_text() == reference(), "write it anew: python docs/write_tools.py"


def test_the_completion_page_names_every_outcome_and_refusal() -> None:
    page = (REFERENCE / "completion.md").read_text()
    for word in (*Outcome, *(refusal.code for refusal in CompletionRefused.__subclasses__())):
        assert f"`{word}`" in page
