"""The status of a city: its controller, its agents, its work, what needs a person."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.kit.errors import LampError
from lamplighter.kit.shapes import given
from lamplighter.services import node_views
from lamplighter.services.agents.seen import agents_of
from lamplighter.services.agents.views import AgentView
from lamplighter.services.context import Context
from lamplighter.services.operation import LOOK_S, Http, effect
from lamplighter.services.records import recorded
from lamplighter.services.status_views import StatusView
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host


AUTOMATIONS = "automations"
"""The name under which problems of automation files stand in the status."""


@dataclass(frozen=True)
class ShowStatus:
    """How the city is: its controller, its agents, its work, what needs a person."""

    most: int | None = given("Count at most so many runs of each state.", default=None, least=1)


async def show_status(host: "Host", ask: ShowStatus, ctx: Context) -> StatusView:
    """Works with and without a controller, and with a configuration that cannot be used."""
    known = await host.store.read(on_record, host.root.name, ctx.now, ask.most)
    controller = await host.controller()
    agents, suspended, problem, broken = await _agents(host, ctx.now)
    if problem and not controller.config_error:
        controller = replace(controller, config_error=problem)
    if broken and not controller.running:
        controller = replace(controller, problems={**controller.problems, AUTOMATIONS: broken})
    nodes = await host.store.read(node_views.every, await host.living())
    return StatusView(
        root=str(host.root),
        suspended=suspended,
        controller=controller,
        agents=agents,
        nodes=nodes,
        store=host.store_name,
        **known,
    )


def on_record(tx: Tx, name: str, now: datetime, most: int | None = None) -> dict[str, Any]:
    """The fields of a StatusView that the store knows; a city that was never started is called `name`."""
    return recorded(tx.summary, name, now, most)


async def _agents(host: "Host", now: datetime) -> tuple[Sequence[AgentView], bool, str | None, str | None]:
    """The agents, whether the city is suspended, and what is wrong with the configuration and with automation files."""
    found: Sequence[AgentView] = ()
    try:
        found = await agents_of(host, now)
        broken = host.remember_for_status()
        return found, host.roster.city.workspace.suspended, host.config_problem, broken
    except LampError as error:
        return found, False, error.message, None


SHOW_STATUS = effect(
    "city.status",
    Verb.READ,
    ShowStatus,
    StatusView,
    show_status,
    command="status",
    here_after=LOOK_S,
    http=Http("GET", "/status"),
)
