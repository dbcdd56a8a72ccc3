"""`lamp run take` as a person gives it: the program is opened in their terminal, with all that a run gives it."""

import json
import subprocess
import sys
from pathlib import Path

from lamp_program import ENVIRONMENT, here, lamp, told_its_name, until

PROGRAM = """#!/bin/sh
case "$1" in
--version) exit 0 ;;
exec) echo '{"type":"thread.started","thread_id":"th-1"}'; exec sleep 600 ;;
esac
echo "$KEY_OF_THE_DOOR $LAMP_CURSOR $*" > "$LAMP_CITY/opened"
"""
CITY = '[workspace]\nname = "town"\n[api]\nport = 0\n[daemon]\nshutdown_timeout = "2s"\n'
WAITS = """[automation]
gate = "manual"
env = { KEY_OF_THE_DOOR = "secret:door" }
[automation.agent]
prompt = "Wait."
preset = "codex"
mode = "full_access"
"""


def test_the_program_of_a_taken_run_is_opened_with_its_conversation_its_secrets_and_its_cursor(tmp_path: Path) -> None:
    root, program = tmp_path / "town", tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:{ENVIRONMENT['PATH']}", "HOME": str(tmp_path)}
    assert lamp("init", str(root), cwd=tmp_path, env=env).code == 0
    (root / "city.toml").write_text(CITY)
    (root / ".gc/formulas/automations/wait").mkdir(parents=True)
    (root / ".gc/formulas/automations/wait/automation.toml").write_text(WAITS)
    setting = [sys.executable, "-m", "lamplighter", "secret", "set", "door", "--city", str(root)]
    subprocess.run(setting, input="moonshine", text=True, env={**ENVIRONMENT, **env}, check=True, timeout=180)
    try:
        assert lamp("daemon", "start", cwd=root, env=env).code == 0
        assert lamp("automation", "cursor", "wait", "--set", "page-7", "--expect", "", cwd=root, env=env).code == 0
        run = json.loads(lamp("automation", "run", "wait", "--json", cwd=root, env=env).out)["id"]
        until(lambda: told_its_name(root / ".gc" / "lamp.db", run))
        taken = lamp("run", "take", run, cwd=root, env=env)
        assert taken.code == 0, taken
        key, cursor, *words = (root / "opened").read_text().split()
        assert (key, cursor) == ("moonshine", "page-7")
        assert words[:2] == ["resume", "th-1"] or "th-1" in words
        assert here("run", "show", run, "--json", "--city", str(root)).json["taken_by"]
    finally:
        lamp("stop", cwd=root, env=env)
