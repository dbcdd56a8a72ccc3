"""Whatever happens to a city, the patrol keeps its promises, and a city left in peace becomes what is wanted."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.actions import (
    Action,
    ClearDrain,
    Drain,
    NoteEnd,
    Quarantine,
    Restart,
    RestartReason,
    Start,
    Stop,
    StopReason,
)
from lamplighter.domain.sessions.crashes import CrashLimit, SessionHistory, quarantined_until
from lamplighter.domain.sessions.drift import marks
from lamplighter.domain.sessions.idle import DrainReason
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.outlook import Sight, Wanted, WantedAgent
from lamplighter.domain.sessions.patrol import Plan, plan
from lamplighter.domain.sessions.supervise import Strategy
from lamplighter.testing.sessions import START, an_agent

NAMES = ("a", "b", "c", "coder-1", "coder-2")
POOLS = {"coder": timedelta(seconds=30)}
LIMIT = CrashLimit(count=4, window=timedelta(minutes=10))
names = st.sampled_from(NAMES).map(SessionName)


def _wish(name: str, version: int, strategy: Strategy) -> WantedAgent:
    if name.startswith("coder"):
        return an_agent(name, template="coder", is_pool=True, fingerprint={"command": f"c{version}"})
    needs = {"b": ("a",), "c": ("b",)}.get(name, ())
    idle = timedelta(minutes=3) if name == "a" else None
    return an_agent(
        name, fingerprint={"command": f"c{version}"}, depends_on=needs, idle_timeout=idle, strategy=strategy
    )


class City(RuleBasedStateMachine):
    """A pretended machine that carries out what the patrol says, while things happen to it."""

    def __init__(self) -> None:
        super().__init__()
        self.now: datetime = START
        self.sessions: dict[SessionName, Seen] = {}
        self.history: dict[SessionName, SessionHistory] = {}
        self.busy: set[SessionName] = set()
        self.refusing: set[SessionName] = set()
        self.starts = 0
        self.wanted = Wanted()

    @initialize(strategy=st.sampled_from(Strategy))
    def choose(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.want(set(NAMES), 0, suspended=False)

    # ── what happens ──────────────────────────────────────────────────────────────────────────────────────────────

    @rule(chosen=st.sets(st.sampled_from(NAMES)), version=st.integers(0, 2), suspended=st.booleans())
    def want(self, chosen: set[str], version: int, *, suspended: bool) -> None:
        agents = tuple(_wish(name, version, self.strategy) for name in NAMES if name in chosen)
        self.wanted = Wanted(agents, POOLS, city_suspended=suspended, limit=LIMIT)

    @rule(seconds=st.sampled_from([0.2, 1, 5, 31, 61, 400]))
    def time_passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(name=names, vanishes=st.booleans())
    def dies(self, name: SessionName, *, vanishes: bool) -> None:
        if name in self.sessions and vanishes:
            del self.sessions[name]
        elif name in self.sessions:
            self.sessions[name] = replace(self.sessions[name], alive=False, exit_status=1)

    @rule(name=names, attached=st.booleans())
    def person_attaches(self, name: SessionName, *, attached: bool) -> None:
        self._change(name, attached=attached)

    @rule(name=names, key=st.sampled_from([meta.DRAIN_ACK, meta.RESTART_REQUESTED, meta.DRAIN]))
    def is_marked(self, name: SessionName, key: str) -> None:
        if name in self.sessions:
            self._change(name, meta={**self.sessions[name].meta, key: str(int(self.now.timestamp()))})

    @rule(name=names)
    def works(self, name: SessionName) -> None:
        self.busy ^= {name}
        self._change(name, last_activity=self.now)

    @rule(name=names)
    def refuses_to_start(self, name: SessionName) -> None:
        self.refusing ^= {name}

    @rule()
    def patrols(self) -> None:
        self._carry_out(self._plan())

    # ── what must hold ────────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def every_plan_keeps_the_promises(self) -> None:
        made = self._plan()
        strong = [action.session for action in made.actions if isinstance(action, Start | Stop | Restart | Drain)]
        assert len(strong) == len(set(strong)), "two actions for one session"
        for action in made.actions:
            self._check(action)
        assert made.wake_at is None or made.wake_at > self.now

    def _check(self, action: Action) -> None:
        seen = self.sessions.get(action.session)
        alive = seen is not None and seen.alive
        match action:
            case Start(session=session):
                assert not alive, "a second start"
                past = self.history.get(session, SessionHistory()).ended(self.now)
                assert quarantined_until(past, LIMIT, self.now) is None, "a start in quarantine"
            case Stop(reason=reason):
                assert not (alive and seen and seen.attached), "a person was cut off"
                assert not (reason is StopReason.DRAIN_TIMEOUT and action.session in self.busy)
            case Restart(reason=reason):
                assert alive
                assert seen is not None
                assert not seen.attached
                assert reason in RestartReason
            case Drain(reason=reason):
                assert alive
                assert seen is not None
                assert not seen.attached
                assert not (reason is DrainReason.SURPLUS and action.session in self.busy)
            case _:
                pass

    @precondition(lambda self: self.now > START)
    @rule()
    def left_in_peace_it_becomes_what_is_wanted(self) -> None:
        self.busy.clear()
        self.refusing.clear()
        for name in self.sessions:
            self._change(name, attached=False)
        for _ in range(60):
            made = self._plan()
            if not made.actions and made.wake_at is None:
                break
            self._carry_out(made)
            self._acknowledge_drains()
            for name in self.sessions:
                self._change(name, last_activity=self.now)  # everybody is at their keyboards
            self.now = max(made.wake_at or self.now, self.now) + timedelta(milliseconds=100)
            if not made.actions and self._is_right():
                break
        assert self._is_right()

    def _is_right(self) -> bool:
        wish = set() if self.wanted.city_suspended else {agent.session for agent in self.wanted.agents}
        return {name for name, seen in self.sessions.items() if seen.alive} == wish

    # ── the hands ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _plan(self) -> Plan:
        return plan(self.wanted, Sight(self.sessions, frozenset(self.busy)), self.history, self.now)

    def _carry_out(self, made: Plan) -> None:
        for action in made.actions:
            self._do(action)

    def _do(self, action: Action) -> None:
        name = action.session
        past = self.history.get(name, SessionHistory())
        match action:
            case NoteEnd(session_id=session_id):
                self.history[name] = replace(past.ended(self.now), crash_noted=session_id)
            case Quarantine(until=until):
                self.history[name] = replace(past, quarantine_noted=until)
            case Start():
                self._start(name)
            case Stop():
                self._stop(name)
            case Restart():
                self._stop(name)
                self._start(name)
            case Drain(reason=reason):
                since = str(int(self.now.timestamp()))
                self._mark(name, {meta.DRAIN: since, meta.DRAIN_REASON: str(reason)})
            case ClearDrain():
                kept = {key: value for key, value in self.sessions[name].meta.items() if key not in meta.ONE_SHOT}
                self._change(name, meta=kept)

    def _start(self, name: SessionName) -> None:
        past = self.history.get(name, SessionHistory())
        if name in self.refusing:
            self.history[name] = past.failed(self.now)
            return
        agent = next(agent for agent in self.wanted.agents if agent.session == name)
        self.starts += 1
        own = {meta.AGENT: agent.agent, **marks(agent.fingerprint)} | ({meta.POOL: "coder"} if agent.is_pool else {})
        self.sessions[name] = Seen(
            name, alive=True, session_id=f"ses_{self.starts}", started_at=self.now, last_activity=self.now, meta=own
        )
        self.history[name] = past.started(self.now)

    def _stop(self, name: SessionName) -> None:
        self.sessions.pop(name, None)
        self.history[name] = self.history.get(name, SessionHistory()).ended(self.now, wished=True)

    def _mark(self, name: SessionName, extra: dict[str, str]) -> None:
        self._change(name, meta={**self.sessions[name].meta, **extra})

    def _acknowledge_drains(self) -> None:
        for name, seen in self.sessions.items():
            if meta.DRAIN in seen.meta:
                self._mark(name, {meta.DRAIN_ACK: "1"})

    def _change(self, name: SessionName, **fields: object) -> None:
        if name in self.sessions:
            self.sessions[name] = replace(self.sessions[name], **fields)  # type: ignore[arg-type]


City.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestCity = City.TestCase
