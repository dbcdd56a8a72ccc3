"""The parts of a city that a process opens for itself; effects and streams that a command carries out itself."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from lamplighter.adapters.files.browser_sessions import LINK_LASTS
from lamplighter.app.beads import outside_beads
from lamplighter.app.city_files import FilesOfCity
from lamplighter.app.controller_view import controller_view
from lamplighter.app.formulas import FormulasOfCity
from lamplighter.app.hooks import prompt_of, queried
from lamplighter.app.kept_for_status import keep_with_automations
from lamplighter.app.knocking import knock
from lamplighter.app.mail import outside_mail
from lamplighter.app.secrets import box_of
from lamplighter.app.sessions import open_named, provider_name
from lamplighter.app.sign_in import browser_sessions
from lamplighter.app.wakeups import listening
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.access import Actor
from lamplighter.domain.city.wanted import Roster, roster
from lamplighter.kit import aio
from lamplighter.kit.clock import Clock
from lamplighter.kit.records import record
from lamplighter.ports.beads import BeadStore
from lamplighter.ports.sessions import SessionProvider
from lamplighter.services.context import Context
from lamplighter.services.doctor import Finding
from lamplighter.services.event_tail import EventTail
from lamplighter.services.host import Patrol
from lamplighter.services.keeping import BackupView, UninstalledView
from lamplighter.services.operation import Operation, admit, is_change, permit
from lamplighter.services.resolving import resolved
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.services.status_views import ControllerView
from lamplighter.store.engine import Proofs, Wakes
from lamplighter.store.errors import PooledByTransaction, StoreCorrupt, StoreNewer, StoreUnavailable
from lamplighter.store.owners import Owner
from lamplighter.store.tx import DirectStore, Store, Tx
from lamplighter.store.url import open_proofs, open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.app.local_automations import LocalAutomations
    from lamplighter.daemon.active_config import ActiveConfig
    from lamplighter.domain.automations.gates import Checked
    from lamplighter.domain.automations.model import Automation
    from lamplighter.domain.city.model import Agent
    from lamplighter.domain.sessions.logins import Login
    from lamplighter.ports.commands import CommandEnded, CommandRunner
    from lamplighter.ports.formulas import FormulaFiles
    from lamplighter.ports.mail import Mail
    from lamplighter.ports.messenger import Messenger
    from lamplighter.ports.secrets import SecretBox
    from lamplighter.ports.slack import SlackCalls
    from lamplighter.ports.worktrees import Worktrees
    from lamplighter.services.agents.terminals import Terminals
    from lamplighter.services.automations.outlook import Asked
    from lamplighter.services.secret_values import StoredSecrets

P = ParamSpec("P")
R = TypeVar("R")


class LocalHost:
    """The parts of a city as a process opens them that is not its controller; `close` closes those that were used."""

    def __init__(self, city: OpenCity) -> None:
        self.city = city
        self.wakes = Wakes()
        self._opened: dict[str, SessionProvider] = {}

    @cached_property
    def store(self) -> Store:
        return open_store(self.city.place, self.city.paths.city_id(), self.wakes)

    @property
    def clock(self) -> Clock:
        return self.city.clock

    @property
    def active(self) -> "ActiveConfig":
        """The configuration in force, as the run pipeline uses it."""
        return self._automations.active

    @property
    def commands(self) -> "CommandRunner":
        return self._automations.commands

    @property
    def messenger(self) -> "Messenger":
        from lamplighter.app.notices import messenger_here  # few operations send anything

        return messenger_here(self.city, self.store, self.secrets, lambda: self.roster.city)

    @property
    def slack(self) -> "SlackCalls":
        from lamplighter.adapters.slack.web_api import SlackWebApi

        return SlackWebApi.of(self.city.settings.env)

    @cached_property
    def secret_box(self) -> "SecretBox":
        return box_of(self.city)

    @cached_property
    def secrets(self) -> "StoredSecrets":
        return StoredSecrets(self.store, self.secret_box)

    @cached_property
    def terminals(self) -> "Terminals":
        from lamplighter.services.agents.terminals import Terminals

        return Terminals(self.clock, self.secrets.mask)

    async def knock(self, connection: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        url = (await self.controller()).api
        return await knock(url, connection, headers, body)

    @property
    def worktrees(self) -> "Worktrees":
        from lamplighter.app.agent_runs import worktrees_of  # few operations need git

        return worktrees_of(self.city)

    async def check_conditions(self, asked: "Sequence[Asked]") -> "list[Checked]":
        return await self._automations.check_conditions(asked)

    async def try_command(
        self, key: str, automation: "Automation", line: str, limit: timedelta, trigger: Mapping[str, Any]
    ) -> "CommandEnded":
        from lamplighter.ports.commands import Command

        command = Command(key, line, "", limit, files={"LAMP_TRIGGER_FILE": json.dumps(trigger)})
        return await self._automations.try_command(automation, command)

    @cached_property
    def _automations(self) -> "LocalAutomations":
        from lamplighter.app.local_automations import LocalAutomations  # few operations need automations

        return LocalAutomations(self.city, self.secrets)

    @property
    def root(self) -> Path:
        return self.city.paths.root

    @property
    def store_name(self) -> str:
        return str(self.city.place)

    @cached_property
    def event_tail(self) -> "EventTail":
        return EventTail(self.store, self.wakes, self.clock)

    def outside_beads(self) -> BeadStore | None:
        return outside_beads(self.city)

    def outside_mail(self) -> "Mail | None":
        return outside_mail(self.city)

    @property
    def formulas(self) -> "FormulaFiles":
        return FormulasOfCity(self.city)

    # ── the configuration ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def roster(self) -> Roster:
        return self._roster

    @cached_property
    def _roster(self) -> Roster:
        return roster(self.city.config)

    @property
    def config_problem(self) -> str | None:
        return self.city.in_force.problem

    @property
    def files(self) -> FilesOfCity:
        return FilesOfCity(self.city)

    async def reload(self) -> str | None:
        """Here only what this process knows of the files; a controller in another process notices their change."""
        self.city.forget_config()
        self.__dict__.pop("_roster", None)
        return None

    def need_own(self) -> None:
        self.city.need_own()

    def prompt(self, agent: "Agent", name: str) -> str:
        return prompt_of(self.city, agent, name)

    async def work_query(self, agent: "Agent", name: str) -> str:
        return await asyncio.to_thread(queried, self.city, agent, name)

    # ── sessions and processes ────────────────────────────────────────────────────────────────────────────────────

    @property
    def sessions(self) -> SessionProvider:
        return self._provider(provider_name(self.city.config.city, self.city.settings.env))

    @property
    def all_sessions(self) -> Sequence[SessionProvider]:
        config = self.city.config.city
        names = (provider_name(config, self.city.settings.env), config.runs.provider)
        return [self._provider(name) for name in dict.fromkeys(names)]

    def _provider(self, name: str) -> SessionProvider:
        if name not in self._opened:
            city = self.city
            city.warn_of_copy()
            self._opened[name] = open_named(name, city.paths, city.settings.env, clock=city.clock, ids=city.ids)
        return self._opened[name]

    @property
    def patrol(self) -> Patrol | None:
        return None

    @property
    def is_kept(self) -> bool:
        return self.city.is_kept

    async def ask_login(self, login: "Login") -> bool | None:
        from lamplighter.app.agent_runs import asked_login  # few operations need agent runs

        return await asked_login(self.city, self.store, login)

    async def controller(self) -> ControllerView:
        return controller_view(self.city)

    def remember_for_status(self) -> str | None:
        broken = keep_with_automations(self.city, self.roster)
        return None if self.city.is_kept else broken

    async def living(self) -> Sequence[Owner]:
        known = await self.store.read(lambda tx: tx.owners.all())
        if not known:
            return []
        proofs = open_proofs(self.city.place)
        try:
            return await of_the_living(proofs, known)
        finally:
            proofs.close()

    async def back_up(self, file: str | None, *, artifacts: bool) -> BackupView:
        return await asyncio.to_thread(_backed_up, self.city, file, artifacts=artifacts)

    async def uninstall(self, *, purge: bool) -> UninstalledView:
        return await asyncio.to_thread(_uninstalled, self.city, purge=purge)

    async def examine(self, *, fix: bool) -> Sequence[Finding]:
        return await asyncio.to_thread(_examined, self.city, fix=fix)

    def sign_in_link(self, actor: Actor) -> tuple[str, timedelta]:
        return browser_sessions(self.city).link(actor), LINK_LASTS

    async def close(self) -> None:
        for provider in self._opened.values():
            await provider.close()
        self._opened.clear()
        store: Store | None = self.__dict__.pop("store", None)
        if store is not None:
            await store.close()


def _examined(city: OpenCity, *, fix: bool) -> list[Finding]:
    """On a thread, with a connection of its own: the checks block, and some run an event loop for themselves."""
    from lamplighter.app.doctor import examine  # it knows everything, and no other operation needs it

    own = replace(city)
    try:
        return examine(own, fix=fix)
    finally:
        own.close()


def _backed_up(city: OpenCity, file: str | None, *, artifacts: bool) -> BackupView:
    from lamplighter.app.backup import back_up

    return back_up(city, file, artifacts=artifacts)


def _uninstalled(city: OpenCity, *, purge: bool) -> UninstalledView:
    from lamplighter.app.uninstall import uninstall

    own = replace(city)
    try:
        return uninstall(own, purge=purge)
    finally:
        own.close()


async def of_the_living(proofs: Proofs, owners: Sequence[Owner]) -> list[Owner]:
    living = await asyncio.to_thread(proofs.living, [owner.id for owner in owners])
    return [owner for owner in owners if owner.id in living]


@record
class _OwnConnection:
    """The connection that a command has already, for effects: it waits for the database, or refuses to write, alike."""

    store: DirectStore

    @property
    def trouble(self) -> str | None:
        return None  # a command tells trouble with the database by its own error

    async def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        return self.store.transact(fn, *args, **kwargs)

    async def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        return self.store.read(fn, *args, **kwargs)

    async def clock_offset(self) -> timedelta:
        raise NotImplementedError("only processes that hold leases ask for the database's clock")

    async def close(self) -> None:
        return  # the command closes it


class _CommandHost(LocalHost):
    """The host of a single command, which may block: nothing else waits in its event loop."""

    @cached_property
    def store(self) -> Store:
        return _OwnConnection(self.city.store)


def carried_out_here(city: OpenCity, operation: Operation[Any, Any], ask: Any, ctx: Context) -> Any:
    _begin(city, operation, ask, ctx)
    meant = city.store.read(resolved, ask) if operation.names else ask
    return on_host(city, lambda host: operation.run(host, meant, ctx))


def _begin(city: OpenCity, operation: Operation[Any, Any], ask: Any, ctx: Context) -> None:
    """Judge an effect, and note what a person changes, in one transaction; while the database is away that is told.

    A copied city notes nothing: the rows may be its original's.
    """
    may = admit(ctx.actor, operation.verb)
    if not is_change(operation, ask, ctx) or city.original is not None:
        if not may:
            city.store.read(permit, operation.verb, ctx)
        return
    from lamplighter.services.auditing import begin_effect

    try:
        city.store.transact(begin_effect, operation, ask, ctx)
    except (StoreUnavailable, StoreCorrupt, StoreNewer, PooledByTransaction) as error:
        if not may:
            raise
        city.warn(f"This is not in `lamp audit list`: {error.message}")


def on_host(city: OpenCity, work: Callable[[LocalHost], Awaitable[R]]) -> R:
    """Do some work on the parts of a city that this command opens for it."""

    async def carry_out() -> R:
        host = _CommandHost(city)
        try:
            return await work(host)
        finally:
            await host.close()

    return aio.run(carry_out())


def followed_here(
    city: OpenCity, operation: Operation[Any, Any], ask: Any, ctx: Context, show: Callable[[Any], None]
) -> None:
    """Call `show` with each part of a stream as it comes, until the stream ends."""
    city.warn_of_copy()
    if not admit(ctx.actor, operation.verb):
        city.store.read(permit, operation.verb, ctx)
    meant = city.store.read(resolved, ask) if operation.names else ask

    async def follow() -> None:
        host = LocalHost(city)
        try:
            with listening(city.place, city.ids.make("tail"), host.wakes):
                async with aclosing(operation.run(host, meant, ctx)) as parts:
                    async for part in parts:
                        show(part)
        finally:
            await host.close()

    aio.run(follow())
