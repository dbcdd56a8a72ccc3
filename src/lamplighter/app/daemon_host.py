"""The parts of a city that its daemon or a worker holds, for effects; and the operations carried out on them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamplighter.app.local_host import LocalHost, of_the_living
from lamplighter.app.remote import problem_of
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.patrol.loop import Patrol
from lamplighter.domain.access import Actor, Role
from lamplighter.domain.city.wanted import Roster
from lamplighter.domain.sessions.actions import Verdict
from lamplighter.domain.sessions.crashes import SessionHistory
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.shapes import to_json
from lamplighter.ports.sessions import SessionProvider
from lamplighter.services import table
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.context import Configured
from lamplighter.services.status_views import ControllerView
from lamplighter.store.engine import Proofs, Wakes
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Store
from lamplighter.store.url import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.app.control_verbs import ControlVerbs

SURFACE = "cli"


class WorkerHost(LocalHost):
    """The parts that a worker holds: its store and the configuration in force, which `active` returns.

    Whatever else an operation asks for is opened when first used.
    """

    def __init__(self, city: OpenCity, store: Store, active: Callable[[], ActiveConfig], wakes: Wakes) -> None:
        super().__init__(city)
        self.__dict__["store"] = store
        self._active = active
        self.wakes = wakes

    @property
    def active(self) -> ActiveConfig:
        return self._active()


@dataclass(frozen=True)
class PatrolOfDaemon:
    patrol: Patrol

    @property
    def sight(self) -> Mapping[SessionName, Seen]:
        return self.patrol.sight

    @property
    def histories(self) -> Mapping[SessionName, SessionHistory]:
        return self.patrol.patrol_history.histories

    @property
    def verdicts(self) -> Mapping[SessionName, Verdict]:
        return self.patrol.verdicts

    @property
    def unknown_pools(self) -> Mapping[str, str]:
        return self.patrol.unknown_pools

    async def kill(self, session: SessionName, by: str) -> bool:
        return await self.patrol.kill(session, by)

    def forget_crashes(self, session: SessionName) -> None:
        self.patrol.patrol_history.cleared(session)
        self.patrol.look_soon()

    def look_soon(self) -> None:
        self.patrol.look_soon()


@dataclass(frozen=True)
class LivingParts:
    """What the controller holds open while it runs."""

    place: Place
    proofs: Proofs
    patrol: Patrol
    run_sessions: SessionProvider
    verbs: "ControlVerbs"


class DaemonHost(WorkerHost):
    """The parts that the controller holds; `parts` returns them once they are built, before the first request."""

    def __init__(
        self,
        city: OpenCity,
        store: Store,
        active: Callable[[], ActiveConfig],
        wakes: Wakes,
        parts: Callable[[], LivingParts],
    ) -> None:
        super().__init__(city, store, active, wakes)
        self._parts = parts

    @property
    def store_name(self) -> str:
        return str(self._parts().place)  # city.toml may name another store by now, or be broken

    @property
    def roster(self) -> Roster:
        return self._parts().patrol.roster

    @property
    def config_problem(self) -> str | None:
        return self._parts().verbs.reloader.error

    async def reload(self) -> str | None:
        return await self._parts().verbs.reloaded()

    def need_own(self) -> None:
        return  # a copy does not start

    @property
    def sessions(self) -> SessionProvider:
        return self._parts().patrol.provider

    @property
    def all_sessions(self) -> Sequence[SessionProvider]:
        parts = self._parts()
        city = parts.patrol.roster.city
        one = parts.patrol.patrol_history.where.provider == city.runs.provider
        return [parts.patrol.provider] if one else [parts.patrol.provider, parts.run_sessions]

    @property
    def patrol(self) -> PatrolOfDaemon:
        return PatrolOfDaemon(self._parts().patrol)

    @property
    def is_kept(self) -> bool:
        return True

    async def controller(self) -> ControllerView:
        return self._parts().verbs.view()

    def remember_for_status(self) -> str | None:
        return None  # it is done whenever a configuration comes into force, and the controller tells its problems

    async def living(self) -> Sequence[Owner]:
        return await of_the_living(self._parts().proofs, await self.store.read(lambda tx: tx.owners.all()))


def operations_of(host: LocalHost) -> CityOperations:
    def configured() -> Configured:
        active = host.active
        return Configured(active.city, active.rules, host.formulas)

    return CityOperations(host, host.city.clock, host.city.ids, configured)


async def asked_by_command(operations: CityOperations, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Carry out an operation that a command asked for over the control socket, which only the city's user reaches."""
    try:
        operation = table.find(str(request.get("operation")))
        who = request.get("actor")
        if not isinstance(who, Mapping):
            raise UsageError("The request names no actor.")
        actor = Actor(str(who.get("name")), Role.OWNER, who.get("run"), who.get("session"), who.get("rig"))
        ask = operation.asked(request.get("ask") or {})
        done = await operations.do(operation, ask, actor, surface=SURFACE, patient=False)  # a command waits itself
        return {"answer": to_json(done)}
    except LampError as error:
        return {"problem": problem_of(error)}
