"""Keeps the inbox true: the sweep opens what was left out, counts the runs of items, and settles what is over."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.ticks import Phase
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.ids import IdSource
from lamplighter.services.context import Context, acting
from lamplighter.services.inbox import telling
from lamplighter.services.inbox.needs import TOPIC, refused
from lamplighter.services.inbox.settling import of_accepted
from lamplighter.services.inbox.sweep import REBUILD, SWEEP, Pass, Swept
from lamplighter.services.inbox.telling import Telling
from lamplighter.store.tx import Store, Tx

ACTOR = "controller"
SWEEP_EVERY = timedelta(seconds=60)
TELL_EVERY = timedelta(seconds=1)
PAGES_A_TICK = 50


@dataclass
class InboxKeeper:
    """`config_problem` is None where this process does not know the files of the city."""

    store: Store
    clock: Clock
    ids: IdSource
    active: ActiveConfig
    config_problem: Callable[[], tuple[str, str | None]] | None = None
    """Returns the city's name, and why the configuration of its files is not in force; None if it is."""
    _rebuilt: bool = False

    def phases(self) -> list[Phase]:
        """People are told at once of what opened or is over, and of the rest by the sweep."""
        return [
            Phase("inbox", self.sweep, at_most_every=SWEEP_EVERY),
            Phase("notices", self.tell, topics=(TOPIC,), at_most_every=TELL_EVERY),
        ]

    async def tell(self) -> int:
        """Queue the notices of what opened or is over, and of what the quiet hours held back; returns of how many."""
        rules = Telling.of(self.active.city, self.active.rules.zone)
        looked_at = 0
        for _ in range(PAGES_A_TICK):
            count = await self.store.transact(telling.tell, rules, ctx=self._context())
            looked_at += count
            if count < telling.AT_ONCE:
                break
        return looked_at

    async def sweep(self) -> Swept:
        """One pass; the first one of a process also looks for runs that no item stands for."""
        opened = settled = 0
        for one in SWEEP if self._rebuilt else REBUILD:
            done = await self._paged(one)
            opened, settled = opened + done.opened, settled + done.settled
        await self._look_at_config()
        declared = self.active.city.notifications.every
        await self.store.transact(telling.forget_destinations, declared, ctx=self._context())
        self._rebuilt = True
        if opened or settled:
            log.get().info("inbox.swept", opened=opened, settled=settled)
        return Swept(opened, settled)

    async def _paged(self, one: Pass) -> Swept:
        opened = settled = 0
        after = ""
        for _ in range(PAGES_A_TICK):
            done = await self.store.transact(one, after, ctx=self._context())
            opened, settled = opened + done.opened, settled + done.settled
            if done.last is None:
                break
            after = done.last
        return Swept(opened, settled)

    async def _look_at_config(self) -> None:
        if self.config_problem is None:
            return
        city, problem = self.config_problem()
        if problem is None:
            await self.store.transact(lambda tx: of_accepted(tx, ctx=self._context()))
        else:
            await self.store.transact(self._open_config, city, problem)

    def _open_config(self, tx: Tx, city: str, problem: str) -> None:
        """Unless a person dismissed it: a refusal is told when it happens, and opens an item then."""
        ctx = self._context()
        need = refused(city, problem, ctx.now)
        if tx.inbox.settled_until(need.fingerprint) is None:
            tx.inbox.open(need.item(ctx.ids.make("inb"), ctx.now))

    def _context(self) -> Context:
        return acting(ACTOR, self.clock.now(), self.ids)
