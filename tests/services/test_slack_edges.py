"""Slack where there is nothing to do or to say: it is refused, left alone, or put into plain words."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from automation_city import City

from lamplighter.domain.runs.model import RunState
from lamplighter.services.slack.installing import RemoveSlack, SlackUnknown, remove
from lamplighter.services.slack.receiving import SlackReceiver
from lamplighter.services.slack.telling import last_words


def test_a_workspace_that_is_not_there_is_not_removed(city: City) -> None:
    with pytest.raises(SlackUnknown):
        city.run(remove, RemoveSlack("T9"), city.context)
    assert city.events("slack.removed") == []


@pytest.mark.parametrize("payload", [{"type": "event_callback"}, {"type": "hello", "event": {"type": "message"}}, {}])
async def test_what_is_no_event_is_left_alone_whatever_workspace_it_names(payload: dict[str, Any]) -> None:
    receiver = SlackReceiver(cast("Any", None), cast("Any", None), cast("Any", None), cast("Any", None))
    workspace = SimpleNamespace(row=SimpleNamespace(team="T1"))
    await receiver.told(cast("Any", workspace), payload | {"team_id": "T2"})


def test_the_last_words_of_a_run_say_what_it_wants_or_why_it_ended(city: City) -> None:
    city.add("light")
    run = city.get(city.run_now("light").run)
    asks = replace(run, state=RunState.NEEDS_HUMAN)
    assert last_words(asks, said="x") == "It asks for a person."
    assert last_words(replace(asks, summary="See <above>."), said="x") == "See &lt;above&gt;."
    assert last_words(replace(asks, question={"text": "Which lamp?"}), said="x") == "Which lamp?"
    failed = replace(run, state=RunState.TIMED_OUT, reason="idle")
    assert last_words(failed, said="x") == ":x: The run ended as timed out: idle"
    done = replace(run, state=RunState.SUCCEEDED, summary="Lit.")
    assert (last_words(done, said=""), last_words(done, said="Lit. All.")) == ("Lit.", "")
