"""Definitions from rubbish and from everything valid: refused or kept, never raised and never changed on the way."""

import contextlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lamplighter.domain.automations.decode import Invalid, Origin, decode_file, decode_json, decode_snapshot
from lamplighter.domain.automations.decode_triggers import TRIGGER_KEYS
from lamplighter.domain.automations.model import (
    AgentAction,
    Automation,
    Condition,
    Cooldown,
    Cron,
    Event,
    Exec,
    Formula,
    Manual,
    Mode,
    Schedule,
    Trigger,
    Webhook,
)
from lamplighter.domain.automations.policies import Budget, CatchUp, CatchUpMode, Notify, Overlap, Policies, Retry
from lamplighter.domain.automations.shape import POLICY_KEYS, to_file, to_shape
from lamplighter.kit.cron import parse_cron
from lamplighter.kit.schedule import Daily, Hourly, Once, Weekly

words = st.text("abcxyz-_ é", min_size=1, max_size=12).filter(lambda text: text == text.strip() != "")
spans = st.integers(1, 10**6).map(lambda seconds: timedelta(seconds=seconds))
maybe_span = st.none() | spans
scalars = st.text(max_size=5) | st.integers(-5, 5) | st.booleans()
matches = st.dictionaries(words, scalars | st.lists(scalars, min_size=1, max_size=3), max_size=2)
gates = st.one_of(
    st.builds(Cooldown, spans),
    st.sampled_from(["@daily", "*/15 9-17 * * mon-fri", "0 0 29 2 *"]).map(lambda text: Cron(parse_cron(text))),
    st.builds(Schedule, st.builds(Hourly, st.integers(0, 59))),
    st.builds(Schedule, st.builds(Daily, st.integers(0, 23), st.integers(0, 59))),
    st.builds(Schedule, st.builds(Weekly, st.integers(0, 6), st.integers(0, 23), st.integers(0, 59))),
    st.builds(Schedule, st.builds(Once, st.datetimes(datetime(2000, 1, 1), timezones=st.just(UTC)))),  # noqa: DTZ001  a bound is naive
    st.builds(Condition, words, maybe_span, spans),
    st.builds(Event, st.sampled_from(["bead.closed", "bead.*", "*"]), matches, st.integers(1, 1000)),
    st.builds(Webhook, words, st.lists(words, max_size=2).map(tuple), matches),
    st.just(Manual()),
)
actions = st.one_of(
    st.builds(Exec, words),
    st.builds(Formula, words, st.none() | words, st.dictionaries(words, words, max_size=2)),
    st.builds(AgentAction, words, st.none() | st.just("/srv"), st.none() | words, mode=st.sampled_from(Mode)),
)
policies = st.builds(
    Policies,
    overlap=st.sampled_from(Overlap),
    catch_up=st.builds(CatchUp, st.sampled_from(CatchUpMode), spans, st.integers(1, 100)),
    retry=st.builds(Retry, st.integers(0, 20), st.just(timedelta(seconds=1)), spans),
    auto_disable_after=st.integers(0, 1000),
    quiet_after=maybe_span,
    precheck=st.none() | words,
    timeout=maybe_span,
    deadline=maybe_span,
    idle_timeout=st.none() | st.just(timedelta(0)) | spans,
    budget=st.builds(Budget, st.none() | st.floats(0.01, 1e6), st.none() | st.integers(1, 10**12), maybe_span),
    notify=st.builds(Notify, st.just(("inbox",)), st.just(("failed",)), thread=st.just(None)),
    jitter=st.just(timedelta(0)) | spans,
)
automations = st.builds(
    lambda name, action, found, rig, text, policy: Automation(
        name,
        action,
        tuple(Trigger(f"t{place}", gate) for place, gate in enumerate(found)),
        rig,
        text,
        policies=policy if isinstance(action, AgentAction) else replace(policy, idle_timeout=None, budget=Budget()),
    ),
    words,
    actions,
    st.lists(gates, min_size=1, max_size=4),
    st.none() | words,
    st.text(max_size=10),
    policies,
)
keys = st.sampled_from(
    sorted(
        {*TRIGGER_KEYS, *POLICY_KEYS, "name", "action", "policies", "exec", "formula", "agent", "pool", "vars", "kind"}
    )
)
rubbish = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["cron", "event"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys | st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
bodies = st.dictionaries(keys | st.text(max_size=5), rubbish, max_size=8)


@given(automations)
@settings(max_examples=150, deadline=None)
def test_every_automation_survives_json_snapshot_and_file(automation: Automation) -> None:
    shape = json.loads(json.dumps(to_shape(automation)))
    assert decode_snapshot(shape) == automation
    assert decode_json(shape, Origin(automation.source)) == automation
    origin = Origin(automation.source, automation.name, automation.rig)
    assert decode_file(to_file(automation), origin) == automation


@given(bodies)
@settings(max_examples=300, deadline=None)
def test_rubbish_is_answered_with_problems_that_have_keys(body: dict[str, Any]) -> None:
    for decoded in (decode_json(body, Origin()), decode_file({"automation": body}, Origin("file", "x"))):
        assert isinstance(decoded, Automation | Invalid)
        if isinstance(decoded, Invalid):
            assert decoded.problems
            assert all(one.key and one.message for one in decoded.problems)
    with contextlib.suppress(ValueError):
        decode_snapshot(body)


@given(st.text("0123456789*/,- @LW#?janmofri", max_size=30))
def test_no_text_makes_cron_fail_but_by_saying_why(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse_cron(text).in_words()
