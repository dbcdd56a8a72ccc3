"""A daemon killed while an agent is told that it goes round in circles: told once, one more round, one end."""

import json
from collections import Counter
from pathlib import Path

import pytest
from automation_watch import look, wait_until
from pipeline_load import leftovers, quiet
from test_automation_crashes import crash, define, start
from test_verify_crashes import AGENT as COMPLETES

from lamplighter.kit.crash import CrashPoint
from lamplighter.testing.processes import Children

POINTS = (CrashPoint.STUCK_BEFORE_STOP, CrashPoint.STUCK_AFTER_STOP, CrashPoint.STUCK_AFTER_TOLD)
# Claude Code as far as its stream goes: it repeats itself in its first round and completes in its second.
PROGRAM = f"""#!/bin/sh
[ "$1 $2" = "auth status" ] && exit 0
[ "$1" = --version ] && exit 1
if [ "$LAMP_ROUND" = 1 ]; then
    echo "$LAMP_ROUND" >> "$LAMP_CITY/prompts.log"
    cat "$LAMP_CITY/lines"
    exec sleep 600
fi
{COMPLETES}
"""
ONCE = """
[automation]
gate = "cooldown"
interval = "1h"

[automation.agent]
prompt = "Go."
preset = "claude"
"""


def _lines() -> str:
    asked = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make test"}}
    gave = {"type": "tool_result", "tool_use_id": "t", "content": "2 failed"}
    call = [{"type": "assistant", "message": {"content": [asked]}}, {"type": "user", "message": {"content": [gave]}}]
    return "".join(json.dumps(line) + "\n" for line in call * 4)


@pytest.mark.parametrize("point", POINTS)
def test_it_is_told_once_and_its_run_ends_once(
    point: CrashPoint, city: Path, environment: dict[str, str], processes: Children
) -> None:
    (city / "bin").mkdir()
    (city / "bin" / "claude").write_text(PROGRAM, encoding="utf-8")
    (city / "bin" / "claude").chmod(0o755)
    (city / "lines").write_text(_lines(), encoding="utf-8")
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write("\n[api]\nport = 0\n[runs]\nstuck_after = 4\n")
    define(city, "once", ONCE)
    environment = {**environment, "PATH": f"{city / 'bin'}:{environment['PATH']}", "HOME": str(city)}
    crash(processes, city, environment, point)
    start(processes, city, environment)
    wait_until(city, quiet)
    (run,) = look(city, lambda tx: tx.runs.page())
    assert (run.state, run.round, run.summary) == ("succeeded", 2, "Lit.")
    assert (city / "prompts.log").read_text().split() == ["1", "2"]
    events = Counter(event.type for event in look(city, lambda tx: tx.runs.events(run.id)))
    assert (events["stuck_found"], events["stuck_told"], events["session_created"]) == (1, 1, 2)
    assert leftovers(city) == []
