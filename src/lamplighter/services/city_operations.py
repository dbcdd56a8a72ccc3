"""Carries out operations for surfaces that have an event loop: the HTTP server, tools, and the daemon itself."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from lamplighter.domain.access import Actor, require
from lamplighter.kit import log
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import Clock
from lamplighter.kit.ids import IdSource
from lamplighter.services.auditing import begin_effect
from lamplighter.services.context import Configured, Context
from lamplighter.services.guarding import NO_GUARD, Guard, Outcome, check_guard, guarded, versioned
from lamplighter.services.host import Host
from lamplighter.services.operation import Kind, Operation, admit, is_change, judged, permit
from lamplighter.services.resolving import resolved
from lamplighter.store.errors import CommitUnknown, StoreUnavailable

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")

FIRST_PAUSE = timedelta(milliseconds=100)
LONGEST_PAUSE = timedelta(seconds=2)


@dataclass(frozen=True)
class CityOperations:
    """`configured` returns the configuration in force.

    While the database is unavailable, an operation is tried again for at most `wait` and until `stopping` is set: the
    work of an agent that cannot report is lost, and many agents would not try again.
    """

    host: Host
    clock: Clock
    ids: IdSource
    configured: Callable[[], Configured]
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    wait: timedelta = timedelta(seconds=20)
    """Shorter than agent programs wait for a tool."""

    def admit(self, operation: Operation[Any, Any], actor: Actor) -> None:
        """Refuse an actor without the right before its request is read; `do` judges again. Raises Forbidden."""
        require(actor, operation.verb)

    async def do(self, operation: Operation[Q, A], ask: Q, actor: Actor, *, surface: str, patient: bool = True) -> A:
        """Raises Forbidden, RunOver, StoreUnavailable, and what the operation raises.

        `patient`: try again while the database is unavailable, unless it does something outside the database too.
        """
        configured = self.configured() if operation.needs is not None else None

        def attempt() -> Awaitable[Any]:
            """With the time of each try: what is done when the database is back is done then."""
            ctx = Context(actor, self.clock.now(), self.ids, surface, configured)
            return self._carried_out(operation, ask, ctx)

        again = patient and (operation.repeatable or self._in_one_transaction(operation))
        found = await (self._patiently(attempt, repeatable=operation.repeatable) if again else attempt())
        answer: A = found if operation.settle is None else operation.settle(found)
        return answer

    async def guarded(
        self, operation: Operation[Q, A], ask: Q, actor: Actor, *, surface: str, guard: Guard = NO_GUARD
    ) -> Outcome:
        """As `do`, with what the client asked for beside the request, and the version of what is read.

        Raises UsageError for what cannot be promised, KeyReused, VersionChanged, and what `do` raises.
        """
        outside = self._outside(operation) is not None
        check_guard(operation, guard, outside=outside)
        reads_version = operation.kind is Kind.READ and operation.version is not None and not outside
        if guard == NO_GUARD and not reads_version:
            return Outcome(await self.do(operation, ask, actor, surface=surface))
        configured = self.configured() if operation.needs is not None else None

        def attempt() -> Awaitable[Outcome]:
            ctx = Context(actor, self.clock.now(), self.ids, surface, configured)
            if reads_version:
                return self.host.store.read(versioned, operation, ask, ctx)
            return self.host.store.transact(guarded, operation, ask, ctx, guard)

        return await self._patiently(attempt, repeatable=operation.repeatable or guard.key is not None)

    def _in_one_transaction(self, operation: Operation[Any, Any]) -> bool:
        """Then nothing was done if the database was away."""
        return operation.kind in {Kind.READ, Kind.TRANSACTION} and self._outside(operation) is None

    def _outside(self, operation: Operation[Any, Any]) -> Any:
        """The program that keeps what the operation is about, if another one than Lamplighter does."""
        if operation.elsewhere is None:
            return None
        return self.host.outside_mail() if operation.subject == "mail" else self.host.outside_beads()

    async def _carried_out(self, operation: Operation[Q, A], ask: Q, ctx: Context) -> Any:
        store = self.host.store
        outside = self._outside(operation)
        if operation.elsewhere is not None and outside is not None:
            await self._permit(operation, ctx)
            done = await asyncio.to_thread(operation.elsewhere, outside, ask, ctx)
            if operation.recorded is not None:
                await store.transact(operation.recorded, done, ctx)
            return done
        match operation.kind:
            case Kind.READ:
                return await store.read(judged, operation, ask, ctx)
            case Kind.TRANSACTION:
                return await store.transact(judged, operation, ask, ctx)
            case Kind.EFFECT:
                await self._begin(operation, ask, ctx)
                return await operation.run(self.host, await self._meant(operation, ask), ctx)
            case Kind.STREAM:
                await self._permit(operation, ctx)
                return operation.run(self.host, await self._meant(operation, ask), ctx)

    async def _meant(self, operation: Operation[Q, A], ask: Q) -> Q:
        return await self.host.store.read(resolved, ask) if operation.names else ask

    async def _begin(self, operation: Operation[Q, A], ask: Q, ctx: Context) -> None:
        """Judge an effect, and note what a person changes. While the database is away the log notes it instead."""
        if not is_change(operation, ask, ctx):
            await self._permit(operation, ctx)
            return
        try:
            await self.host.store.transact(begin_effect, operation, ask, ctx)
        except StoreUnavailable as error:
            if not admit(ctx.actor, operation.verb):
                raise
            log.get().warning("audit.missed", operation=operation.name, actor=ctx.actor.name, error=error.message)

    async def still_may(self, operation: Operation[Any, Any], actor: Actor) -> None:
        """For what goes on for long: raises what beginning it now would raise, such as TokenVoid."""
        await self._permit(operation, Context(actor, self.clock.now(), self.ids))

    async def _permit(self, operation: Operation[Any, Any], ctx: Context) -> None:
        if not admit(ctx.actor, operation.verb):
            await self.host.store.read(permit, operation.verb, ctx)

    async def _patiently(self, attempt: Callable[[], Awaitable[R]], *, repeatable: bool) -> R:
        until = self.clock.monotonic() + self.wait.total_seconds()
        tries = 0
        while not self.stopping.is_set() and self.clock.monotonic() < until:
            try:
                return await attempt()
            except StoreUnavailable as error:
                again = repeatable if isinstance(error, CommitUnknown) else error.passing
                if not again:
                    raise
            await self.clock.wait(self.stopping, at_most=doubling(tries, first=FIRST_PAUSE, most=LONGEST_PAUSE))
            tries += 1
        return await attempt()
