"""What can be asked of a running controller itself over its control socket: stop, leave, status, wake, reload."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from lamplighter import __version__
from lamplighter.adapters.control_server import Handler
from lamplighter.adapters.files.city import CityPaths
from lamplighter.app import store_record
from lamplighter.app.http import HttpServer
from lamplighter.app.lifetime import Lifetime
from lamplighter.app.traces import TracesVerb
from lamplighter.daemon.automation_loops import AutomationLoops
from lamplighter.daemon.controller import Controller
from lamplighter.daemon.patrol.loop import Patrol
from lamplighter.daemon.reload import Reloader
from lamplighter.daemon.store_watch import StoreWatch
from lamplighter.domain.city.reload import is_bound
from lamplighter.domain.sessions import meta
from lamplighter.kit import descriptors
from lamplighter.kit.errors import Conflict
from lamplighter.kit.shapes import to_json
from lamplighter.services.status import AUTOMATIONS
from lamplighter.services.status_views import DescriptorsView, RunningController


@dataclass(frozen=True)
class ControlVerbs:
    """The verbs `stop` and `leave` end the process by its `lifetime`."""

    lifetime: Lifetime
    since: datetime
    controller: Controller
    reloader: Reloader
    patrol: Patrol
    http: HttpServer
    store_watch: StoreWatch | None
    loops: AutomationLoops
    paths: CityPaths
    traces: TracesVerb
    again: bool
    """Whether the process begins again by itself after `leave`."""

    def handlers(self) -> dict[str, Handler]:
        return {
            "stop": self._stop,
            "leave": self._leave,
            "status": self._status,
            "wake": self._wake,
            "reload": self._reload,
            "traces": self._traces,
        }

    def view(self) -> RunningController:
        return RunningController(
            running=True,
            pid=os.getpid(),
            since=self.since,
            last_tick_at=self.controller.ticks.last_tick_at,
            api=self.http.url,
            config_error=self.reloader.error,
            descriptors=DescriptorsView(descriptors.count_open(), descriptors.limit()),
            problems=self._own_problems() | self.controller.ticks.problems | self.patrol.problems,
            version=__version__,
        )

    async def reloaded(self) -> str | None:
        """Bring the files into force; returns why they are not, None if they are."""
        answer = self.reloader.asked()
        self.controller.ticks.wake_phase("reload")
        return await answer

    async def _stop(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.lifetime.stop()
        return {"ok": True, "pid": os.getpid(), "agents": self._agents()}

    async def _leave(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        """End the process and leave its agents and runs under way to the next one."""
        error = self.reloader.error
        if error is not None and is_bound(error):
            raise Conflict(f"The agents would not fit the changed configuration: {error}.")
        self.lifetime.leave()
        if not self.lifetime.leaving:
            raise Conflict("The controller is stopping.", hint="`lamp daemon start` starts it once it has stopped.")
        return {
            "ok": True,
            "pid": os.getpid(),
            "since": to_json(self.since),
            "agents": self._agents(),
            "again": self.again,
        }

    async def _status(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = to_json(self.view())
        return found

    async def _wake(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.controller.ticks.wake_all()
        return {"ok": True}

    async def _reload(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"config_error": await self.reloaded()}

    async def _traces(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        return asdict(self.traces.told())

    def _agents(self) -> int:
        """How many agents run; sessions of runs do not count."""
        return sum(seen.alive and not seen.meta.get(meta.RUN) for seen in self.patrol.sight.values())

    def _own_problems(self) -> dict[str, str]:
        lost = None if self.store_watch is None else self.store_watch.problem
        found = {"database": lost or self.controller.store.trouble, "api": self.http.problem}
        found |= {AUTOMATIONS: self.loops.file_problem}
        found["traces"] = self.traces.told().wrong or None
        found["store"] = store_record.warning(self.paths)
        return {name: problem for name, problem in found.items() if problem is not None}
