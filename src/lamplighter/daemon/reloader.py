"""A changed configuration: read whole, checked whole, and swapped in between two phases; else the old one stays."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import assert_never

from lamplighter.domain.acts import Act
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.reload import Refused, Same, Swap, judge
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError
from lamplighter.ports.config_record import ConfigRecord
from lamplighter.store.tx import Store

ACTOR = "controller"
TOPIC = "config"


@dataclass
class Reloader:
    """`touch` says that a file may have changed; this phase's next tick looks. `error` is why the old one stays."""

    current: LoadedCity
    load: Callable[[], LoadedCity]
    apply: Callable[[LoadedCity], Awaitable[None]]
    store: Store
    clock: Clock
    error: str | None = None
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
        """Put on record what the city starts with; `problem` is why that is not what the files say."""
        if problem is None:
            await self._accepted(self.current)
        else:
            await self._reject(problem, readable=False)

    async def tick(self) -> None:
        if not self._touched:
            return
        self._touched = False
        waiting, self._waiting = self._waiting, []
        try:
            await self._look()
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
        verdict = judge(self.current, new)
        match verdict:
            case Same():
                self.error = None
                await self._accepted(new)
            case Refused(why):
                await self._reject(why, readable=True)
            case Swap(changed):
                await self.apply(new)
                self.current, self.error = new, None
                await self._accepted(new)
                log.get().info("config.reloaded", revision=new.revision[:12], changed=list(changed))
                await self._tell("config.reloaded", {"revision": new.revision, "changed": list(changed)})
            case _:
                assert_never(verdict)

    async def _accepted(self, new: LoadedCity) -> None:
        if self.record is not None:
            await asyncio.to_thread(self.record.accepted, new)

    async def _reject(self, why: str, *, readable: bool) -> None:
        if self.record is not None:
            await asyncio.to_thread(self.record.rejected, why, readable=readable)
        if why == self.error:
            return  # told already; an editor may save the same mistake many times
        self.error = why
        log.get().warning("config.rejected", reason=why)
        await self._tell("config.rejected", {"reason": why}, message=why)

    async def _tell(self, event_type: str, payload: dict[str, object], message: str | None = None) -> None:
        act = Act(ACTOR, self.clock.now())
        fact = act.event(event_type, subject=self.current.city.name, message=message, payload=payload)
        await self.store.transact(lambda tx: tx.events.append(fact))
