"""Command start-up beside `python -c pass` and the peers' commands: wall time, medians of interleaved runs."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEATS = 15
BIN = Path(sys.executable).parent


def main() -> None:
    with tempfile.TemporaryDirectory() as city:
        lamp = str(BIN / "lamp")
        subprocess.run([lamp, "init", city], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([lamp, "--city", city, "event", "emit", "bench.started"], check=True, stdout=subprocess.DEVNULL)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "lamp --version": [lamp, "--version"],
            "lamp --help": [lamp, "--help"],
            "lamp event list": [lamp, "--city", city, "event", "list"],
            "lamp status": [lamp, "--city", city, "status"],
            **{f"{peer} --help": [str(BIN / peer), "--help"] for peer in ("procrastinate", "dbos", "prefect")},
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(REPEATS):
            for name, command in commands.items():
                if name.startswith(("procrastinate", "dbos", "prefect")) and turn >= 3:
                    continue  # they take seconds; three runs tell enough
                began = time.perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                times[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(runs) for name, runs in times.items()}
    base = medians["python -c pass"]
    print(
        json.dumps(
            {
                "bench": "cli",
                "wall_ms": {name: round(value * 1000, 1) for name, value in medians.items()},
                "times_python": {name: round(value / base, 1) for name, value in medians.items()},
                "goals": {
                    "lamp --version within 6x": medians["lamp --version"] <= 6 * base,
                    "lamp event list within 12x": medians["lamp event list"] <= 12 * base,
                    "both ahead of every peer": max(medians["lamp --version"], medians["lamp event list"])
                    < min(value for name, value in medians.items() if name.split()[0] not in ("lamp", "python")),
                },
            }
        )
    )


if __name__ == "__main__":
    main()
