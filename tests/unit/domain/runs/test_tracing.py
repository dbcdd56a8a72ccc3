"""Which traces are handed on to programs."""

import pytest

from lamplighter.domain.runs.tracing import is_sound, variables

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what-will-be", True),
        (f"00-{TRACE}-{SPAN}-01-what-will-be", False),
        (f"ff-{TRACE}-{SPAN}-01", False),
        (f"00-{'0' * 32}-{SPAN}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-{SPAN}-01", False),
        (f"00-{TRACE}-{SPAN}-01\nX: 1", False),
        ("", False),
    ],
)
def test_only_what_names_a_trace_and_a_span_is_sound(text: str, sound: bool) -> None:  # noqa: FBT001
    assert is_sound(text) is sound
    assert variables({"traceparent": text}) == ({"TRACEPARENT": text} if sound else {})


@pytest.mark.parametrize("trigger", [None, {}, {"traceparent": None}, {"traceparent": ["00"]}])
def test_without_a_trace_there_is_no_variable(trigger: dict[str, object] | None) -> None:
    assert variables(trigger) == {}
