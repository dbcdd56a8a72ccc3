"""Looking a city over: what the checks find, and the operation that has them made."""

import shlex
from dataclasses import replace
from enum import StrEnum

from lamplighter.domain.access import Verb
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import LampError
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.services import logins
from lamplighter.services.agents.seen import agents_of
from lamplighter.services.automations import editing
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.agents.views import AgentView
    from lamplighter.services.host import Host


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"
    MENDED = "mended"


@record
class Finding:
    check: str
    level: Level
    detail: str
    advice: str | None = None
    """What to do about it."""


@record
class Examine:
    """Look the city over: files, configuration, database, controller, formulas, rigs, programs, disk.

    Exits 1 when a problem is left.
    """

    fix: bool = given("Mend what can be mended without asking.", default=False)


async def examine(host: "Host", ask: Examine, ctx: Context) -> list[Finding]:
    found = [*await host.examine(fix=ask.fix), *await _agents(host, ctx), *await _logins(host), *await _modes(host)]
    return [replace(one, advice=one.advice or None) for one in found]


async def _agents(host: "Host", ctx: Context) -> list[Finding]:
    """Agents that are not started any more until a person looks at them; of a copied city they are its original's."""
    try:
        host.need_own()
        known = await agents_of(host, ctx.now)
    except LampError:
        return []  # the check of what is wrong there has told it
    return [_quarantined(one) for one in known if one.quarantined_until is not None]


async def _logins(host: "Host") -> list[Finding]:
    """Logins of agent programs that keep runs waiting."""
    try:
        held = await host.store.read(logins.held)
    except LampError:
        return []  # the check of the store has told it
    return [
        Finding("logins", Level.NOTE if one.until else Level.PROBLEM, logins.notice(one), one.sign_in) for one in held
    ]


async def _modes(host: "Host") -> list[Finding]:
    """Agent automations that name no mode keep full access, as they always had it; it is told once for all of them."""
    try:
        names = await host.store.read(editing.without_mode)
    except LampError:
        return []
    if not names:
        return []
    told = f"Without a `mode`, and so with full access unless their configuration names one: {', '.join(names[:10])}"
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return [Finding("automations", Level.NOTE, f"{told}{more}.", "Name the mode that each of them needs.")]


def _quarantined(agent: "AgentView") -> Finding:
    name, until = shlex.quote(agent.name), rfc3339(agent.quarantined_until) if agent.quarantined_until else ""
    why = agent.reason.removesuffix(".") or "started too often"
    told = f"Agent {agent.name} is quarantined until {until}: {why}."
    advice = f"`lamp agent show {name}` tells its ends; `lamp agent unquarantine {name}` has it started again."
    return Finding("agents", Level.PROBLEM, told, advice)


EXAMINE = effect(
    "city.doctor",
    Verb.WRITE_CITY,
    Examine,
    list[Finding],
    examine,
    command="doctor",
    here=True,
    changes=lambda ask: getattr(ask, "fix", True),
    http=Http("POST", "/doctor"),
)
