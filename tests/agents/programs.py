"""Real agent programs in a real city, driven by their presets, against a model that follows a script."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lamplighter.adapters.processes.table import all_processes
from lamplighter.app.automation_loops import Tools, loops_of
from lamplighter.app.automations import rules_of
from lamplighter.app.daemon_host import WorkerHost, operations_of
from lamplighter.app.http import HttpServer
from lamplighter.app.settings import Settings
from lamplighter.app.wakeups import listening
from lamplighter.app.wiring import OpenCity, open_city
from lamplighter.cli.main import run as lamp
from lamplighter.daemon.automation_loops import AutomationLoops
from lamplighter.domain.access import owner
from lamplighter.domain.city.configurations import body_of
from lamplighter.domain.city.model import Configuration
from lamplighter.domain.runs.model import Run
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.services import configurations, owners
from lamplighter.services.automations import editing, firing
from lamplighter.services.context import Configured, Context, acting
from lamplighter.services.rules import Rules
from lamplighter.services.runs import review, transcripts
from lamplighter.store.configurations import ConfigurationRow
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.owners import Owner
from lamplighter.store.transcripts import TranscriptEvent
from lamplighter.store.tx import Store
from lamplighter.store.url import open_proofs, open_store
from lamplighter.testing.model_server import CallTool, ModelServer, Refuse

MODULES = Path(sys.prefix) / "agents" / "node_modules"
WITHIN_S = 330

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
    model: str = "scripted-model"

    def env(self, url: str, home: Path) -> dict[str, str]:
        folders = [str(self.folder), str(MODULES / ".bin"), *os.environ["PATH"].split(os.pathsep)]
        path = os.pathsep.join(folders)  # the Node that was installed with them comes before that of the machine
        return {"PATH": path, "HOME": str(home)} | {key: value.format(url=url) for key, value in self.keys.items()}

    def furnish(self, home: Path, url: str, *, deny: bool = False) -> None:
        if not (self.folder / self.name).exists():
            pytest.fail(f"{self.name} is not installed; `make test` installs it")
        home.mkdir(exist_ok=True)
        files = {**self.home, **(self.denied if deny else {})}
        for name, text in files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text.replace("{url}", url))


OPENCODE_SETTINGS = {
    "model": "scripted/scripted-model",
    "small_model": "scripted/scripted-model",
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{url}/v1", "apiKey": "dummy"},
            "models": {"scripted-model": {"limit": {"context": 200000, "output": 8000}, "tool_call": True,
                                          "cost": {"input": 1, "output": 2}}},
        }
    },
}  # fmt: skip
CLINE_PROVIDERS = {
    "version": 1,
    "lastUsedProvider": "openai-compatible",
    "providers": {
        "openai-compatible": {
            "settings": {
                "provider": "openai-compatible", "apiKey": "dummy", "model": "scripted-model", "baseUrl": "{url}/v1",
            },
            "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual",
        }
    },
}  # fmt: skip
CHAT = {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": "{url}/v1", "OPENAI_MODEL": "scripted-model"}

PROGRAMS = {
    "goose": Program(
        "goose", MODULES / "@aaif/goose-binary-linux-x64/bin",
        {"OPENAI_API_KEY": "dummy", "OPENAI_HOST": "{url}", "GOOSE_PROVIDER": "openai"},
    ),
    "codex": Program(
        "codex", MODULES / ".bin", {"SCRIPTED_KEY": "dummy"}, {".codex/config.toml": CODEX_CONFIG},
        {".codex/config.toml": CODEX_CONFIG + CODEX_DENIES}, denied_mode="approval",
    ),
    "claude": Program(
        "claude", MODULES / ".bin", {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "dummy"},
        denied={".claude/settings.json": json.dumps({"permissions": {"deny": ["mcp__automation"]}})},
    ),
    "opencode": Program(
        "opencode", MODULES / ".bin", {"OPENCODE_DISABLE_MODELS_FETCH": "1"},
        {".config/opencode/opencode.json": json.dumps(OPENCODE_SETTINGS)},
        {".config/opencode/opencode.json": json.dumps(OPENCODE_SETTINGS | {"permission": {"automation_*": "deny"}})},
        model="scripted/scripted-model",
    ),
    "gemini": Program(
        "gemini", MODULES / ".bin", {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": "{url}"},
    ),
    "qwen": Program("qwen", MODULES / ".bin", CHAT),
    "copilot": Program(
        "copilot", MODULES / ".bin",
        {"COPILOT_PROVIDER_BASE_URL": "{url}/v1", "COPILOT_PROVIDER_API_KEY": "dummy",
         "COPILOT_MODEL": "scripted-model"},
    ),
    "cline": Program(
        "cline", MODULES / ".bin", {}, {".cline/data/settings/providers.json": json.dumps(CLINE_PROVIDERS)},
    ),
}  # fmt: skip
OPENHANDS = Program(
    "openhands", Path(sys.prefix) / "openhands" / "bin",
    {"LLM_MODEL": "openai/scripted-model", "LLM_BASE_URL": "{url}/v1", "LLM_API_KEY": "dummy"},
    model="openai/scripted-model",
)  # fmt: skip
"""From PyPI, for Python 3.12 alone; the torture drills install and drive it."""
THOROUGHLY = ("claude", "codex", "goose", "opencode")
"""The programs that are also seen to fail in every way, and to do two runs at once."""


def only(*names: str) -> pytest.MarkDecorator:
    """A test for these programs, each in a town of its own."""
    return pytest.mark.parametrize("town", names, indirect=True)


def with_state(*names: str) -> pytest.MarkDecorator:
    """As `only`, for what is remembered between steps of a run: the last of the programs on PostgreSQL too."""
    return only(*names, f"{names[-1]} on postgres")


def by_turns(name: str, other: str) -> pytest.MarkDecorator:
    """As `only`, for what is kept of runs: the first program on SQLite, the other one on PostgreSQL."""
    return only(name, f"{other} on postgres")


def completing(run: str) -> CallTool:
    return CallTool(
        "automation_complete",
        {
            "run_id": run,
            "completion_id": completion_id(run),
            "outcome": "succeeded",
            "summary_markdown": "All lamps are lit.",
        },
    )


REFUSAL = {"type": "error", "error": {"type": "authentication_error", "message": "Incorrect API key provided."}}
"""How a service refuses a login, with the status 401."""


def limit_until(at: datetime, program: str) -> Refuse:
    """As the services of all programs tell it: each program reads another part of it."""
    seconds = round((at - datetime.now(UTC)).total_seconds())
    error: dict[str, object] = {
        "type": "usage_limit_reached", "status": "RESOURCE_EXHAUSTED",
        "message": f"Usage limit reached, resets at {at:%Y-%m-%dT%H:%M:%SZ}",
        "plan_type": "plus", "resets_at": round(at.timestamp()), "resets_in_seconds": seconds,
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds}s"}],
    }  # fmt: skip
    if program == "gemini":
        error["code"] = 429  # Codex passes over all of an error whose code is a number
    headers = {"retry-after-ms": "50", "retry-after": "1"}  # what it may try again after, which is in vain
    return Refuse(429, {"type": "error", "error": error}, headers)


@dataclass
class Town:
    """A city with its loops and its server in this process."""

    opened: OpenCity
    store: Store
    loops: AutomationLoops
    program: Program
    home: Path

    async def fire(
        self, model: ModelServer, *, deny: bool = False, furnished: bool = True, name: str = "light",
        env: Mapping[str, str] | None = None, effort: str | None = None, payload: Mapping[str, Any] | None = None,
        **keys: Any,
    ) -> str:  # fmt: skip
        """An automation of its own for this program and this model; its run is left to the loops."""
        mode = keys.pop("mode", self.program.denied_mode if deny else "full_access")
        self.home.mkdir(exist_ok=True)
        if furnished:
            self.program.furnish(self.home, model.url, deny=deny)
        body = {
            "name": name, "gate": "manual",
            "agent": {
                "prompt": "Light the lamps.", "preset": self.program.name, "model": self.program.model,
                "configuration": self.program.name, "mode": mode, "effort": effort,
            },
        } | keys  # fmt: skip
        around = {**self.program.env(model.url, self.home), **(env or {})}
        await self.store.transact(_configure, self.program.name, around, self.ctx)
        await self.store.transact(editing.create, body, rules=self.rules, ctx=self.ctx)
        scoped = f"{name}:rig:{keys['rig']}" if "rig" in keys else name
        return await self.again(scoped, **(payload or {}))

    async def again(self, scoped: str = "light", **payload: Any) -> str:
        wanted = firing.ByHand(scoped, payload)
        fired = await self.store.transact(firing.run_by_hand, wanted, rules=self.rules, ctx=self.ctx)
        return fired.run

    @property
    def rules(self) -> Rules:
        return rules_of(self.opened.config.city, self.opened.settings.env)

    @property
    def ctx(self) -> Context:
        """That of a person at the city's command line."""
        in_force = Configured(self.loops.active.city, self.loops.active.rules)
        return Context(owner("ada"), self.opened.clock.now(), self.opened.ids, configured=in_force)

    async def work(self, run: str) -> Run:
        """To its end, and until everything that follows is done."""
        async with asyncio.timeout(WITHIN_S):
            await self.loops.dispatcher.drain()
        return await self.get(run)

    async def get(self, run: str) -> Run:
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


