"""A city whose loops run inside the test: real commands, a real SQLite file, wake-ups in the process."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from lamplighter.adapters.artifacts.local import LocalArtifacts
from lamplighter.adapters.files.run_workshop import FileRunWorkshop
from lamplighter.adapters.files.workspaces import LocalWorkspaceFiles
from lamplighter.adapters.git.command import Git
from lamplighter.adapters.git.worktrees import GitWorktrees
from lamplighter.adapters.notices.messenger import CityMessenger
from lamplighter.adapters.sessions.local.commands import ShimCommands
from lamplighter.adapters.sessions.local.provider import SubprocessProvider
from lamplighter.daemon.automation_loops import Agents, AutomationLoops, Outside
from lamplighter.domain.beads.formulas import Formula, Step
from lamplighter.domain.city.model import City, Rig, Workspace
from lamplighter.domain.runs.model import Run
from lamplighter.domain.runs.target import Candidate, NotSelected, Selection
from lamplighter.kit.clock import Clock, SystemClock
from lamplighter.kit.errors import NotFound
from lamplighter.kit.ids import IdSource
from lamplighter.kit.records import changed
from lamplighter.ports.sessions import SessionProvider
from lamplighter.services.automations import editing, firing
from lamplighter.services.context import Configured, Context, acting
from lamplighter.services.rules import Rules
from lamplighter.services.runs import review
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.owners import Owner
from lamplighter.store.url import Place, open_store

CITY = f"cty_{os.urandom(6).hex()}"
"""Its own for every process of tests: whoever tidies up a city ends all that carries its mark on this machine."""
WITHIN = 120


class ScriptedSelector:
    """Answers as it was told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: Selection = NotSelected("llm_call_failed: nobody is there")
        self.asked: list[tuple[Candidate, ...]] = []
        self.told: list[Mapping[str, Any]] = []

    async def select(self, payload: Mapping[str, Any], candidates: Sequence[Candidate]) -> Selection:
        self.told.append(payload)
        self.asked.append(tuple(candidates))
        return self.answer


class Loops:
    """The parts around automations, and the test's own ways to start and await runs."""

    def __init__(self, place: Place, root: Path, clock: Clock) -> None:
        self.root, self.clock = root, clock
        self.ids = IdSource(clock)
        self.wakes = Wakes()
        self.store = open_store(place, CITY, self.wakes)
        (root / "web").mkdir()
        (root / ".gc").mkdir(exist_ok=True)
        self.city = City(
            workspace=Workspace(name="loops"), root=root, prefix="lo", rigs=(Rig(name="web", path="web", prefix="we"),)
        )
        self.rules = Rules(ZoneInfo("UTC"), prefix="lo", prefixes={"web": "we"})
        self.runner = ShimCommands(root / ".gc" / "commands", city=CITY, clock=SystemClock(), ids=self.ids)
        self.sessions: SessionProvider = SubprocessProvider(
            root / ".gc" / "sessions", city=CITY, clock=SystemClock(), ids=IdSource(SystemClock())
        )
        self.artifacts = LocalArtifacts(root / ".gc" / "artifacts")
        self.selector = ScriptedSelector()
        self.parts = self.build("own_first")

    def build(self, owner: str) -> AutomationLoops:
        messenger = CityMessenger(self.root, SystemClock(), lambda: dict(os.environ), os.environ)
        outside = Outside(self.runner, self._formula, _no_beads, dict(os.environ), self.agents(), messenger)
        parts = AutomationLoops.build(
            self.city, self.rules, outside, store=self.store, clock=self.clock, ids=self.ids,
            me=review.Worker(owner, "here"),
        )  # fmt: skip
        parts.listen(self.wakes)
        return parts

    def agents(self) -> Agents:
        """Real sessions, files and worktrees under the city; nobody serves tools, and no model is asked."""
        runtime = self.root / ".gc"
        env = dict(os.environ)
        return Agents(
            sessions=self.sessions,
            provider="subprocess",
            workshop=FileRunWorkshop(runtime, env),
            worktrees=GitWorktrees(runtime / "worktrees", Git(env)),
            artifacts=self.artifacts,
            selector=self.selector,
            api_url=lambda: None,
            files=LocalWorkspaceFiles(runtime / "cache"),
        )

    def _formula(self, name: str, _rig: str | None) -> Formula:
        if name != "feature":
            raise NotFound(f"There is no formula `{name}`.")
        return Formula("feature", "", None, (), (Step("a", "A"),), "")

    @property
    def context(self) -> Context:
        made = acting("tester", self.clock.now(), self.ids)
        return changed(made, configured=Configured(self.city, self.rules))

    async def add(self, name: str, **keys: Any) -> None:
        body = {"name": name, "gate": "manual"} | keys
        await self.store.transact(editing.create, body, rules=self.rules, ctx=self.context)

    async def fire(self, name: str, **payload: Any) -> str:
        wanted = firing.ByHand(name, payload)
        fired = await self.store.transact(firing.run_by_hand, wanted, rules=self.rules, ctx=self.context)
        return fired.run

    async def work(self, name: str, **payload: Any) -> Run:
        """Fire it and work it to its end."""
        run = await self.fire(name, **payload)
        async with asyncio.timeout(WITHIN):
            await self.parts.dispatcher.drain()
        return await self.get(run)

    async def get(self, run: str) -> Run:
        return await self.store.read(review.get, run)

    def sleepers(self) -> list[int]:
        """The processes of `sleep` that were started below this city's directory, which no other test shares."""
        return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit() and self._sleeps(one)]

    def _sleeps(self, process: Path) -> bool:
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            program = (process / "cmdline").read_bytes().split(b"\0")[0]
            return program == b"sleep" and (process / "cwd").readlink().is_relative_to(self.root)
        return False

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Until it holds, looked at often: not every step of a run wakes somebody."""
        async with asyncio.timeout(WITHIN):
            while not await holds():  # noqa: ASYNC110  what is waited for is written by loops of another thread or process
                await asyncio.sleep(0.01)


@asynccontextmanager
async def open_loops(
    place: Place, root: Path, clock: Clock | None = None, owners: Sequence[str] = ("own_first",)
) -> AsyncIterator[Loops]:
    """The parts of a city with these controllers registered; what they have begun is stopped in the end."""
    found = Loops(place, root, clock or SystemClock())
    await found.store.transact(lambda tx: tx.cities.ensure("loops", found.clock.now()))
    for name in owners:
        me = Owner(name, "controller", "here", os.getpid(), found.clock.now())
        await found.store.transact(lambda tx, me=me: tx.owners.register(me))
    try:
        yield found
    finally:
        await found.parts.worker.stop()
        await found.parts.close()
        await found.store.close()


def _no_beads() -> Any:
    raise AssertionError("this city keeps its beads itself")
