"""A daemon killed between any two steps of a plan's approval, and of taking a run over and giving it back."""

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from automation_watch import look, rows, wait_until
from pipeline_load import leftovers, quiet
from test_automation_crashes import define, start

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.crash import CrashPoint
from lamplighter.store.tx import Tx
from lamplighter.testing.processes import Child, Children

# A program that plans and resumes. Its first call reports once it is let go, for a run that ends before its start is on
# record passes fewer points. It reports until it is answered; told to wait, its first call never does.
PROGRAM = """#!/bin/sh
[ "$1" = --version ] && exit 0
case " $* " in *" read-only "*) mode=plan ;; *) mode=do ;; esac
case " $* " in *" resume "*) mode=$mode-resumed ;; esac
echo "$mode" >> "$LAMP_CITY/calls.log"
echo '{"type":"thread.started","thread_id":"th-1"}'
[ -e "$LAMP_CITY/wait" ] && [ "$(wc -l < "$LAMP_CITY/calls.log")" = 1 ] && exec sleep 600
n=0
until [ -e "$LAMP_CITY/go" ] || [ "$mode" != "${mode%-resumed}" ]
do n=$((n + 1)); [ $n -lt 1800 ] || exit 1; sleep 0.1; done
n=0
until curl -sf -o /dev/null --noproxy '*' -X POST "$LAMP_API_URL/api/v1/runs/$LAMP_RUN_ID/complete" \\
  -H "Authorization: Bearer $(cat "$LAMP_RUN_TOKEN_FILE")" \\
  -d '{"completion_id": "'"$LAMP_COMPLETION_ID"'", "outcome": "succeeded", "summary_markdown": "Light the lamps."}'
do n=$((n + 1)); [ $n -lt 600 ] || exit 1; sleep 0.1; done
"""
ONCE = """
[automation]
gate = "cooldown"
interval = "1h"
{more}
[automation.agent]
prompt = "Go."
preset = "codex"
mode = "full_access"
"""
APPROVED = (
    (CrashPoint.COMPLETE_AFTER_COMMIT, 0),
    (CrashPoint.RUN_AFTER_START, 1),
    (CrashPoint.RUN_AFTER_SESSION, 1),
)
"""Each with how often it is passed before: the second time is that of the run that carries the plan out."""
TAKEN = (
    (CrashPoint.TAKE_BEFORE_HAND_OVER, 0),
    (CrashPoint.TAKE_AFTER_HAND_OVER, 0),
    (CrashPoint.RUN_BEFORE_SESSION, 1),
    (CrashPoint.RUN_AFTER_SESSION, 1),
)


@pytest.mark.parametrize(("point", "passes"), APPROVED)
def test_an_approved_plan_is_carried_out_once(
    point: CrashPoint, passes: int, city: Path, environment: dict[str, str], processes: Children, lamp: Any
) -> None:
    _approved(point, passes, city, environment, processes, lamp)


def test_an_approved_plan_is_carried_out_once_on_postgres(
    city: Path, environment: dict[str, str], processes: Children, lamp: Any, postgres_url: str
) -> None:
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[store]\nurl = "{postgres_url}"\n')
    assert lamp("init").returncode == 0
    _approved(CrashPoint.RUN_AFTER_START, 1, city, environment, processes, lamp)


def _approved(
    point: CrashPoint, passes: int, city: Path, environment: dict[str, str], processes: Children, lamp: Any
) -> None:
    env = _furnished(city, environment, 'approve = "plan"')
    armed = _armed(processes, city, env, point, passes)
    let_go(city)
    if passes == 0:
        assert armed.process.wait(timeout=120) == -signal.SIGKILL
        armed = start(processes, city, env)
    wait_until(city, lambda tx: bool(_of(tx, RunState.NEEDS_HUMAN)) and tx.artifacts.of(_run(tx).id) is not None)
    first = look(city, _run)
    assert (first.reason, first.summary) == ("plan", "Light the lamps.")
    decided = [lamp("run", "approve", first.id, "--json") for _ in range(2)]
    assert [one.returncode for one in decided] == [0, 4], decided
    if passes:
        assert armed.process.wait(timeout=120) == -signal.SIGKILL
        start(processes, city, env)
    wait_until(city, lambda tx: len(tx.runs.page()) == 2 and quiet(tx))
    second = look(city, lambda tx: tx.runs.get(json.loads(decided[0].stdout)["id"]))
    assert second is not None
    assert (second.state, second.continues) == (RunState.SUCCEEDED, first.id)
    assert (city / "calls.log").read_text().split() == ["plan", "do-resumed"]
    kept = {one.name for one in look(city, lambda tx: tx.artifacts.of(first.id))}
    assert kept == {"plan", "completion", "enrichment"}
    assert _counted(city, second.id)["session_created"] == 1
    assert leftovers(city) == []


