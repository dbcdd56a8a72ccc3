"""The README's five commands are run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_five_commands_of_the_readme_lead_to_a_finished_run(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    block = re.search(r"```sh\n(lamp init town.*?)```", text, re.DOTALL)
    assert block is not None
    bin_directory = Path(sys.executable).parent
    env = {key: value for key, value in os.environ.items() if not key.startswith(("LAMP_", "GC_"))}
    env["PATH"] = f"{bin_directory}:{env['PATH']}"
    script = f"set -e\ntrap 'lamp --city {tmp_path}/town stop >&2' EXIT\n{block[1]}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "tidied" in done.stdout
    assert "succeeded" in done.stdout
    assert "Daily at 03:30" in done.stdout
