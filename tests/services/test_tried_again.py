"""When a run that ended badly is tried again: by its policy, because nothing of it ran, or never."""

from datetime import timedelta
from typing import Any

from automation_city import City
from test_pipeline_cases import AGENT

from lamplighter.domain.automations.decisions import SkipReason
from lamplighter.domain.runs.model import RunState, Stage
from lamplighter.kit.records import changed
from lamplighter.services.runs.ending import FALLBACK_NAMED, FALLBACK_TAKEN, retry_at

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
LIMITED = {"reason": SkipReason.PROVIDER_LIMIT.value}


def test_when_an_ended_run_is_tried_again(city: City) -> None:
    """By the policy after a minute, then two; by what was in the way of its start after five seconds, then ten."""
    now = city.clock.now()
    policy = {"retry": {"count": 2, "backoff": "1m"}}
    for name, keys in {"kept": policy, "plain": {}}.items():
        city.add(name, agent=AGENT, gate="cooldown", interval="1h", **keys)
    fired = {one.automation: one for one in map(city.get, city.tick().fired)}

    def after(name: str, *, nothing_ran: bool = False, off: bool = False, **fields: Any) -> timedelta | None:
        row = changed(fired[name], **({"state": RunState.FAILED} | fields))
        automation = changed(city.row(name), enabled=not off)
        found = retry_at(row, automation, now, nothing_ran=nothing_ran)
        return None if found is None else found - now

    first = fired["kept"].attempt
    assert after("kept") == MINUTE
    assert after("kept", state=RunState.TIMED_OUT) == MINUTE
    assert after("kept", attempt=first + 1) == 2 * MINUTE
    assert after("kept", attempt=first + 2) is None
    assert after("plain") is None
    for over in (RunState.SUCCEEDED, RunState.CANCELED, RunState.SKIPPED, RunState.NEEDS_HUMAN):
        assert after("kept", state=over) is None, over
    assert after("kept", off=True) is None
    assert after("kept", continued_by="run_next") is None
    assert after("kept", reason=SkipReason.BUDGET.value) is None
    assert after("kept", stage=Stage.SETUP) is None
    assert after("kept", stage=Stage.EXECUTION) == MINUTE
    # what could not even be started
    assert after("plain", nothing_ran=True) == after("kept", nothing_ran=True)
    soon = after("plain", nothing_ran=True)
    assert soon is not None
    assert SECOND < soon < MINUTE
    assert after("plain", nothing_ran=True, trigger_kind="manual") is None
    assert after("kept", nothing_ran=True, trigger_kind="manual") == MINUTE
    assert after("plain", nothing_ran=True, stage=Stage.SETUP) is None
    # a limit of its provider
    lifts = now + 10 * MINUTE
    other = {"in_force": {"fallback": FALLBACK_NAMED}}
    assert after("kept", lifts_at=lifts, **LIMITED) == 10 * MINUTE
    assert after("kept", lifts_at=now + SECOND, **LIMITED) == MINUTE
    assert after("plain", lifts_at=lifts, **LIMITED) is None
    assert after("plain", lifts_at=lifts, **LIMITED, **other) == timedelta(0), "with its fallback, at once"
    assert after("plain", lifts_at=None, **LIMITED, **other) is None
    assert after("plain", lifts_at=lifts, reason="exit_1", **other) is None
    assert after("plain", lifts_at=lifts, **LIMITED, in_force={"fallback": FALLBACK_TAKEN}) is None
    assert retry_at(changed(fired["kept"], state=RunState.FAILED), None, now) is None, "its automation is gone"
