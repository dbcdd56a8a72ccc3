"""Hours of a busy city in minutes: its clocks run fast, its daemon is killed now and then, and its work is counted."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from drill_city import Town, descriptors_of, environment, processes_of, wait_for

FAST = Path(__file__).with_name("fast_lamp.py")
LONG = 24
"""Hours after which the database has to have stopped growing: four times what `[retention]` below keeps."""
NAP = f"97531.{os.getpid()}"
SLOT = """echo $(sed -n 's/.*"slot": *"\\([^"]*\\)".*/\\1/p' "$LAMP_TRIGGER_FILE") >> {name}"""
SLOTS = "exec = '''" + SLOT + "'''\ngate = 'cron'\nschedule = '{schedule}'\ntimezone = 'UTC'\n"
"""Every slot that passed while the daemon was down is run late."""
ALL = "overlap = 'allow'\ncatch_up = {{ mode = 'all', limit = 100, within = '12h' }}\ndeadline = '24h'\n"
CITY = """[daemon]
patrol_interval = "1m"
max_restarts = 0
[retention]
runs = "6h"
events = "6h"
"""
AGENT = '[[agents]]\nname = "a{number}"\nstart_command = "sleep {nap}"\n'
FOLLOW = "exec = 'echo $LAMP_RUN_ID >> followed'\ngate = 'event'\non = 'soak.tick'\nbatch = 1\noverlap = 'allow'\n"


class FastTown(Town):
    """Its daemon lives in fast time; so do the commands that look at it."""

    def __init__(self, root: Path, rate: float) -> None:
        super().__init__(root)
        self.rate = rate
        self._from = time.time()
        self.env = environment() | {"CLOCK_RATE": str(rate), "CLOCK_FROM": str(self._from)}

    def lamp(self, *arguments: str, seconds: float = 120) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(FAST), *arguments, "--city", str(self.root)],
            check=False, capture_output=True, text=True, timeout=seconds, env=self.env,
        )  # fmt: skip

    def light(self) -> int:
        with (self.root / "log").open("ab") as log:
            self.daemon = subprocess.Popen(
                [sys.executable, str(FAST), "up", "--city", str(self.root)],
                env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        wait_for("it did not come up", lambda: self.status().get("running") is True, seconds=120)
        return int(self.status()["pid"])

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._from + (time.time() - self._from) * self.rate, UTC)


@contextmanager
def fast_town(root: Path, rate: float) -> Iterator[FastTown]:
    found = FastTown(root, rate)
    try:
        yield found
    finally:
        found.close()
        for pid in processes_of(NAP):
            os.kill(pid, signal.SIGKILL)


def furnish(town: FastTown) -> None:
    town.configure(CITY + "".join(AGENT.format(number=number, nap=NAP) for number in range(5)))
    every = {"quarters": "*/15 * * * *", "hours": "0 * * * *"}
    for name, schedule in every.items():
        town.automate(name, SLOTS.format(name=name, schedule=schedule) + ALL.format())
    town.automate(
        "often", "exec = 'echo $LAMP_RUN_ID >> often'\ngate = 'cooldown'\ninterval = '5m'\ndeadline = '24h'\n"
    )
    town.automate("followed", FOLLOW + "deadline = '24h'\n")


def size_of(pid: int, root: Path) -> dict[str, int]:
    status = Path(f"/proc/{pid}/status").read_text()
    database = [path.stat().st_size for path in (root / ".gc").glob("lamp.db*")]
    threads = int(status.split("Threads:")[1].split()[0])
    return {
        "rss_mb": int(status.split("VmRSS:")[1].split()[0]) // 1024,
        "descriptors": descriptors_of(pid),
        "threads": threads,
        "database_kb": sum(database) // 1024,
    }


def expected(first: datetime, last: datetime, minutes: int) -> set[str]:
    """Every slot that began in between."""
    step = timedelta(minutes=minutes)
    begun = datetime(first.year, first.month, first.day, tzinfo=UTC)
    begun += step * -((begun - first) // step)
    found = set()
    while begun < last:
        found.add(f"{begun:%Y-%m-%dT%H:%MZ}")
        begun += step
    return found


def soak(town: FastTown, counts: dict[str, Any], *, hours: float, kills: int) -> None:
    """`counts` takes what was counted, before it is judged."""
    furnish(town)
    whole = hours * 3600 / town.rate
    pid = town.light()
    wait_for("not all agents came up", lambda: len(processes_of(NAP)) == 5, seconds=120)
    agents = processes_of(NAP)
    wait_for("nothing fired", lambda: len(town.lines("quarters")) > 0, seconds=120)
    began, first, emitted, sizes = time.monotonic(), town.now(), 0, []
    for kill in range(kills):
        while time.monotonic() - began < whole * (kill + 1) / kills:
            emitted += town.lamp("event", "emit", "soak.tick", "--payload", "{}").returncode == 0
            time.sleep(2)
        sizes.append(size_of(pid, town.root))
        assert town.daemon is not None
        assert town.daemon.poll() is None, "the daemon died by itself"
        os.kill(pid, signal.SIGKILL)
        town.daemon.wait()
        pid = town.light()
    last = town.now()
    wait_for("events are left", lambda: len(town.lines("followed")) >= emitted, seconds=300)
    wait_for("slots are left", lambda: expected(first, last, 15) <= set(town.lines("quarters")), seconds=300)
    assert town.lamp("pause").returncode == 0, "what fires goes on firing, so there would always be a run under way"
    wait_for("runs are under way", lambda: not active(town), seconds=300)
    seen = {name: Counter(town.lines(name)) for name in ("quarters", "hours", "often", "followed")}
    due = {"quarters": expected(first, last, 15), "hours": expected(first, last, 60)}
    counts |= {
        "hours": round((last - first).total_seconds() / 3600, 1),
        "kills": kills,
        "runs": {name: sum(times.values()) for name, times in seen.items()},
        "slots_lost": sum(len(slots - seen[name].keys()) for name, slots in due.items()),
        "events_lost": emitted - len(seen["followed"]),
        "doubled": sum(n > 1 for times in seen.values() for n in times.values()),
        "stuck": len(active(town)),
        "agents_killed": len(agents - processes_of(NAP)),
        "agents_doubled": max(len(processes_of(NAP)) - 5, 0),
        "sizes": {name: [size[name] for size in sizes] for name in sizes[0]},
        "runs_kept": len(town.runs()),
    }
    bad = ("slots_lost", "events_lost", "doubled", "stuck", "agents_killed", "agents_doubled")
    assert {name: counts[name] for name in bad} == dict.fromkeys(bad, 0)
    assert max(size["rss_mb"] for size in sizes) < 2 * sizes[0]["rss_mb"] + 50
    assert max(size["descriptors"] for size in sizes) < sizes[0]["descriptors"] + 20
    kept = [size["database_kb"] for size in sizes if hours >= LONG]
    half = len(kept) // 2  # by then as much is pruned as comes in
    assert max(kept[half:], default=0) <= max(kept[:half], default=0) * 1.25 + 1024, kept


def active(town: FastTown) -> list[str]:
    return [run["id"] for run in town.runs() if run["state"] in {"queued", "enriching", "ready", "running"}]
