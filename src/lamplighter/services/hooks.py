"""What an agent asks for from inside its session: its instructions and the work on its hook."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lamplighter.domain.access import Verb
from lamplighter.domain.beads.model import POOL_LABEL, Bead, BeadFilter, BeadStatus
from lamplighter.domain.city.model import Agent, City
from lamplighter.domain.city.names import find_agent
from lamplighter.domain.city.variables import rig_of
from lamplighter.kit.errors import NotFound
from lamplighter.kit.shapes import given
from lamplighter.kit.threads import in_thread
from lamplighter.services.agents.naming import named
from lamplighter.services.beads.views import BeadView, views
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Need, effect
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host

MOST = 20
GENERIC = """\
# You are an agent of the city `{city}`

- `lamp hook` shows the work on your hook. If there is some, do it now, without asking.
- `lamp bead show ID` tells all about a piece of work; `lamp bead claim ID` takes it; `lamp bead close ID` ends it.
- `lamp mail inbox` shows your mail; `lamp mail send NAME TEXT` writes to another agent, or to `human`.
- `lamp agent drain-check` succeeds when you are asked to finish: end what you do, then `lamp agent drain-ack`.
- `lamp agent request-restart` gives you a fresh session when your context runs out; your work stays on your hook.
"""


@dataclass(frozen=True)
class HookView:
    """The work on an agent's hook: what its own work query printed, or its beads, a line for each."""

    work: str
    beads: Sequence[BeadView] = ()

    def __bool__(self) -> bool:
        return bool(self.work.strip())


@dataclass(frozen=True)
class PromptView:
    prompt: str


@dataclass(frozen=True)
class ShowHook:
    """The work on an agent's hook; nothing for one that is suspended or not declared."""

    agent: str | None = given("The agent.", default=None, positional=True)
    own: str | None = given("The agent from whose session it is asked; meant if none is named.", default=None)


@dataclass(frozen=True)
class ShowPrompt:
    """An agent's instructions: its prompt, rendered; general ones where it has none."""

    agent: str | None = given("The agent.", default=None, positional=True)
    own: str | None = given("The agent from whose session it is asked; meant if none is named.", default=None)


class Finding(Protocol):
    """Finds beads: the city's own, or those of another program."""

    def matching(self, wanted: BeadFilter, *, limit: int) -> Sequence[Bead]: ...

    def ready(self, *, label: str | None = None, assignee: str | None = None, limit: int) -> Sequence[Bead]: ...


async def show_hook(host: "Host", ask: ShowHook, ctx: Context) -> HookView:
    """Raises NotFound, and QueryFailed if the agent's own work query fails."""
    agent, name = await _named(host, ask, ctx)
    if agent is None or _is_suspended(ctx.city, agent):
        return NOTHING
    if agent.work_query:
        return HookView(await host.work_query(agent, name))
    outside = host.outside_beads()
    if outside is None:
        found = await host.store.read(_of_store, name, agent)
    else:
        found = await in_thread(_hooked, outside, name, agent)
    return HookView("\n".join(f"{bead.id}  {bead.status.value:<11}  {bead.title}" for bead in found), views(found))


async def show_prompt(host: "Host", ask: ShowPrompt, ctx: Context) -> PromptView:
    """Empty for a suspended agent; the general prompt if it has none or no agent is named. Raises NotFound."""
    generic = PromptView(GENERIC.format(city=ctx.city.name))
    try:
        agent, name = await _named(host, ask, ctx)
    except NotFound:
        if ask.agent:
            raise
        return generic
    if agent is None:
        return generic
    if _is_suspended(ctx.city, agent):
        return PromptView("")
    text = host.prompt(agent, name)
    return PromptView(text) if text.strip() else generic


async def _named(host: "Host", ask: ShowHook | ShowPrompt, ctx: Context) -> tuple[Agent | None, str]:
    """The agent's declaration, None if it is only a session that runs, and its full name. Raises NotFound."""
    wanted = ask.agent or ask.own
    if not wanted:
        raise NotFound("No agent is named, and this is not an agent's session.", hint="Name one.")
    found = find_agent(ctx.city.agents, wanted, rig=ctx.actor.rig or "")
    if found is not None:
        return found
    who = await named(host, wanted, ctx.actor.rig, ctx.now)
    return who.agent, who.name


def _is_suspended(city: City, agent: Agent) -> bool:
    rig = rig_of(city, agent)
    return city.workspace.suspended or agent.suspended or (rig is not None and rig.suspended)


def _of_store(tx: Tx, name: str, agent: Agent) -> list[Bead]:
    return _hooked(tx.beads, name, agent)


def _hooked(beads: Finding, name: str, agent: Agent) -> list[Bead]:
    """Beads in progress come first, so that a fresh session continues where the last one ended; then ready ones.

    A member of a pool that has neither gets one unassigned bead of its pool.
    """
    held = beads.matching(BeadFilter(status=BeadStatus.IN_PROGRESS, assignee=name), limit=MOST)
    given_to_it = beads.ready(assignee=name, limit=MOST)
    pool: Sequence[Bead] = ()
    if agent.pool is not None and not held and not given_to_it:
        label = f"{POOL_LABEL}{agent.qualified_name}"
        pool = [bead for bead in beads.ready(label=label, limit=MOST) if not bead.assignee][:1]
    return list({bead.id: bead for bead in (*reversed(held), *given_to_it, *pool)}.values())


NOTHING = HookView("")
HOOK = effect(
    "hook.show", Verb.READ, ShowHook, HookView, show_hook,
    needs=Need.CONFIG, command="hook", here=True, patient=True, http=Http("GET", "/agents/{agent}/hook"),
)  # fmt: skip
PROMPT = effect(
    "prime.show",
    Verb.READ,
    ShowPrompt,
    PromptView,
    show_prompt,
    needs=Need.CONFIG,
    command="prime",
    here=True,
    http=Http("GET", "/agents/{agent}/prompt"),
)
