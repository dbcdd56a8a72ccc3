"""Builds the parts that fire and run automations: their loops, their phases, and the configuration a reload swaps."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lamplighter.daemon.active_config import ActiveConfig, ClockGuard
from lamplighter.daemon.conditions import Conditions
from lamplighter.daemon.inbox import InboxKeeper
from lamplighter.daemon.pipeline.agent_handlers import AgentHandlers
from lamplighter.daemon.pipeline.agent_sessions import AgentRuns, at_once
from lamplighter.daemon.pipeline.deadlines import Deadlines
from lamplighter.daemon.pipeline.dispatcher import Dispatcher
from lamplighter.daemon.pipeline.finalizer import Finalizer
from lamplighter.daemon.pipeline.handlers import FindFormula, Handlers
from lamplighter.daemon.pipeline.memory import Available, Memory
from lamplighter.daemon.pipeline.notices import NoticeSender
from lamplighter.daemon.pipeline.run_logins import RunLogins
from lamplighter.daemon.pipeline.run_places import RunPlaces
from lamplighter.daemon.pipeline.run_plans import RunPlans
from lamplighter.daemon.pipeline.slack import SlackHandlers, SlackOutside
from lamplighter.daemon.pipeline.worker import Worker
from lamplighter.daemon.pipeline.workspaces import Workspaces
from lamplighter.daemon.retention import RunRetention
from lamplighter.daemon.scheduler import Scheduler
from lamplighter.daemon.slack_sockets import SlackSockets
from lamplighter.daemon.ticks import Phase, Waker
from lamplighter.domain.city.model import City
from lamplighter.domain.runs import tracing
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.ids import IdSource
from lamplighter.kit.supervise import Child
from lamplighter.kit.tasks import spawn
from lamplighter.ports.artifacts import ArtifactStore
from lamplighter.ports.beads import BeadStore
from lamplighter.ports.commands import CommandRunner
from lamplighter.ports.messenger import Messenger
from lamplighter.ports.run_workshop import RunWorkshop
from lamplighter.ports.secrets import NoSecrets, SecretSource
from lamplighter.ports.selector import Selector
from lamplighter.ports.sessions import SessionProvider
from lamplighter.ports.workspaces import WorkspaceFiles
from lamplighter.ports.worktrees import Worktrees
from lamplighter.services.automations.definitions import Synced
from lamplighter.services.beads.changes import TOPIC as BEADS
from lamplighter.services.context import Configured, acting
from lamplighter.services.declared import Declared, write_declared
from lamplighter.services.rules import Rules
from lamplighter.services.runs import review
from lamplighter.services.slack.installing import TOPIC as SLACK
from lamplighter.services.slack.receiving import SlackReceiver
from lamplighter.store.tx import Store, Tx

ACTOR = "controller"
STOP_EXTRA = timedelta(seconds=15)
TIDY_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class Outside:
    """What these parts need besides the store; `beads` returns the external bead store of a city that has one."""

    runner: CommandRunner
    formula: FindFormula
    beads: Callable[[], BeadStore]
    env: Mapping[str, str]
    agents: "Agents"
    messenger: Messenger
    secrets: SecretSource = field(default_factory=NoSecrets)
    memory: Available = lambda: None
    slack: SlackOutside | None = None
    handed: tracing.Handed = tracing.senders


@dataclass(frozen=True)
class Agents:
    """What agent runs need: where their sessions live, what lays out their files, and where their tools are served."""

    sessions: SessionProvider
    provider: str
    workshop: RunWorkshop
    worktrees: Worktrees
    artifacts: ArtifactStore
    selector: Selector
    api_url: Callable[[], str | None]
    files: WorkspaceFiles
    tools_ready: Callable[[], Awaitable[None]] = at_once
    """Returns once the tools at `api_url` are served without any delay."""


@dataclass
class AutomationLoops:
    store: Store
    clock: Clock
    ids: IdSource
    active: ActiveConfig
    scheduler: Scheduler
    conditions: Conditions
    worker: Worker
    dispatcher: Dispatcher
    finalizer: Finalizer
    deadlines: Deadlines
    agents: AgentRuns
    artifacts: ArtifactStore
    inbox: InboxKeeper
    sockets: SlackSockets | None = None
    file_problem: str | None = None
    """What is wrong with the automations in files, in one line."""

    @staticmethod
    def build(  # noqa: PLR0913  one place that puts the parts together
        city: City,
        rules: Rules,
        outside: Outside,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        me: review.Worker,
        only: str | None = None,
    ) -> "AutomationLoops":
        """`only` restricts the dispatcher to one run: for a command that carries out the run it fired itself."""
        active = ActiveConfig(city, rules, outside.env, secrets=outside.secrets, handed=outside.handed)
        guard = ClockGuard(store, clock)
        given = outside.agents
        plans = RunPlans(store, active, given.workshop)
        workspaces = Workspaces(store, clock, active, outside.runner, given.files, me)
        agents = AgentRuns(
            store,
            clock,
            ids,
            active,
            me,
            given.sessions,
            given.workshop,
            given.provider,
            given.api_url,
            plans,
            RunLogins(store, clock, active, me, given.workshop, plans),
            RunPlaces(store, clock, me, given.worktrees, workspaces, plans),
            given.tools_ready,
        )
        worker = Worker(store, clock, ids, active, outside.runner, me, agents)
        memory = Memory(store, clock, ids, active, me.node, outside.memory)
        pipeline = AgentHandlers(store, clock, ids, active, worker, agents, given.artifacts, given.selector, memory)
        notices = NoticeSender(store, clock, ids, active, outside.messenger, me.actor)
        slack = sockets = None
        if outside.slack is not None and outside.slack.dial is not None:
            receiver = SlackReceiver(
                outside.slack.workspaces, clock, ids, lambda: Configured(active.city, active.rules)
            )
            sockets = SlackSockets(receiver, outside.slack.calls, outside.slack.dial, clock)
        if outside.slack is not None:
            slack = SlackHandlers(store, clock, ids, active, outside.slack, me.actor)
        handlers = Handlers(store, clock, ids, active, worker, outside.formula, outside.beads, pipeline, notices, slack)
        return AutomationLoops(
            store, clock, ids, active,
            Scheduler(store, clock, ids, active, guard, worker),
            Conditions(store, clock, ids, active, outside.runner),
            worker,
            Dispatcher(store, clock, ids, worker, handlers, guard, only=only),
            Finalizer(store, clock, ids, outside.beads, agents),
            Deadlines(store, clock, ids),
            agents,
            given.artifacts,
            InboxKeeper(store, clock, ids, active),
            sockets,
        )  # fmt: skip

    def listen(self, waker: Waker) -> None:
        self.scheduler.listen(waker)
        self.worker.listen(waker)
        self.dispatcher.listen(waker)
        self.deadlines.listen(waker)
        if self.sockets is not None:
            waker.watch((SLACK,), self.sockets.wake.set, self.sockets)

    def children(self) -> list[Child]:
        """The supervisor stops the last child first: the scheduler stops firing before the runs under way are ended."""
        slack = [] if self.sockets is None else [Child("slack", self.sockets.loop)]
        return [*self.pipeline(), *slack, Child("scheduler", self.scheduler.loop)]

    def pipeline(self) -> list[Child]:
        """The loops that carry runs to their end; they fire none."""
        within = self.active.city.daemon.shutdown_timeout + STOP_EXTRA
        stop = self.dispatcher.stop
        return [
            Child("dispatcher", self.dispatcher.loop, stop=stop, stop_within=within, dropped_when_fenced=True),
            Child("worker", self.worker.loop),
            Child("deadlines", self.deadlines.loop),
        ]

    def tidy_phase(self) -> Phase:
        """Removes what a dead process of this node left of ended runs; a process that is alone does so at its start."""
        return Phase("tidy", self.worker.tidy, at_most_every=TIDY_EVERY)

    def phases(self, city: City) -> list[Phase]:
        return [
            Phase("conditions", self.conditions.tick),
            Phase("quiet", self.scheduler.raise_quiet),
            *self.endings(city),
            *self.inbox.phases(),
            *self.upkeep().phases(city),
        ]

    def upkeep(self) -> RunRetention:
        return RunRetention(self.store, self.clock, self.agents, self.artifacts)

    def endings(self, city: City) -> list[Phase]:
        """Phases that notice what no worker reports: overdue and lost runs, and closed wisps."""
        found = [
            Phase("finalizer", self.finalizer.tick),
            Phase("wisps_closed", self.finalizer.end_wisps, topics=(BEADS,)),
        ]
        if not self.active.rules.own_beads:
            found.append(
                Phase("wisps_elsewhere", self.finalizer.look_elsewhere, at_most_every=city.daemon.patrol_interval)
            )
        return found

    def write(self, tx: Tx, declared: Declared) -> Synced:
        """Store the automations a configuration declares, in the transaction that brings it into force."""
        return write_declared(tx, declared, ctx=acting(ACTOR, self.clock.now(), self.ids))

    def tell_synced(self, synced: Synced) -> None:
        """Log what writing the files' definitions did, and keep their problems for the status."""
        log_synced(synced)
        more = f" (and {len(synced.problems) - 1} more)" if len(synced.problems) > 1 else ""
        self.file_problem = f"{synced.problems[0]}{more}" if synced.problems else None

    async def work_off(self) -> None:
        """Work until nothing is due or under way; meanwhile leases are renewed and called-off runs are stopped."""
        watching = spawn(self.worker.loop(), name="watch")
        try:
            await self.dispatcher.drain()
        except asyncio.CancelledError:
            await self.dispatcher.stop()
            raise
        finally:
            watching.cancel()
            await asyncio.wait({watching})

    async def close(self) -> None:
        """Cancel the tasks under way without ending their runs: the next process on this node adopts those."""
        await self.dispatcher.handling.drop()
        await self.worker.tasks.drop()
        await self.conditions.stop()
        await self.agents.close()


def log_synced(synced: Synced) -> None:
    for name in synced.taken:
        log.get().warning("configuration.name_taken", name=name, problem="a stored one has that name; rename one")
    if synced:
        log.get().info(
            "automations.synced", added=len(synced.added), changed=len(synced.changed), removed=len(synced.removed),
            broken=len(synced.broken),
        )  # fmt: skip
    for problem in synced.problems:
        log.get().warning("automation.problem", problem=problem)
