"""A city on a PostgreSQL server of its own that is treated badly, and what became of its runs."""

import shlex
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
from automation_watch import place_of, rows, wait_until
from pipeline_load import EXEC, leftovers, quiet
from workers import on_postgres, start

from lamplighter.adapters.files.city import CityPaths
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.services.automations import editing, firing
from lamplighter.services.context import acting
from lamplighter.services.rules import Rules
from lamplighter.store.patience import Patience, PatientStore
from lamplighter.store.url import open_direct
from lamplighter.testing.postgres import Cluster
from lamplighter.testing.processes import Child, Children

# It works a while and reports once, by the command: whether that waits for the database is what is tried.
AGENT = f"""
echo "$LAMP_RUN_ID" >> "$LAMP_CITY/prompts.log"
sleep 1
{shlex.quote(sys.executable)} -m lamplighter run complete --outcome succeeded --summary Lit. && \\
echo "$LAMP_RUN_ID" >> "$LAMP_CITY/completed.log"
"""
PROMPT = {"agent": {"prompt": "Go.", "preset": "scripted"}}
PROVIDER = '\n[providers.scripted]\ncommand = "sh"\nargs = ["agent.sh"]\n'


class Town:
    """A controller and workers; runs are fired by hand, every other one an agent's."""

    def __init__(self, city: Path, server: Cluster, members: list[Child], *elsewhere: Path) -> None:
        """`elsewhere` are the directories of its other nodes."""
        self.city = city
        self.directories = (city, *elsewhere)
        self.server = server
        self.members = members
        self.fired = 0
        self.command = EXEC
        self._clock = SystemClock()
        self._ids, self._rules = IdSource(self._clock), Rules(ZoneInfo("UTC"))
        place, city_id = place_of(city), CityPaths(city).city_id()
        self._store = PatientStore(lambda: open_direct(place, city_id), Patience(120.0, lambda _error: None))
        self._enough = threading.Event()

    def fire(self) -> None:
        name, ctx = f"load{self.fired}", acting("load", self._clock.now())
        body = {"name": name, "gate": "manual"} | (PROMPT if self.fired % 2 else self.command)
        self._store.transact(editing.create, body, rules=self._rules, ctx=ctx)
        wanted = firing.ByHand(name)
        self._store.transact(firing.run_by_hand, wanted, rules=self._rules, ctx=ctx)
        self.fired += 1

    @contextmanager
    def under_load(self, every: float) -> Iterator[None]:
        """Runs are fired all the while."""
        failures: list[BaseException] = []

        def load() -> None:
            try:
                while not self._enough.wait(every):
                    self.fire()
            except BaseException as error:  # noqa: BLE001  told where the load ends
                failures.append(error)

        thread = threading.Thread(target=load, name="load", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._enough.set()
            thread.join()
        assert failures == []

    def terminate(self, count: int | None = None, *, by: "psycopg.Connection | None" = None) -> int:
        """End so many backends of the city, or all; returns how many there were."""
        if by is None:
            with psycopg.connect(self.server.url("postgres"), autocommit=True) as connection:
                return self.terminate(count, by=connection)
        found = by.execute(
            "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity "
            "WHERE application_name LIKE 'lamplighter%%' ORDER BY random() LIMIT %s) AS chosen",
            (count,),
        ).fetchall()
        return len(found)

    def settle(self, within: float) -> None:
        wait_until(self.city, quiet, within=within)

    def counts(self) -> dict[str, Any]:
        """By what the commands wrote and which processes live, beside what the city says of itself."""
        agents = {row["id"] for row in rows(self.city, "SELECT id FROM runs WHERE action = 'agent'")}
        commands = {row["id"] for row in rows(self.city, "SELECT id FROM runs WHERE action = 'exec'")}
        prompts, ran, completed = (self._lines(f"{name}.log") for name in ("prompts", "commands", "completed"))
        ended = rows(self.city, "SELECT state, reason, count(*) AS n FROM runs GROUP BY state, reason")
        return {
            "fired": self.fired,
            "runs": len(agents) + len(commands),
            "ended": {f"{row['state']}({row['reason']})": row["n"] for row in ended},
            "commands_lost": len(commands - ran.keys()),
            "commands_doubled": sum(n > 1 for n in ran.values()),
            "agents_lost": len(agents - prompts.keys()),
            "agents_doubled": sum(n > 1 for n in prompts.values()),
            "completions_lost": len(agents - completed.keys()),
            "members_died": sum(member.process.poll() is not None for member in self.members),
            "processes_left": sum(len(leftovers(directory)) for directory in self.directories),
        }

    def close(self) -> None:
        self._store.close()

    def _lines(self, name: str) -> "Counter[str]":
        paths = (directory / name for directory in self.directories)
        return Counter(word for path in paths if path.exists() for word in path.read_text().split())


CLEAN = dict.fromkeys(
    (
        "commands_lost", "commands_doubled", "agents_lost", "agents_doubled", "completions_lost", "members_died",
        "processes_left",
    ), 0,
)  # fmt: skip


@contextmanager
def town(
    city: Path, server: Cluster, processes: Children, environment: dict[str, str], *, workers: int
) -> Iterator[Town]:
    (city / "agent.sh").write_text(AGENT, encoding="utf-8")
    on_postgres(city, server.database(), PROVIDER)
    members = [start(processes, environment, city, "up")]
    members += [start(processes, environment, city, "worker") for _ in range(workers)]
    found = Town(city, server, members)
    try:
        yield found
    finally:
        found.close()


def bad(counts: dict[str, Any]) -> dict[str, Any]:
    """What should not have happened."""
    wrong = {name: counts[name] for name, wanted in CLEAN.items() if counts[name] != wanted}
    failed = {how: n for how, n in counts["ended"].items() if not how.startswith("succeeded")}
    return wrong | ({"failed": failed} if failed else {}) | ({} if counts["runs"] == counts["fired"] else {"runs": 0})


def hold(seconds: float) -> None:
    """For so long: how long a trouble lasts is what is tried, and nothing is waited for."""
    time.sleep(seconds)
