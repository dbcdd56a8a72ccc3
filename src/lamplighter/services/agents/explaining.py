"""Why an agent is as it is, in sentences: what it is, what the patrol last did and why, what it will do next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lamplighter.domain.access import Verb
from lamplighter.kit.durations import spoken
from lamplighter.kit.shapes import given
from lamplighter.services.agents.queries import ShowAgent, show_agent
from lamplighter.services.agents.views import AgentDetail
from lamplighter.services.context import Context
from lamplighter.services.operation import LOOK_S, Http, effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host


@dataclass(frozen=True)
class ExplainAgent:
    """Why an agent is as it is: its state, what the patrol last did to it and why, what comes next."""

    name: str = given("The agent.", positional=True, names="agent")


@dataclass(frozen=True)
class AgentExplained:
    name: str
    sentences: Sequence[str]


async def explain_agent(host: "Host", ask: ExplainAgent, ctx: Context) -> AgentExplained:
    """Raises NotFound."""
    found = await show_agent(host, ShowAgent(ask.name), ctx)
    return AgentExplained(found.name, sentences_of(found, ctx.now))


def _span(value: timedelta) -> str:
    """In whole seconds: these are sentences, not measurements."""
    return spoken(timedelta(seconds=int(value.total_seconds())))


def sentences_of(one: AgentDetail, now: datetime) -> list[str]:
    return [*_is(one, now), *_started(one, now), *_next(one, now)]


def _is(one: AgentDetail, now: datetime) -> Iterator[str]:
    since = f" for {_span(now - one.since)}" if one.since is not None and one.since <= now else ""
    why = f": {one.reason}" if one.reason and one.reason != one.state else ""
    yield f"It {'has been' if since else 'is'} {one.state}{since}{why}."
    if one.exit_status is not None:
        yield f"Its program ended with status {one.exit_status}."


def _started(one: AgentDetail, now: datetime) -> Iterator[str]:
    if one.starts:
        last = one.starts[0]
        ago = _span(now - last.started_at)
        how = f"could not be started: {last.failure}" if last.failure else f"was last started {ago} ago"
        yield f"It {how} ({last.reason})." if last.reason else f"It {how}."
    if one.starts_in_window:
        starts = "1 recent start counts" if one.starts_in_window == 1 else f"{one.starts_in_window} recent starts count"
        yield f"{starts} towards its quarantine."


def _next(one: AgentDetail, now: datetime) -> Iterator[str]:
    if one.attached:
        yield "Somebody is attached to it, so the patrol leaves it alone."
    if one.quarantined_until is not None and one.quarantined_until > now:
        left = _span(one.quarantined_until - now)
        yield f"The patrol starts it again in {left}, or as soon as its crashes are cleared."
        return
    told = {
        "running": "The patrol leaves it alone as long as its program lives and city.toml does not change it.",
        "draining": "It is started again, or ended, once it has finished what it is doing.",
        "crashed": "The patrol starts it again by itself, later each time it dies soon after a start.",
        "suspended": "The patrol leaves it stopped until somebody resumes it.",
        "starting": "The patrol waits until it is ready.",
    }
    if one.state in told:
        yield told[one.state]


EXPLAIN = effect("agent.explain", Verb.READ, ExplainAgent, AgentExplained, explain_agent, here_after=LOOK_S,
                 http=Http("GET", "/agents/{name}/explain"))  # fmt: skip
