"""Command start-up beside `python -c pass`: medians of alternating runs, in a demo city with and without its daemon.

`bench/cli.py` prints one JSON line. Peers' commands are measured beside ours where they are installed.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

REPEATS = 15
PEER_REPEATS = 3  # they take seconds; three runs tell enough
BIN = Path(sys.executable).parent
LAMP = str(BIN / "lamp")
BARE = "python -c pass"
COMMANDS = {
    "status": ["status"],
    "run list": ["run", "list"],
    "event list": ["event", "list"],
    "version": ["version"],
    "--version": ["--version"],
    "--help": ["--help"],
    "completion": ["completion", "bash"],
}
GOALS = {"status": 8, "run list": 9, "event list": 12, "--version": 6, "completion": 8}
TAB = "a run completed by Tab"
"""Reported beside the goals: what the shell asks when somebody types `lamp run show` and Tab."""


def main() -> None:
    peers = {f"{peer} --help": [str(BIN / peer), "--help"] for peer in ("procrastinate", "dbos", "prefect")}
    peers = {name: command for name, command in peers.items() if Path(command[0]).exists()}
    with tempfile.TemporaryDirectory() as city:
        _quietly([LAMP, "init", "--demo", city])
        ours = {name: [LAMP, "--city", city, *words] for name, words in COMMANDS.items()}
        asked = ["_LAMP_COMPLETE=bash_complete", "COMP_WORDS=lamp run show l", "COMP_CWORD=3", f"LAMP_CITY={city}"]
        ours["--version"] = [LAMP, "--version"]  # as scripts ask it, of no city
        ours[TAB] = ["env", *asked, LAMP]
        stopped = _medians(ours)
        _quietly([LAMP, "--city", city, "daemon", "start"])
        try:
            running = _medians(ours | peers)
        finally:
            _quietly([LAMP, "--city", city, "stop"])
    told = {"without daemon": _ratios(stopped), "with daemon": _ratios(running)}
    goals = {
        f"{name} {where} within {most}x": ratios[name] <= most
        for where, ratios in told.items()
        for name, most in GOALS.items()
    }
    base_ms = round(running[BARE] * 1000, 1)
    print(json.dumps({"bench": "cli", "python_c_pass_ms": base_ms, "times_python": told, "goals": goals}))


def _medians(commands: Mapping[str, list[str]]) -> dict[str, float]:
    """Each command once in a turn, so that a busy moment of the machine falls on all of them."""
    commands = {BARE: [sys.executable, "-c", "pass"], **commands}
    for command in commands.values():
        _quietly(command)  # its files are compiled and in memory from here on
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(REPEATS):
        for name, command in commands.items():
            if name == BARE or name in {*COMMANDS, TAB} or turn < PEER_REPEATS:
                began = time.perf_counter()
                _quietly(command)
                times[name].append(time.perf_counter() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def _ratios(medians: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value / medians[BARE], 1) for name, value in medians.items()}


def _quietly(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
