"""A city whose API and tools are served on loopback, as the daemon serves them, with two runs at work in its store."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from lamplighter.adapters.files.secrets import city_key, owner_token
from lamplighter.app.automations import rules_of
from lamplighter.app.daemon_host import WorkerHost, operations_of
from lamplighter.app.settings import Settings
from lamplighter.app.surfaces import surface
from lamplighter.app.wiring import OpenCity, open_city
from lamplighter.cli.main import run as lamp
from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.domain.events import Event, EventFilter
from lamplighter.domain.runs.model import Run
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.domain.runs.target import resolve
from lamplighter.domain.tokens import run_token
from lamplighter.services import configurations, outbox
from lamplighter.services.automations import editing, firing
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.runs import enriching, executing, review
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.sessions import SessionRow
from lamplighter.store.tx import Tx
from lamplighter.store.url import open_store
from lamplighter.web.hosts import Reached
from lamplighter.web.server import WebServer, build

AGENT = {"name": "light", "gate": "manual", "overlap": "allow", "agent": {"prompt": "Light the lamps."}}
WORKER = review.Worker("own_test", "here")


@dataclass
class Served:
    """`run` and `other` are runs of an agent at work; the session of each is `ses_` and its id."""

    url: str
    opened: OpenCity
    run: str
    other: str
    operations: CityOperations
    not_ready: list[str] = field(default_factory=list)

    @property
    def owner(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {owner_token(self.opened.paths.runtime)}"}

    def of_run(self, run: str = "") -> dict[str, str]:
        return {"Authorization": f"Bearer {run_token(city_key(self.opened.paths.runtime), run or self.run)}"}

    @property
    def complete_path(self) -> str:
        return f"/api/v1/runs/{self.run}/complete"

    def completion(self, **changes: Any) -> dict[str, Any]:
        said = {"completion_id": completion_id(self.run), "outcome": "succeeded", "summary_markdown": "Lit."}
        return said | changes

    async def complete(self, headers: Mapping[str, str], **changes: Any) -> httpx2.Response:
        """Ask for the end of `run`, with the words of a completion that succeeds but for `changes`."""
        return await self.call("POST", self.complete_path, headers=headers, body=self.completion(**changes))

    def row(self, run: str = "") -> Run:
        return self.opened.store.read(review.get, run or self.run)

    def timeline(self, run: str = "") -> list[str]:
        """The types of the run's events."""
        return [event.type for event in self.opened.store.read(lambda tx: tx.runs.events(run or self.run))]

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
    ) -> httpx2.Response:
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False) as client:
            if body is not None:
                return await client.request(method, path, headers=dict(headers or {}), json=body)
            return await client.request(method, path, headers=dict(headers or {}), content=raw)


def a_town(root: Path, more: str = "") -> OpenCity:
    """`more` is added to its `city.toml`."""
    assert lamp(["init", str(root), "--name", "town"]) == 0
    with (root / "city.toml").open("a") as file:
        file.write(more)
    return open_city(Settings(root, root, "ada", None, {}))


def at_work(tx: Tx, opened: OpenCity) -> str:
    """A run of the automation `light`, fired by hand and carried on until its session is up; its id."""
    ctx = opened.context()
    run = firing.run_by_hand(tx, firing.ByHand("light"), rules=_rules(opened), ctx=ctx).run
    (enrich,) = outbox.claim_due(tx, WORKER.owner, ctx.now, limit=1, run=run)
    enriching.enrich(tx, enrich, WORKER, ctx=ctx)
    items = outbox.claim_due(tx, WORKER.owner, ctx.now, limit=10, run=run)
    (execute,) = [item for item in items if item.kind == "enqueue_execute"]
    target = resolve(executing.wish_of(review.snapshots_of(review.get(tx, run)).action), configurations.candidates(tx))
    executing.begin(tx, execute, target, WORKER, ctx=ctx)
    session = SessionRow(f"ses_{run}", run, None, run, "subprocess", "here", 7, ctx.now)
    executing.began(tx, run, executing.Began(session, isolation="none"), ctx)
    return run


def _rules(opened: OpenCity) -> Any:
    return rules_of(opened.config.city, opened.settings.env)


def _active(opened: OpenCity) -> ActiveConfig:
    return ActiveConfig(opened.config.city, _rules(opened), opened.settings.env)


@asynccontextmanager
async def served(
    root: Path, reached: Callable[[], Reached] = Reached, more: str = "", port: int = 0
) -> AsyncIterator[Served]:
    opened = a_town(root, more)
    opened.store.transact(lambda tx: tx.cities.ensure("town", opened.clock.now()))
    opened.store.transact(editing.create, AGENT, rules=_rules(opened), ctx=opened.context())
    run, other = [opened.store.transact(at_work, opened) for _ in range(2)]
    wakes = Wakes()
    store = open_store(opened.place, opened.paths.city_id(), wakes)
    operations = operations_of(WorkerHost(opened, store, lambda: _active(opened), wakes))
    city = Served("", opened, run, other, operations)

    async def ready() -> str | None:
        return city.not_ready[0] if city.not_ready else None

    server = WebServer(build(surface(opened, operations, ready, reached=reached)), host="127.0.0.1", port=port)
    city.url = server.url
    serving = asyncio.create_task(server.serve())
    try:
        yield city
    finally:
        operations.stopping.set()
        server.stop()
        await serving
        await store.close()
        opened.close()
