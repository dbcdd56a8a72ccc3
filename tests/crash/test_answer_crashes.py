"""A daemon killed between any two steps of a question and its answer: one continuing run, no session twice."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from automation_watch import look, wait_until
from pipeline_load import leftovers, quiet
from test_automation_crashes import start
from test_trust_crashes import PROGRAM, _armed, _counted, _furnished, _of, _run, let_go

from lamplighter.domain.runs.model import RunState
from lamplighter.kit.crash import CrashPoint
from lamplighter.testing.processes import Children

# As the program of the other drills, but its first call asks, until it is answered that this is on record.
ASKS = PROGRAM.replace(
    "n=0\n",
    """n=0
case "$mode" in do)
  until [ -e "$LAMP_CITY/go" ]; do n=$((n + 1)); [ $n -lt 1800 ] || exit 1; sleep 0.1; done
  n=0
  until curl -sf -o /dev/null --noproxy '*' -X POST "$LAMP_API_URL/api/v1/runs/$LAMP_RUN_ID/ask" \\
    -H "Authorization: Bearer $(cat "$LAMP_RUN_TOKEN_FILE")" -d '{"question": "Which lamps?"}'
  do n=$((n + 1)); [ $n -lt 600 ] || exit 1; sleep 0.1; done
  exit 0 ;;
esac
""",
    1,
)
POINTS = (
    (CrashPoint.COMPLETE_AFTER_COMMIT, 0),
    (CrashPoint.RUN_BEFORE_SESSION, 1),
)
"""Each with how often it is passed before: the second time is that of the run that goes on."""


@pytest.mark.parametrize(("point", "passes"), POINTS)
def test_a_question_is_asked_and_answered_once(
    point: CrashPoint, passes: int, city: Path, environment: dict[str, str], processes: Children, lamp: Any
) -> None:
    _answered(point, passes, city, environment, processes, lamp)


def test_a_question_is_asked_and_answered_once_on_postgres(
    city: Path, environment: dict[str, str], processes: Children, lamp: Any, postgres_url: str
) -> None:
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[store]\nurl = "{postgres_url}"\n')
    assert lamp("init").returncode == 0
    _answered(CrashPoint.RUN_AFTER_SESSION, 1, city, environment, processes, lamp)


def _answered(
    point: CrashPoint, passes: int, city: Path, environment: dict[str, str], processes: Children, lamp: Any
) -> None:
    env = _furnished(city, environment)
    (city / "bin" / "codex").write_text(ASKS, encoding="utf-8")
    armed = _armed(processes, city, env, point, passes)
    let_go(city)
    if passes == 0:
        assert armed.process.wait(timeout=120) == -signal.SIGKILL
        armed = start(processes, city, env)
    wait_until(city, lambda tx: bool(_of(tx, RunState.NEEDS_HUMAN)))
    first = look(city, _run)
    assert (first.reason, (first.question or {}).get("text")) == ("question", "Which lamps?")
    decided = [lamp("run", "answer", first.id, "All of them.", "--json") for _ in range(2)]
    assert [one.returncode for one in decided] == [0, 4], decided
    if passes:
        assert armed.process.wait(timeout=120) == -signal.SIGKILL
        start(processes, city, env)
    wait_until(city, lambda tx: len(tx.runs.page()) == 2 and quiet(tx))
    second = look(city, lambda tx: tx.runs.get(json.loads(decided[0].stdout)["id"]))
    assert second is not None
    assert (second.state, second.continues) == (RunState.SUCCEEDED, first.id)
    assert (city / "calls.log").read_text().split() == ["do", "do-resumed"]
    assert _counted(city, second.id)["session_created"] == 1
    assert leftovers(city) == []
