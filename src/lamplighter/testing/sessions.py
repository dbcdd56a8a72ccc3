"""Builders for sessions and the patrol's inputs."""

from datetime import UTC, datetime, timedelta

from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.crashes import SessionHistory
from lamplighter.domain.sessions.drift import marks
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.outlook import Sight, Wanted, WantedAgent

START = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def an_agent(name: str, **fields: object) -> WantedAgent:
    settings: dict[str, object] = {"fingerprint": {"command": "c0"}} | fields
    return WantedAgent(agent=name, session=SessionName(name), **settings)  # type: ignore[arg-type]  # fields by name


def a_session(name: str, *, alive: bool = True, marked: dict[str, str] | None = None, **fields: object) -> Seen:
    """A session, by default alive since START and with the fingerprint of `an_agent`."""
    own = {meta.AGENT: name, **marks({"command": "c0"})} | (marked or {})
    settings: dict[str, object] = {
        "session_id": f"ses_{name}", "pid": 100, "started_at": START, "last_activity": START, "meta": own,
    } | fields  # fmt: skip
    return Seen(SessionName(name), alive=alive, **settings)  # type: ignore[arg-type]  # the fields of Seen, by name


def sight(*sessions: Seen, busy: tuple[str, ...] = (), under_way: tuple[str, ...] = ()) -> Sight:
    return Sight(
        {session.name: session for session in sessions},
        frozenset(SessionName(name) for name in busy),
        frozenset(SessionName(name) for name in under_way),
    )


def wanted(*agents: WantedAgent, **fields: object) -> Wanted:
    return Wanted(agents, **fields)  # type: ignore[arg-type]  # the fields of Wanted, by name


def lived(*lives: tuple[float, float | None], wished: bool = False) -> SessionHistory:
    """A history of lives given as (started, ended) in seconds after START; ended is None for one that still runs."""
    history = SessionHistory()
    for started, ended in lives:
        history = history.started(at(started))
        if ended is not None:
            history = history.ended(at(ended), wished=wished)
    return history
