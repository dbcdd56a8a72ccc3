"""A city whose API and tools are served on loopback, with runs in memory and beads and events for real."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from lamplighter.adapters.files.secrets import city_key, owner_token
from lamplighter.app.settings import Settings
from lamplighter.app.surfaces import surface, toolbox
from lamplighter.app.wiring import OpenCity, open_city
from lamplighter.cli.main import run as lamp
from lamplighter.domain.access import run_token
from lamplighter.domain.events import Event, EventFilter
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.services.configurations import Configurations
from lamplighter.store.place import open_store
from lamplighter.store.run_rows import RunFacts, RunRow
from lamplighter.store.tx import Tx
from lamplighter.store.wakes import Wakes
from lamplighter.testing.clock import FakeClock
from lamplighter.testing.runs import MemoryAutomations, MemoryRuns
from lamplighter.web.server import WebServer, build

RUN = "run_" + "0" * 26
OTHER = "run_" + "1" * 26


@dataclass
class Served:
    url: str
    runs: MemoryRuns
    automations: MemoryAutomations
    opened: OpenCity
    not_ready: list[str] = field(default_factory=list)

    @property
    def owner(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {owner_token(self.opened.paths.runtime)}"}

    def of_run(self, run: str = RUN) -> dict[str, str]:
        return {"Authorization": f"Bearer {run_token(city_key(self.opened.paths.runtime), run)}"}

    def events(self) -> list[Event]:
        return self.opened.store.read(lambda tx: tx.events.latest(EventFilter(), limit=100))

    async def call(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str | bytes] | None = None,
        body: object = None,
        raw: bytes = b"",
    ) -> httpx.Response:
        async with httpx.AsyncClient(base_url=self.url, trust_env=False) as client:
            if body is not None:
                return await client.request(method, path, headers=dict(headers or {}), json=body)
            return await client.request(method, path, headers=dict(headers or {}), content=raw)


def a_town(root: Path) -> OpenCity:
    assert lamp(["init", str(root), "--name", "town"]) == 0
    return open_city(Settings(root, root, "ada", None, {}))


def keep(tx: Tx, runs: Iterable[Run]) -> None:
    for run in runs:
        tx.runs.insert(RunRow(run, RunFacts("aut_1", "agent", "trg_1")))


@asynccontextmanager
async def served(root: Path) -> AsyncIterator[Served]:
    clock = FakeClock()
    runs = MemoryRuns(
        clock, *(Run(one, "sweep", RunState.RUNNING, clock.now(), session_id="ses_1") for one in (RUN, OTHER))
    )
    automations = MemoryAutomations()
    opened = a_town(root)
    opened.store.transact(keep, runs.runs.values())
    tools = toolbox(opened, completion=runs, automations=automations)
    city = Served("", runs, automations, opened)

    async def ready() -> str | None:
        return city.not_ready[0] if city.not_ready else None

    store = open_store(opened.place, opened.paths.city_id(), Wakes())
    chosen = Configurations(store, clock, lambda: opened.config.city)
    server = WebServer(build(surface(opened, tools, ready, chosen=chosen)), host="127.0.0.1", port=0)
    city.url = server.url
    serving = asyncio.create_task(server.serve())
    try:
        yield city
    finally:
        server.stop()
        await serving
        assert tools.desk is not None
        tools.desk.close()
        await store.close()
        opened.close()
