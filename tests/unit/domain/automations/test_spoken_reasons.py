"""The reasons of gates in words for people."""

import pytest

from lamplighter.domain.automations.spoken_reasons import said


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("never run", "it has never run"),
        ("elapsed 1h30m >= interval 1h", "it last fired 1 h 30 min ago"),
        ("cooldown: 13s remaining", "13 s remain"),
        ("cooldown: 5m remaining, for the clock was set back", "5 min remain, for the clock was set back"),
        ("cron: schedule matched", "its time has come"),
        ("schedule: matched, 12m late", "its time has come, 12 min late"),
        ("schedule: not matched", "its time has not come"),
        ("cron: already run this minute", "it has already run this minute"),
        ("condition: check passed", "its check succeeded"),
        ("condition: check failed with exit code 1", "its check ended with exit code 1"),
        ("condition: check timed out after 30s", "its check took longer than 30 s"),
        ("event: 1 bell.rung event", "1 bell.rung event came"),
        ("event: no matching bell.rung events", "no bell.rung event that matches has come"),
        ("event: cannot read events: no disk", "cannot read events: no disk"),
        ("manual: fires only by `lamp automation run`", "fires only by `lamp automation run`"),
        ("run by hand", "run by hand"),
    ],
)
def test_a_reason_of_a_gate_is_put_into_words(reason: str, words: str) -> None:
    assert said(reason) == words
