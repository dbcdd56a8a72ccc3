"""Real agent programs, driven by their presets against a model that follows a script."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from lamplighter.adapters.sessions.seeding import write_seeds
from lamplighter.adapters.sessions.subprocess import SubprocessProvider
from lamplighter.domain.access import TokenBook, run_token
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.runs.prompt import prompt
from lamplighter.domain.sessions.model import Seen, SessionSpec, session_name
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.sessions.presets.model import McpServer, Mode, Place, Request
from lamplighter.domain.sessions.transcript import SessionEvent
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.mcp.server import HttpEndpoint
from lamplighter.services.toolbox import Toolbox
from lamplighter.testing.model_server import ModelServer
from lamplighter.testing.runs import MemoryRuns
from lamplighter.web.api import runs as run_routes
from lamplighter.web.auth import caller_in
from lamplighter.web.server import Part, Surface, WebServer, build

CLOCK = SystemClock()
KEY = b"k" * 32
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


_CODEX_TOOL = "mcp_servers.automation.tools.automation_complete"


@dataclass(frozen=True)
class Program:
    """One agent program: where it is installed and what it needs to find the scripted model."""

    name: str
    folder: Path
    keys: Mapping[str, str]
    denied: Request = field(default_factory=lambda: Request("", ""))

    def env(self, url: str, home: Path) -> dict[str, str]:
        path = os.pathsep.join([str(self.folder), *os.environ["PATH"].split(os.pathsep)])
        return {"PATH": path, "HOME": str(home)} | {key: value.format(url=url) for key, value in self.keys.items()}


PROGRAMS = {
    "goose": Program(
        "goose", MODULES / "@aaif/goose-binary-linux-x64/bin",
        {"OPENAI_API_KEY": "dummy", "OPENAI_HOST": "{url}", "GOOSE_PROVIDER": "openai"},
        denied=Request("", "", mode=Mode.PLAN),
    ),
    "codex": Program(
        "codex", MODULES / ".bin", {"SCRIPTED_KEY": "dummy"},
        denied=Request("", "", mode=Mode.APPROVAL, args=("-c", f'{_CODEX_TOOL}.approval_mode="prompt"')),
    ),
    "claude": Program(
        "claude", MODULES / ".bin", {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "dummy"},
        denied=Request("", "", args=("--disallowedTools", "mcp__automation")),
    ),
}  # fmt: skip


@dataclass
class City:
    """A run under way, the server its agent reports to, and the sessions of this machine."""

    runs: MemoryRuns
    run: str
    url: str
    provider: SubprocessProvider
    root: Path

    @property
    def state(self) -> RunState:
        return self.runs.runs[self.run].state


@dataclass(frozen=True)
class Ran:
    seen: Seen
    output: str
    events: tuple[SessionEvent, ...]


@asynccontextmanager
async def a_city(root: Path) -> AsyncIterator[City]:
    run = Run(IdSource(CLOCK).make("run"), "sweep", RunState.RUNNING, CLOCK.now())
    memory = MemoryRuns(CLOCK, run)
    endpoint = HttpEndpoint(Toolbox(completion=memory), caller_in)
    parts = [Part("/mcp", endpoint, endpoint.running)]
    server = WebServer(
        build(Surface(TokenBook(KEY, "o" * 40), _ready, run_routes.routes(memory), parts)), host="127.0.0.1", port=0
    )
    provider = SubprocessProvider(root / "sessions", city="test", clock=CLOCK, ids=IdSource(CLOCK))
    serving = asyncio.create_task(server.serve())
    try:
        yield City(memory, run.id, server.url, provider, root)
    finally:
        for name in await provider.seen():
            await provider.stop(name)
        await provider.close()
        server.stop()
        await serving


async def _ready() -> str | None:
    return None


def spec_of(program: Program, city: City, model: ModelServer, base: Request | None = None) -> SessionSpec:
    """Everything as a worker would do it: the preset's command line, files, environment and prompt."""
    if not (program.folder / program.name).exists():
        pytest.fail(f"{program.name} is not installed; `make test` installs it")
    home, work, files = (city.root / name for name in ("home", "work", "files"))
    for folder in (home, work, files):
        folder.mkdir(exist_ok=True)
    if program.name == "codex":
        (home / ".codex").mkdir(exist_ok=True)
        (home / ".codex/config.toml").write_text(CODEX_CONFIG.format(url=model.url))
    env = program.env(model.url, home)
    request = replace(
        base or Request("", ""),
        work_dir=str(work),
        files_dir=str(files),
        prompt=prompt("Light the lamps.", run=city.run, context_file=None),
        model="scripted-model",
        mcp=McpServer(f"{city.url}/mcp", run_token(KEY, city.run)),
        session="lamp-run",
        as_root=os.geteuid() == 0,
        env=env,
    )
    headless = PRESETS[program.name].headless
    assert headless is not None
    invocation = headless(request)
    write_seeds(invocation.files, {Place.FILES: files, Place.HOME: home, Place.WORK: work})
    return SessionSpec(
        name=session_name("run"),
        command=invocation.argv,
        work_dir=str(work),
        env=env | dict(invocation.env),
        takes_input=False,
    )


async def run_to_its_end(city: City, spec: SessionSpec, program: Program) -> Ran:
    endings = city.provider.ended()
    await city.provider.start(spec)
    async with asyncio.timeout(WITHIN_S):
        await anext(endings)
    seen = (await city.provider.seen())[spec.name]
    output = await city.provider.peek(spec.name, 0)
    parse = PRESETS[program.name].parse
    return Ran(seen, output, tuple(event for line in output.splitlines() for event in parse(line).events))
