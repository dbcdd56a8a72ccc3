"""What can be asked about sessions: those that run, as their providers see them, and those that ended, as recorded.

A command that has the daemon do it loads this module too: what only the doing needs is imported there.
"""

from collections.abc import Mapping
from datetime import datetime

from lamplighter.domain.access import Verb, require
from lamplighter.domain.runs.completion import run_id
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.errors import NotFound
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Kind, Need, Operation, effect
from lamplighter.services.resolving import the_one
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.sessions.model import Seen
    from lamplighter.services.host import Host
    from lamplighter.store.sessions import SessionRow

ANSWER_S = 5.0
"""How long a command waits for the daemon before it asks store and providers itself."""
NAMED_LATELY = 10_000
"""Among so many of the newest sessions one is looked for by its name."""

NAME = "Its id, a part of it, its name, or the agent whose session it is."


@record
class LivingSession:
    """`state` is `running`, or `dead` for a session whose program ended and that its provider still shows."""

    id: str
    name: str
    agent: str | None
    run: str | None
    state: str
    pid: int | None
    started_at: datetime | None
    last_activity_at: datetime | None
    ended_at: datetime | None
    exit_status: int | None
    end_reason: str | None
    attached: bool
    meta: Mapping[str, str]


@record
class EndedSession:
    id: str
    name: str
    agent: str | None
    run: str | None
    provider: str
    node: str
    pid: int | None
    started_at: datetime
    ended_at: datetime | None
    exit_status: int | None
    end_reason: str | None
    output_tail: str | None
    program_session: str | None
    outcome: str | None
    summary: str | None
    state: str = "ended"


SessionView = LivingSession | EndedSession


@record
class SessionOutput:
    name: str
    id: str
    output: str


@record
class ListSessions:
    """What runs now; with --all also what ended, the newest first."""

    agent: str | None = given("Only those of this agent.", default=None)
    ended: bool = given("Ended ones too.", key="all", default=False)
    limit: int = given("At most so many ended.", default=50, least=1, most=10_000)


@record
class ShowSession:
    """One session, by its id, a part of it, its name or its agent; a name means the present one, else the last."""

    name: str = given(NAME, positional=True, names="session")


@record
class SessionLogs:
    """Its output; of an ended one the last of what it said."""

    name: str = given(NAME, positional=True, names="session")
    lines: int = given("0 for all.", default=200, least=0, most=100_000)


@record
class SendMessage:
    """Tell a session something. A run's is told it as its next turn, once the run has ended; an agent's at once."""

    name: str = given(
        "Its id, its name or its agent; a run's id names the session of the run.", metavar="SESSION", positional=True
    )
    text: str = given("What to tell it.", metavar="TEXT", positional=True, rest=True)


@record
class MessageSent:
    """`how` is `queued` (it waits for the end of `run`), `started` (`run` is told it) or `typed` into an agent's."""

    how: str
    run: str | None = None
    agent: str | None = None


async def send_message(host: "Host", ask: SendMessage, ctx: Context) -> MessageSent:
    """Raises NotFound, NoConversation, BudgetUsedUp, UsageError; for an agent what a nudge raises."""
    from lamplighter.services.agents.operations import NudgeAgent, nudge_agent  # as in the module's docstring
    from lamplighter.services.runs.continuing import send

    run, agent = ask.name if run_id(ask.name) is not None else None, None
    if run is None:
        found = await show_session(host, ShowSession(ask.name), ctx)
        run, agent = found.run, found.agent
    if run is not None:
        told, waits = await host.store.transact(send, run, ask.text, ctx=ctx)
        return MessageSent("queued" if waits else "started", run=told.id)
    require(ctx.actor, Verb.CONTROL_AGENTS)  # to type into an agent's terminal is more than to speak to a run
    await nudge_agent(host, NudgeAgent(agent or ask.name, ask.text), ctx)
    return MessageSent("typed", agent=agent or ask.name)


