"""Taking over the terminal of an agent in the console, and letting go of it again: who may, and what is on record."""

from dataclasses import dataclass

from lamplighter.domain.access import Verb
from lamplighter.kit.errors import Conflict
from lamplighter.kit.shapes import given
from lamplighter.services.agents.queries import is_pool, named
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host


@dataclass(frozen=True)
class TakeOver:
    """Type into an agent's terminal that you watch in the console; whoever typed until then only watches."""

    name: str = given("The agent.", positional=True, names="agent")
    viewer: str = given("The id of your open terminal in the console.", positional=True)


@dataclass(frozen=True)
class LetGo:
    """End the typing into an agent's terminal in the console, whoever does it."""

    name: str = given("The agent.", positional=True, names="agent")
    viewer: str | None = given("Only if it is this one who types.", default=None)


@dataclass(frozen=True)
class TypistView:
    """Who typed into the terminal of an agent before, and who does now."""

    name: str
    viewer: str | None
    before: str | None


async def take_over(host: "Host", ask: TakeOver, ctx: Context) -> TypistView:
    """Raises NotFound, Conflict if the agent has no terminal or does not run."""
    who = await named(host, ask.name, ctx)
    host.need_own()
    if is_pool(who):
        raise Conflict(f"`{who.name}` is a pool of several.", hint="Name one of its instances.")
    return TypistView(ask.name, ask.viewer, host.terminals.take(who.session, ask.viewer, ctx.actor.name))


async def let_go(host: "Host", ask: LetGo, ctx: Context) -> TypistView:
    """Raises NotFound."""
    who = await named(host, ask.name, ctx)
    return TypistView(ask.name, None, host.terminals.let_go(who.session, ask.viewer))


TAKE_OVER = effect(
    "agent.take-over", Verb.CONTROL_AGENTS, TakeOver, TypistView, take_over,
    http=Http("POST", "/agents/{name}/take-over"),
)  # fmt: skip
LET_GO = effect(
    "agent.let-go", Verb.CONTROL_AGENTS, LetGo, TypistView, let_go, http=Http("POST", "/agents/{name}/let-go")
)
