"""A daemon killed at each named point of a verification: one verdict for each round, one end, no session twice."""

import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from automation_watch import look, rows, wait_until
from pipeline_load import PROVIDER, leftovers, quiet
from test_automation_crashes import crash, define, start
from test_trust_crashes import _armed, let_go

from lamplighter.kit.crash import CrashPoint
from lamplighter.testing.processes import Children

POINTS = (
    (CrashPoint.COMPLETE_AFTER_COMMIT, 0),
    (CrashPoint.VERIFY_BEFORE_COMMAND, 0),
    (CrashPoint.VERIFY_AFTER_COMMAND, 0),
    (CrashPoint.VERIFY_AFTER_VERDICT, 0),
    (CrashPoint.RUN_AFTER_SESSION, 1),
    (CrashPoint.VERIFY_AFTER_COMMAND, 1),
    (CrashPoint.VERIFY_AFTER_VERDICT, 1),
)
"""Each with how often it is passed before: the second time is in the second round."""

# It mends what is verified in its second round only. It reports until it is answered.
AGENT = """
echo "$LAMP_ROUND" >> "$LAMP_CITY/prompts.log"
[ "$LAMP_ROUND" = 1 ] || touch "$LAMP_CITY/mended"
n=0
until curl -sf -o /dev/null --noproxy '*' -X POST "$LAMP_API_URL/api/v1/runs/$LAMP_RUN_ID/complete" \\
  -H "Authorization: Bearer $(cat "$LAMP_RUN_TOKEN_FILE")" \\
  -d '{"completion_id": "'"$LAMP_COMPLETION_ID"'", "outcome": "succeeded", "summary_markdown": "Lit."}'
do n=$((n + 1)); [ $n -lt 600 ] || exit 1; sleep 0.1; done
"""
# Before its first round: one that has claimed before its start is on record passes fewer points.
WAITS = """
n=0
[ "$LAMP_ROUND" = 1 ] && until [ -e "$LAMP_CITY/go" ]
do n=$((n + 1)); [ $n -lt 1800 ] || exit 1; sleep 0.1; done
"""
ONCE = """
[automation]
gate = "cooldown"
interval = "1h"
verify = 'echo "$LAMP_ROUND" >> "$LAMP_CITY/verified.log"; test -e "$LAMP_CITY/mended"'

[automation.agent]
prompt = "Go."
preset = "scripted"
"""


@pytest.mark.parametrize(("point", "passes"), POINTS)
def test_each_round_has_one_session_and_one_verdict_and_the_run_one_end(
    point: CrashPoint, passes: int, city: Path, environment: dict[str, str], processes: Children
) -> None:
    _furnish(city)
    _killed_and_checked(point, passes, city, environment, processes)


@pytest.mark.parametrize("point", [CrashPoint.VERIFY_AFTER_COMMAND, CrashPoint.VERIFY_AFTER_VERDICT])
def test_on_postgres_too(
    point: CrashPoint, city: Path, environment: dict[str, str], processes: Children, postgres_url: str, lamp: Any
) -> None:
    _furnish(city, f'[store]\nurl = "{postgres_url}"\n')
    assert lamp("init").returncode == 0
    _killed_and_checked(point, 0, city, environment, processes)


@pytest.mark.parametrize("point", [CrashPoint.SETUP_BEFORE_COMMAND, CrashPoint.SETUP_AFTER_COMMAND])
def test_a_setup_is_run_once_and_its_run_ends_once(
    point: CrashPoint, city: Path, environment: dict[str, str], processes: Children
) -> None:
    web = city / "web"
    web.mkdir()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=web, check=True)
    rig = '[[rigs]]\nname = "web"\npath = "web"\n[rigs.workspace]\nports = 2\n'
    _furnish(city, rig + "setup = 'echo once >> \"$LAMP_CITY/setup.log\"'\n")
    (city / "mended").touch()
    folder = city / ".gc" / "formulas" / "automations" / "once"
    text = (folder / "automation.toml").read_text()
    (folder / "automation.toml").write_text(text + 'configuration = "there"\n')
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write('\n[[configurations]]\nname = "there"\nrig = "web"\n')
    (web / "agent.sh").write_text(AGENT, encoding="utf-8")
    provider = (city / "city.toml").read_text().replace('"agent.sh"', f'"{web}/agent.sh"')
    (city / "city.toml").write_text(provider)
    crash(processes, city, environment, point)
    start(processes, city, environment)
    wait_until(city, quiet)
    (run,) = look(city, lambda tx: tx.runs.page())
    assert (run.state, run.grade, run.round) == ("succeeded", "verified", 1)
    assert (city / "setup.log").read_text().split() == ["once"]
    events = Counter(event.type for event in look(city, lambda tx: tx.runs.events(run.id)))
    assert (events["setup_done"], events["session_created"]) == (1, 1)
    assert leftovers(city) == []


def _furnish(city: Path, more: str = "") -> None:
    (city / "agent.sh").write_text(WAITS + AGENT, encoding="utf-8")
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(PROVIDER + "\n[api]\nport = 0\n\n" + more)
    define(city, "once", ONCE)


def _killed_and_checked(
    point: CrashPoint, passes: int, city: Path, environment: dict[str, str], processes: Children
) -> None:
    armed = _armed(processes, city, environment, point, passes)
    let_go(city)
    assert armed.process.wait(timeout=180) == -signal.SIGKILL
    start(processes, city, environment)
    wait_until(city, quiet)
    (run,) = look(city, lambda tx: tx.runs.page())
    assert (run.state, run.grade, run.round, run.pending, run.summary) == ("succeeded", "verified", 2, None, "Lit.")
    assert (city / "prompts.log").read_text().split() == ["1", "2"]
    assert (city / "verified.log").read_text().split() == ["1", "2"]
    events = Counter(event.type for event in look(city, lambda tx: tx.runs.events(run.id)))
    assert (events["session_created"], events["prompt_sent"], events["completion_claimed"]) == (2, 2, 2)
    assert (events["verify_failed"], events["verify_passed"]) == (1, 1)
    judged = rows(city, "SELECT number, passed FROM rounds ORDER BY number")
    assert [tuple(row.values()) for row in judged] == [(1, 0), (2, 1)]
    assert [row["status"] for row in rows(city, "SELECT status FROM trigger_events")] == ["completed"]
    assert leftovers(city) == []