def _configure(tx: Any, name: str, env: Mapping[str, str], ctx: Context) -> None:
    body = body_of(Configuration(name=name, env=env))
    tx.configurations.put(ConfigurationRow(name, configurations.FILE, body), ctx.now)


@asynccontextmanager
async def a_town(
    root: Path, program: Program, home: Path | None = None, *, more: str = "", env: Mapping[str, str] | None = None
) -> AsyncIterator[Town]:
    """`home` is that of the program, which several towns may share; `more` is added to the city's file."""
    assert lamp(["init", str(root), "--name", "town"]) == 0
    with (root / "city.toml").open("a", encoding="utf-8") as city:
        city.write(more)
    if "[store]" in more:
        assert lamp(["init", str(root)]) == 0
    opened = open_city(Settings(root, root, "ada", None, {"PATH": os.environ["PATH"], **(env or {})}))
    wakes = Wakes()
    store = open_store(opened.place, opened.paths.city_id(), wakes)
    proofs = open_proofs(opened.place)
    me = Owner(opened.ids.make("own"), "controller", "here", os.getpid(), opened.clock.now())
    operations = operations_of(WorkerHost(opened, store, lambda: loops.active, wakes))
    http = HttpServer(opened, store, operations, "127.0.0.1", 0, lambda: loops.active)
    http.open()
    tools = Tools(lambda: http.url, http.tools_ready)
    loops = loops_of(opened, opened.config.city, store=store, me=review.Worker(me.id, "here"), tools=tools)
    serving = asyncio.create_task(http.run())
    watching = asyncio.create_task(loops.worker.loop())
    try:
        with listening(opened.place, me.id, wakes):
            await owners.join(store, proofs, me, ctx=acting("ada", opened.clock.now()))
            loops.listen(wakes)
            yield Town(opened, store, loops, program, home or root / "home")
            await loops.worker.stop()
    finally:
        watching.cancel()
        await asyncio.wait({watching})
        await http.stop()
        await serving
        await loops.close()
        proofs.release(me.id)
        await store.close()
        opened.close()