@pytest.mark.parametrize(("point", "passes"), TAKEN)
def test_a_run_taken_over_and_given_back_has_one_session_at_a_time_and_one_end(
    point: CrashPoint, passes: int, city: Path, environment: dict[str, str], processes: Children, lamp: Any
) -> None:
    _taken(point, passes, city, environment, processes, lamp)


def test_a_run_taken_over_and_given_back_has_one_end_on_postgres(
    city: Path, environment: dict[str, str], processes: Children, lamp: Any, postgres_url: str
) -> None:
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[store]\nurl = "{postgres_url}"\n')
    assert lamp("init").returncode == 0
    _taken(CrashPoint.TAKE_BEFORE_HAND_OVER, 0, city, environment, processes, lamp)


def _taken(
    point: CrashPoint, passes: int, city: Path, environment: dict[str, str], processes: Children, lamp: Any
) -> None:
    (city / "wait").touch()
    env = _furnished(city, environment)
    armed = _armed(processes, city, env, point, passes)
    wait_until(city, lambda tx: bool(_of(tx, RunState.RUNNING)) and _is_known(tx))
    run = look(city, _run).id
    words = ("-m", "lamplighter", "run", "take", run, "--json", "--city", str(city))
    taking = processes.start(sys.executable, *words, env=env)
    if passes == 0:
        assert armed.process.wait(timeout=120) == -signal.SIGKILL
        armed = start(processes, city, env)
    assert taking.process.wait(timeout=120) == 0
    wait_until(city, lambda tx: _run(tx).session_id is None)
    assert look(city, lambda tx: [one for one in tx.sessions.of_run(run) if one.ended_at is None]) == []
    given = [lamp("run", "give", run, "Go on.") for _ in range(2)]
    assert [one.returncode for one in given] == [0, 4], given
    if passes:
        assert armed.process.wait(timeout=120) == -signal.SIGKILL
        start(processes, city, env)
    wait_until(city, quiet)
    (last,) = look(city, lambda tx: tx.runs.page())
    assert (last.state, last.taken_by) == (RunState.SUCCEEDED, None)
    assert (city / "calls.log").read_text().split() == ["do", "do-resumed"]
    events = _counted(city, run)
    assert [events[name] for name in ("run_taken", "run_handed_over", "run_given", "session_created")] == [1, 1, 1, 2]
    assert [row["status"] for row in rows(city, "SELECT status FROM trigger_events")] == ["completed"]
    assert leftovers(city) == []


def _furnished(city: Path, environment: dict[str, str], more: str = "") -> dict[str, str]:
    (city / "bin").mkdir()
    (city / "bin" / "codex").write_text(PROGRAM, encoding="utf-8")
    (city / "bin" / "codex").chmod(0o755)
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write("\n[api]\nport = 0\n")
    define(city, "once", ONCE.format(more=more))
    return environment | {"PATH": f"{city / 'bin'}:{environment['PATH']}", "HOME": str(city)}


def _armed(processes: Children, city: Path, env: dict[str, str], point: CrashPoint, passes: int) -> Child:
    armed = env | {"LAMP_CRASH_AT": f"{point.value}:{passes}"}
    return processes.start(sys.executable, "-m", "lamplighter", "up", "--city", str(city), env=armed)


def let_go(city: Path) -> None:
    """Let the first call of the program report, once its start is on record."""
    wait_until(city, lambda tx: any(run.session_id is not None for run in tx.runs.page()))
    (city / "go").touch()


def _of(tx: Tx, state: RunState) -> list[Run]:
    return tx.runs.page(state=state)


def _run(tx: Tx) -> Run:
    return tx.runs.page()[-1]


def _is_known(tx: Tx) -> bool:
    """The session is on record, and so is the program's own name for it."""
    return any(one.program_session for one in tx.sessions.of_run(_run(tx).id))


def _counted(city: Path, run: str) -> Counter[str]:
    return Counter(event.type for event in look(city, lambda tx: tx.runs.events(run)))
