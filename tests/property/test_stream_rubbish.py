"""No line that a program prints, whole or broken, ends its reading."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.sessions.transcript import Parsed

_SIGNS = 'ab{}[]:,"\\\n\x1b 019-'
_TEXT = st.text(alphabet=_SIGNS, max_size=5)
_KEYS = st.sampled_from([
    "type", "kind", "item", "message", "content", "part", "event", "data", "error", "usage", "result", "subtype",
    "tool_call", "toolCall", "value", "tokens", "state", "stats", "observation", "llm_message", "permission_denials",
])  # fmt: skip
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
_TYPES = st.sampled_from([
    "assistant", "user", "result", "item.started", "item.completed", "turn.completed", "turn.failed", "error",
    "message", "tool_use", "tool_result", "step_finish", "complete", "agent_event", "run_result", "tool_call",
    "assistant.message", "tool.execution_complete", "text", "ActionEvent", "ObservationEvent", "MessageEvent",
])  # fmt: skip


@pytest.mark.parametrize("name", sorted(PRESETS))
@settings(deadline=None, max_examples=60)
@given(found=st.dictionaries(_KEYS, _VALUES, max_size=5), kind=_TYPES)
def test_objects_of_any_shape_are_survived(name: str, found: dict[str, object], kind: str) -> None:
    line = json.dumps({**found, "type": kind, "kind": kind})
    assert isinstance(PRESETS[name].parse(line), Parsed)


@pytest.mark.parametrize("name", sorted(PRESETS))
@settings(deadline=None, max_examples=60)
@given(line=st.text(alphabet=_SIGNS))
def test_lines_of_any_text_are_survived(name: str, line: str) -> None:
    assert isinstance(PRESETS[name].parse(line), Parsed)
