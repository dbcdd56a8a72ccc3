"""Sends notices from the outbox, each through the ledger of side effects: once, or its doubt is on record.

Every destination has places of its own. A notice that finds none is put off, without waiting in a place of the outbox,
so that a destination which hangs delays its own notices and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.under_way import UnderWay
from lamplighter.domain.city.sections import Destination
from lamplighter.domain.delivery.effects import Answer, Effect
from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.inbox.notices import Notice, NoticeState, link_of
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.ports.messenger import Gone, Message, Messenger, NotTaken
from lamplighter.services import effects, outbox, session_ends
from lamplighter.services.context import Context, acting
from lamplighter.services.inbox import telling
from lamplighter.services.inbox.telling import Telling
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.tx import Store


@dataclass(frozen=True)
class NoticeSender:
    store: Store
    clock: Clock
    ids: IdSource
    active: ActiveConfig
    messenger: Messenger
    actor: str
    under_way: UnderWay = field(default_factory=UnderWay)

    async def stop(self) -> None:
        await self.under_way.stop()

    async def send(self, item: Item) -> None:
        notice = await self.store.read(lambda tx: tx.notices.get(item.payload["notice"]))
        if notice is None or notice.state is not NoticeState.PENDING:
            await self.store.transact(outbox.done, item, self.clock.now())
            return
        destination = self.active.city.notifications.named(notice.destination)
        if destination is None:
            why = f"There is no destination {notice.destination} any more."
            await self.store.transact(telling.not_sent, item, notice, why, permanent=True, ctx=self._context())
            return
        disabled = await self.store.read(lambda tx: tx.disabled_destinations.get(destination.name))
        if disabled is not None and disabled.target == telling.target_of(destination):
            why = f"{disabled.why} `lamp notify test {destination.name}` tries it again."
            await self.store.transact(telling.not_sent, item, notice, why, permanent=True, ctx=self._context())
            return
        wait = self.under_way.must_wait(destination.name, self.active.city.workers.notify)
        if wait is not None:
            await self._later(item, wait)
            return
        try:
            if not await self.under_way.done(destination.name, self._once(destination, notice)):
                await self._later(item, timedelta(0))
                return
        except StoreUnavailable:
            raise
        except LampError as error:
            await self._not_sent(item, destination, notice, error)
            return
        crash_point(CrashPoint.NOTICE_AFTER_SEND)
        await self.store.transact(telling.sent, item, notice, ctx=self._context())

    async def _not_sent(self, item: Item, destination: Destination, notice: Notice, error: LampError) -> None:
        wait, ctx = _told_to_wait(error), self._context()
        if wait is not None:
            await self._later(item, wait)
        elif isinstance(error, effects.Refused) and isinstance(error.__cause__, Gone):
            target = telling.target_of(destination)
            await self.store.transact(telling.gone, item, notice, error.message, target, ctx=ctx)
        else:
            await self.store.transact(telling.not_sent, item, notice, error.message, permanent=False, ctx=ctx)

    async def _later(self, item: Item, wait: timedelta) -> None:
        """No attempt is counted: it is not the notice that failed."""
        now = self.clock.now()
        await self.store.transact(outbox.later, item, now + wait, now)

    async def tell_success(self, item: Item) -> None:
        """Queue the notices of a run's success, where they are asked for."""
        run = await self.store.read(lambda tx: tx.runs.get(item.payload["run"]))
        if run is None:
            await self.store.transact(outbox.done, item, self.clock.now())
            return
        rules = Telling.of(self.active.city, self.active.rules.zone)
        await self.store.transact(telling.tell_success, item, run, rules, ctx=self._context())

    async def tell_session(self, item: Item) -> None:
        """Queue a notice for each who wants to know that a session ended."""
        rules = Telling.of(self.active.city, self.active.rules.zone)
        await self.store.transact(session_ends.dispatch, item, rules, ctx=self._context())

    async def _once(self, destination: Destination, notice: Notice) -> None:
        """Raises what the destination's answer was, if it did not take the notice."""
        city = self.active.city
        link = link_of(city.api.public_url, notice.body)
        message = Message(notice.id, notice.what.value, notice.created_at, city.name, notice.body, link)

        async def send(_effect: Effect) -> Mapping[str, Any]:
            crash_point(CrashPoint.NOTICE_BEFORE_SEND)
            try:
                return await self.messenger.send(destination, message)
            except NotTaken as error:
                raise effects.Refused(error.message, hint=error.hint) from error

        async def look(effect: Effect) -> Answer:
            return await self.messenger.look(destination, message, effect.intended_at)

        request = {"notice": notice.id, "body": dict(notice.body)}
        await effects.Ledger(self.store, self.clock).once(
            telling.effect_of(notice), telling.EFFECT, request, run=None, send=send, look=look
        )

    def _context(self) -> Context:
        return acting(self.actor, self.clock.now(), self.ids)


def _told_to_wait(error: LampError) -> timedelta | None:
    """How long the destination wants to be left alone; None if it said nothing of the kind."""
    cause = error.__cause__ if isinstance(error, effects.Refused) else error
    return cause.retry_after if isinstance(cause, NotTaken) else None
