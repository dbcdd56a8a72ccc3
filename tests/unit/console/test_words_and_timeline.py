"""Words for states and times, and the bars of a run's timeline."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.domain.events import Event
from lamplighter.domain.runs.model import RunState
from lamplighter.domain.sessions.actions import AgentState
from lamplighter.services.runs.views import RunEventView
from lamplighter.web.console import words
from lamplighter.web.console.timeline import WIDTH, stages_of
from lamplighter.web.console.visit import own_path
from lamplighter.web.console.words import last_line, unmarked

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(("kind", "states"), [("run", RunState), ("agent", AgentState)])
def test_every_state_has_its_own_word_and_glyph(kind: str, states: type[RunState] | type[AgentState]) -> None:
    known = words.MARKS[kind]
    assert {state.value for state in states} <= set(known)
    assert len({mark.word for mark in known.values()}) == len(known)


def test_states_that_need_a_person_read_apart_from_those_that_do_not_without_colour() -> None:
    glyphs = {state: words.mark(state).glyph for state in RunState}
    assert len({glyphs[one] for one in (RunState.SUCCEEDED, RunState.FAILED, RunState.NEEDS_HUMAN)}) == 3


def test_an_unknown_state_is_shown_by_its_name() -> None:
    assert words.mark("on_fire").word == "on fire"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1, "now"),
        (3, "3 s ago"),
        (-3, "in 3 s"),
        (61, "1 min ago"),
        (7300, "2 h ago"),
        (-200_000, "in 2 d 7 h"),
        (-7500, "in 2 h 5 min"),
    ],
)
def test_ago(seconds: float, said: str) -> None:
    assert words.ago(NOW - timedelta(seconds=seconds), NOW) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0 ms"),
        (0.02, "20 ms"),
        (1.44, "1.4 s"),
        (59.9, "59 s"),
        (3599, "59 min 59 s"),
        (300, "5 min"),
        (7200, "2 h"),
        (90_000, "1 d 1 h"),
    ],
)
def test_duration(seconds: float, said: str) -> None:
    assert words.duration(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        (None, "/"),
        ("/runs?state=failed", "/runs?state=failed"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/a\r\nSet-Cookie: x=y", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_after_signing_in_one_goes_to_a_page_of_this_site(wanted: str | None, path: str) -> None:
    assert own_path(wanted) == path


moves = st.lists(
    st.tuples(st.floats(-1000, 1000), st.sampled_from([state.value for state in RunState])), min_size=0, max_size=8
)


@given(moves, st.floats(-1000, 1000) | st.none())
def test_no_stage_lasts_less_than_nothing_or_leaves_the_picture(
    made: list[tuple[float, str]], ended: float | None
) -> None:
    """Whatever the clocks of several machines said."""
    events = [RunEventView(NOW + timedelta(seconds=at), "moved", None, to, "worker", None) for at, to in made]
    over = None if ended is None else NOW + timedelta(seconds=ended)
    for stage in stages_of(events, NOW, over, NOW + timedelta(seconds=10)):
        assert stage.lasted >= timedelta(0)
        assert 0 <= stage.x <= WIDTH
        assert stage.width > 0
        assert stage.x + stage.width <= WIDTH


def moved(at: int, to: str) -> RunEventView:
    return RunEventView(NOW + timedelta(seconds=at), "moved", None, to, "worker", None)


def test_a_stage_that_is_entered_again_is_shown_once() -> None:
    moves = [moved(0, "ready"), moved(2, "ready"), moved(5, "running"), moved(10, "succeeded")]
    found = stages_of(moves, NOW, NOW + timedelta(seconds=10), NOW)
    assert [(one.state, one.lasted.total_seconds()) for one in found] == [("ready", 5), ("running", 5)]


def test_a_text_is_told_in_a_line() -> None:
    assert unmarked("Looked after **4** lamps; 2 ** 3 and __all__ burn") == "Looked after 4 lamps; 2 ** 3 and all burn"
    assert last_line("\x1b[32mone\x1b[0m\n two \n\n") == "two"
    assert last_line("") == ""


def test_a_sentence_leads_to_its_runs_and_says_its_times() -> None:
    run = "run_01m7r8ygbkd659j242xkbh87q5"
    found = words.pieces(f"Trigger `daily` fired {run} at 2026-11-18 22:27:57 UTC, not 2026-13-40 00:00:00 UTC.")
    assert [(one.kind, one.text) for one in found] == [
        ("text", "Trigger "), ("code", "daily"), ("text", " fired "), ("run", run), ("text", " at "),
        ("time", "2026-11-18 22:27:57 UTC"), ("text", ", not 2026-13-40 00:00:00 UTC."),
    ]  # fmt: skip
    assert found[5].at == datetime(2026, 11, 18, 22, 27, 57, tzinfo=UTC)
    assert words.pieces("") == []


@given(st.text(alphabet="`run_ 0123456789-:TZUC\nab<", max_size=80))
def test_no_letter_of_a_sentence_is_lost(text: str) -> None:
    told = "".join(f"`{one.text}`" if one.kind == "code" else one.text for one in words.pieces(text))
    assert told == text


def test_an_event_leads_to_what_it_is_about() -> None:
    def event(kind: str, subject: str | None) -> Event:
        return Event(1, kind, NOW, "owner", subject, None, None, None)

    assert words.leads_to(event("automation.fired", "tidy:rig:a/b")) == "/automations/tidy:rig:a/b"
    assert words.leads_to(event("agent.crashed", "may or")) == "/agents/may%20or"
    for kind, subject in (("automation.removed", "tidy"), ("bell.rung", "x"), ("bead.closed", None)):
        assert words.leads_to(event(kind, subject)) == ""


def test_the_stages_follow_each_other() -> None:
    found = stages_of([moved(0, "ready"), moved(5, "running"), moved(10, "succeeded")], NOW,
                      NOW + timedelta(seconds=10), NOW + timedelta(hours=1))  # fmt: skip
    assert [(one.state, one.lasted.total_seconds(), one.x, one.width) for one in found] == [
        ("ready", 5, 0, 500),
        ("running", 5, 500, 500),
    ]