async def list_sessions(host: "Host", ask: ListSessions, _ctx: Context) -> list[SessionView]:
    found: list[SessionView] = list(await _living(host))
    if ask.ended:
        known = {one.id for one in found}
        rows = await host.store.read(_latest, ask.agent, ask.limit + len(known))  # the newest are those that live
        found += [_ended(row) for row in rows if row.id not in known][: ask.limit]
    return [one for one in found if ask.agent in {None, one.agent}]


async def show_session(host: "Host", ask: ShowSession, _ctx: Context) -> SessionView:
    """Raises NotFound, IdAmbiguous."""
    living = await _living(host)
    for one in living:
        if ask.name in {one.id, one.name}:
            return one
    row = await host.store.read(_recorded, ask.name)
    if row is None:
        of_agent = [one for one in living if one.agent == ask.name]
        if of_agent:
            return of_agent[0]
        row = next(iter(await host.store.read(_latest, ask.name, 1)), None)
    if row is None:
        found = the_one(ask.name, "session", [*(one.id for one in living), *await host.store.read(_ids)])
        alive = next((one for one in living if one.id == found), None)
        if alive is not None:
            return alive
        row = None if found is None else await host.store.read(_recorded, found)
    if row is None:
        raise NotFound(f"There is no session `{ask.name}`.", hint="`lamp session list --all` shows those there were.")
    return _ended(row)


async def session_logs(host: "Host", ask: SessionLogs, ctx: Context) -> SessionOutput:
    """Raises NotFound."""
    found = await show_session(host, ShowSession(ask.name), ctx)
    if isinstance(found, EndedSession):
        return SessionOutput(found.name, found.id, found.output_tail or "")
    for provider in host.all_sessions:
        text = await provider.peek(SessionName(found.name), ask.lines)
        if text:
            return SessionOutput(found.name, found.id, (await host.secrets.mask())(text))
    return SessionOutput(found.name, found.id, "")


async def _living(host: "Host") -> list[LivingSession]:
    seen: dict[str, Seen] = {}
    for provider in host.all_sessions:
        seen |= {one.session_id: one for one in (await provider.seen()).values()}
    return [_seen(one) for one in seen.values()]


def _seen(one: "Seen") -> LivingSession:
    return LivingSession(
        id=one.session_id,
        name=one.name,
        agent=one.meta.get(meta.AGENT),
        run=one.meta.get(meta.RUN),
        state="running" if one.alive else "dead",
        pid=one.pid,
        started_at=one.started_at,
        last_activity_at=one.last_activity,
        ended_at=None,
        exit_status=one.exit_status,
        end_reason=None,
        attached=one.attached,
        meta=one.meta,
    )


def _ended(row: "SessionRow") -> EndedSession:
    return EndedSession(**{name: getattr(row, name) for name in EndedSession.__dataclass_fields__ if name != "state"})


def _latest(tx: Tx, agent: str | None, limit: int) -> "list[SessionRow]":
    return tx.sessions.latest(agent=agent, limit=limit)


def _ids(tx: Tx) -> list[str]:
    return tx.sessions.ids(limit=NAMED_LATELY)


def _recorded(tx: Tx, name: str) -> "SessionRow | None":
    found = tx.sessions.get(name)
    return found or next((row for row in tx.sessions.latest(limit=NAMED_LATELY) if row.name == name), None)


LIST = effect(
    "session.list",
    Verb.READ,
    ListSessions,
    list[SessionView],
    list_sessions,
    here_after=ANSWER_S,
    http=Http("GET", "/sessions"),
)
SHOW: Operation[ShowSession, SessionView] = Operation(
    "session.show",
    Kind.EFFECT,
    Verb.READ,
    ShowSession,
    SessionView,
    show_session,
    here_after=ANSWER_S,
    http=Http("GET", "/sessions/{name}"),
)
LOGS = effect(
    "session.logs",
    Verb.READ,
    SessionLogs,
    SessionOutput,
    session_logs,
    here_after=ANSWER_S,
    http=Http("GET", "/sessions/{name}/logs"),
)
SEND = effect(
    "session.send",
    Verb.ANSWER_RUN,
    SendMessage,
    MessageSent,
    send_message,
    needs=Need.CONFIG,
    http=Http("POST", "/sessions/{name}/messages"),
)
