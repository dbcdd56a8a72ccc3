"""Reloads a changed configuration: built and stored as a whole, then swapped in between two phases, or not at all."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.reload import CONTROLLER_BINDS, Refused, Same, Swap, judge
from lamplighter.domain.events import NewEvent
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Fenced, LampError
from lamplighter.ports.config_record import ConfigRecord
from lamplighter.services.context import Context, acting
from lamplighter.services.inbox import needs, settling
from lamplighter.store.tx import Store, Tx

ACTOR = "controller"
TOPIC = "config"


@dataclass(frozen=True)
class Candidate:
    """A configuration that is ready to come into force.

    `write` runs in one transaction with the reload event; `swap` runs after the commit, does not wait and cannot fail
    half-way.
    """

    write: Callable[[Tx], object] | None
    swap: Callable[[], None]


class NotInForce(LampError):
    """The files are valid, but their configuration could not be brought into force just now."""

    def __init__(self, error: LampError) -> None:
        super().__init__(
            f"The new configuration could not be brought into force, and is tried again: {error.message}",
            hint=error.hint,
        )


@dataclass
class Reloader:
    """`touch` says that a file may have changed; the next tick loads the files. `error` is why the old one stays."""

    current: LoadedCity
    load: Callable[[], LoadedCity]
    build: Callable[[LoadedCity], Awaitable[Candidate]]
    store: Store
    clock: Clock
    error: str | None = None
    bound: Sequence[str] = CONTROLLER_BINDS
    tells: bool = True
    """Whether this process appends reload events; a worker process beside a controller does not."""
    record: ConfigRecord | None = None
    _touched: bool = False
    _waiting: list[asyncio.Future[str | None]] = field(default_factory=list)

    def touch(self) -> None:
        self._touched = True

    def asked(self) -> "asyncio.Future[str | None]":
        """Like `touch`, with the outcome: None when the configuration in force is the one on disk, else why not."""
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self.touch()
        return answer

    async def begin(self, problem: str | None) -> None:
        """Record what the city starts with; `problem`, already reported, is why it is not the configuration on disk."""
        if problem is None:
            await self._accepted(self.current)
        else:
            self.error = problem
            await self._rejected(problem, readable=False)
            await self._tell_rejected(problem)

    async def tick(self) -> None:
        if not self._touched:
            return
        self._touched = False
        waiting, self._waiting = self._waiting, []
        try:
            await self._look()
        except LampError:
            raise
        except OSError as error:
            self.touch()  # the machine's trouble passes: the next patrol tries again
            self.error = f"The files could not be read, which is tried again: {error}"
            raise
        except Exception as error:
            self.error = f"The files could not be looked at: {error!r}"  # a bug; must not be answered as success
            raise
        finally:
            for answer in waiting:
                if not answer.done():
                    answer.set_result(self.error)

    async def _look(self) -> None:
        try:
            new = await asyncio.to_thread(self.load)
        except LampError as error:
            await self._reject(error.message, readable=False)
            return
        verdict = judge(self.current, new, bound=self.bound)
        match verdict:
            case Same():
                if self.error is not None and self.tells:
                    await self.store.transact(settling.of_accepted, ctx=self._context())
                self.error = None
                await self._accepted(new)
            case Refused(why):
                await self._reject(why, readable=True)
            case Swap(changed):
                await self._bring_into_force(new, list(changed))
            case _:
                assert_never(verdict)

    async def _bring_into_force(self, new: LoadedCity, changed: list[str]) -> None:
        """Raises NotInForce after a failure that may pass; every part then keeps the old configuration."""
        try:
            candidate = await self.build(new)
            payload: dict[str, object] = {"revision": new.revision, "changed": changed}
            await self.store.transact(self._write, candidate, self._fact("config.reloaded", payload))
        except Fenced:
            raise
        except LampError as error:
            self.touch()  # the next patrol tries again
            self.error = NotInForce(error).message
            raise NotInForce(error) from error
        candidate.swap()
        self.current, self.error = new, None
        log.get().info("config.reloaded", revision=new.revision[:12], changed=changed)
        await self._accepted(new)

    def _write(self, tx: Tx, candidate: Candidate, fact: NewEvent) -> None:
        if candidate.write is not None:
            candidate.write(tx)
        if self.tells:
            tx.events.append(fact)
            settling.of_accepted(tx, ctx=self._context())

    async def _accepted(self, new: LoadedCity) -> None:
        if self.record is not None:
            await asyncio.to_thread(self.record.accepted, new)

    async def _rejected(self, why: str, *, readable: bool) -> None:
        if self.record is not None:
            await asyncio.to_thread(self.record.rejected, why, readable=readable)

    async def _reject(self, why: str, *, readable: bool) -> None:
        await self._rejected(why, readable=readable)
        if why == self.error:
            return  # reported already; an editor may save the same mistake many times
        self.error = why
        log.get().warning("config.rejected", reason=why)
        await self._tell_rejected(why)

    async def _tell_rejected(self, why: str) -> None:
        if self.tells:
            fact = self._fact("config.rejected", {"reason": why}, message=why)
            need = needs.refused(self.current.city.name, why, fact.at)

            def tell(tx: Tx) -> None:
                tx.events.append(fact)
                needs.open_item(tx, need, ctx=self._context())

            await self.store.transact(tell)

    def _context(self) -> Context:
        return acting(ACTOR, self.clock.now())

    def _fact(self, event_type: str, payload: dict[str, object], message: str | None = None) -> NewEvent:
        return self._context().event(event_type, subject=self.current.city.name, message=message, payload=payload)
