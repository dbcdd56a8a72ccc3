"""Real agent programs in a real city, driven by their presets, against a model that follows a script."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lamplighter.adapters.processes.table import all_processes
from lamplighter.app.automations import loops_of, rules_of
from lamplighter.app.http import HttpServer
from lamplighter.app.settings import Settings
from lamplighter.app.wakeups import listening
from lamplighter.app.wiring import OpenCity, open_city
from lamplighter.cli.main import run as lamp
from lamplighter.daemon.automation_loops import AutomationLoops
from lamplighter.domain.acts import Act
from lamplighter.services import configurations, owners
from lamplighter.services.automations import editing, firing
from lamplighter.services.runs import review, transcripts
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.owners import Owner
from lamplighter.store.run_rows import RunRow
from lamplighter.store.transcripts import TranscriptEvent
from lamplighter.store.tx import Store
from lamplighter.store.url import open_proofs, open_store
from lamplighter.testing.model_server import ModelServer

MODULES = Path(sys.prefix) / "agents" / "node_modules"
WITHIN_S = 60

CODEX_CONFIG = """
model = "scripted-model"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 1
stream_max_retries = 1
"""
CODEX_DENIES = """
[mcp_servers.automation.tools.automation_complete]
approval_mode = "prompt"
"""


@dataclass(frozen=True)
class Program:
    """One agent program: where it is installed, what it needs to find the scripted model, and how it denies a call."""

    name: str
    folder: Path
    keys: Mapping[str, str]
    home: Mapping[str, str] = field(default_factory=dict)
    denied: Mapping[str, str] = field(default_factory=dict)
    denied_mode: str = "full_access"

    def env(self, url: str, home: Path) -> dict[str, str]:
        path = os.pathsep.join([str(self.folder), *os.environ["PATH"].split(os.pathsep)])
        return {"PATH": path, "HOME": str(home)} | {key: value.format(url=url) for key, value in self.keys.items()}

    def furnish(self, home: Path, url: str, *, deny: bool) -> None:
        files = {**self.home, **(self.denied if deny else {})}
        for name, text in files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text.replace("{url}", url))


PROGRAMS = {
    "goose": Program(
        "goose", MODULES / "@aaif/goose-binary-linux-x64/bin",
        {"OPENAI_API_KEY": "dummy", "OPENAI_HOST": "{url}", "GOOSE_PROVIDER": "openai"},
        denied_mode="plan",
    ),
    "codex": Program(
        "codex", MODULES / ".bin", {"SCRIPTED_KEY": "dummy"}, {".codex/config.toml": CODEX_CONFIG},
        {".codex/config.toml": CODEX_CONFIG + CODEX_DENIES}, denied_mode="approval",
    ),
    "claude": Program(
        "claude", MODULES / ".bin", {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "dummy"},
        denied={".claude/settings.json": json.dumps({"permissions": {"deny": ["mcp__automation"]}})},
    ),
}  # fmt: skip


@dataclass
class Town:
    """A city with its loops and its server in this process."""

    opened: OpenCity
    store: Store
    loops: AutomationLoops
    program: Program

    @property
    def home(self) -> Path:
        return self.opened.paths.root / "home"

    async def fire(self, model: ModelServer, *, deny: bool = False, **keys: Any) -> str:
        """An automation of its own for this program and this model; its run is left to the loops."""
        if not (self.program.folder / self.program.name).exists():
            pytest.fail(f"{self.program.name} is not installed; `make test` installs it")
        self.home.mkdir()
        self.program.furnish(self.home, model.url, deny=deny)
        body = {
            "name": "light", "gate": "manual",
            "agent": {
                "prompt": "Light the lamps.", "preset": self.program.name, "model": "scripted-model",
                "configuration": "real", "mode": self.program.denied_mode if deny else "full_access",
            },
        } | keys  # fmt: skip
        rules = rules_of(self.opened.config.city, self.opened.settings.env)
        act = Act("tester", self.opened.clock.now())
        env = self.program.env(model.url, self.home)
        await self.store.transact(_configure, env, act)
        await self.store.transact(editing.create, body, rules=rules, ids=self.opened.ids, act=act)
        fired = await self.store.transact(
            firing.run_by_hand, firing.ByHand("light"), rules=rules, ids=self.opened.ids, act=act
        )
        return fired.run

    async def work(self, run: str) -> RunRow:
        """To its end, and until everything that follows is done."""
        async with asyncio.timeout(WITHIN_S):
            await self.loops.dispatcher.drain()
        return await self.get(run)

    async def get(self, run: str) -> RunRow:
        return await self.store.read(review.get, run)

    async def transcript(self, run: str) -> list[TranscriptEvent]:
        return await self.store.read(transcripts.of_run, run)

    def processes(self) -> set[int]:
        """Every process that was given this city's home: the program and all that it started."""
        return processes_at_home(self.home)


def processes_at_home(home: Path) -> set[int]:
    mark = f"HOME={home}".encode()
    found = set()
    for pid in all_processes():
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.add(pid)
        except OSError:
            continue
    return found


def _configure(tx: Any, env: Mapping[str, str], act: Act) -> None:
    from lamplighter.domain.city.model import Configuration

    configurations.sync(tx, (Configuration(name="real", env=env),), act.at)


@asynccontextmanager
async def a_town(root: Path, program: Program) -> AsyncIterator[Town]:
    assert lamp(["init", str(root), "--name", "town"]) == 0
    opened = open_city(Settings(root, root, "ada", None, {"PATH": os.environ["PATH"]}))
    wakes = Wakes()
    store = open_store(opened.place, opened.paths.city_id(), wakes)
    proofs = open_proofs(opened.place)
    owner = Owner(opened.ids.make("own"), "controller", "here", os.getpid(), opened.clock.now())
    http = HttpServer(opened, store, "127.0.0.1", 0, lambda: loops.active)
    http.open()
    loops = loops_of(
        opened, opened.config.city, store=store, me=review.Worker(owner.id, "here"), api_url=lambda: http.url
    )
    serving = asyncio.create_task(http.run())
    watching = asyncio.create_task(loops.worker.loop())
    try:
        with listening(opened.place, owner.id, wakes):
            await owners.join(store, proofs, owner, act=Act("ada", opened.clock.now()))
            loops.listen(wakes)
            yield Town(opened, store, loops, program)
            await loops.worker.stop()
    finally:
        watching.cancel()
        await asyncio.wait({watching})
        await http.stop()
        await serving
        await loops.close()
        proofs.release(owner.id)
        await store.close()
        opened.close()
