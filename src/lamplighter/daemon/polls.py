"""The loop that asks providers what happened, for connections that they cannot reach; one for a city."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lamplighter.daemon.ticks import Waker
from lamplighter.domain.connections import polling
from lamplighter.domain.connections.polling import MOST_PAGES, OVERLAP, PARTS, Polled
from lamplighter.domain.secrets import REFERENCE
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Fenced, LampError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.loop import every
from lamplighter.ports.polling import Fetched, PollSource
from lamplighter.ports.secrets import SecretSource
from lamplighter.services import polls
from lamplighter.services.context import acting
from lamplighter.store.polls import TOPIC, PollRow
from lamplighter.store.tx import Store

LATEST = timedelta(minutes=10)
"""The loop looks for new connections at least so often; a wake-up makes it sooner."""
AFTER_TROUBLE = timedelta(seconds=30)


class _Refused(Exception):
    def __init__(self, answer: polling.Refused) -> None:
        self.answer = answer


class _Gone(Exception):
    """The connection was deleted, or another process has asked meanwhile."""


@dataclass
class Polls:
    store: Store
    clock: Clock
    ids: IdSource
    source: PollSource
    secrets: SecretSource
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _next: datetime | None = None

    def listen(self, waker: Waker) -> None:
        waker.watch((TOPIC,), self.wake.set, self)

    async def loop(self) -> None:
        await every(self.until_next, self.tick, clock=self.clock, wake=self.wake)

    def until_next(self) -> timedelta:
        waits = [LATEST] if self._next is None else [LATEST, self._next - self.clock.now()]
        return max(min(waits), timedelta(0))

    async def tick(self) -> list[str]:
        """Ask for every connection that is due, one after another; returns their names."""
        asked = []
        try:
            for row in await self.store.read(polls.known):
                if row.next_at <= self.clock.now():
                    await self._round(row)
                    asked.append(row.connection)
            left = await self.store.read(polls.known)
            soonest = min((row.next_at for row in left), default=None)
            if soonest is not None and soonest <= self.clock.now():  # another process asks for it, as it seems
                soonest = self.clock.now() + AFTER_TROUBLE
            self._next = soonest
        except Fenced:
            raise
        except LampError as error:  # the database is away
            self._next = self.clock.now() + AFTER_TROUBLE
            log.get().warning("polls.failed", error=error.message)
        return asked

    async def _round(self, row: PollRow) -> None:
        """Ask for all parts; what each tells is kept before the next is asked for."""
        failures = int(row.state.get("failures", 0))
        try:
            token = await self._token(row)
            headers = await self._asked(row, token)
        except _Gone:
            return
        except _Refused as refused:
            await self._settle(row, refused.answer.again, refused.answer.why, failures + 1)
        except Fenced:
            raise
        except LampError as error:
            again = self.clock.now() + polling.backed_off(failures)
            await self._settle(row, again, f"{error.message} {error.hint}".strip(), failures + 1)
        else:
            await self._settle(row, polling.next_round(headers, self.clock.now()), "", 0)

    async def _settle(self, row: PollRow, again: datetime, problem: str, failures: int) -> None:
        if problem != row.problem:
            if problem:
                log.get().warning("poll.problem", connection=row.connection, problem=problem)
            else:
                log.get().info("poll.works", connection=row.connection)
        await self.store.transact(polls.settle, row.connection, again, problem, failures)

    async def _token(self, row: PollRow) -> str:
        """Raises SecretUnknown, SecretLocked, Unavailable."""
        if not row.token:
            return await self.source.default_token(row.url)
        return (await self.secrets.opened({"TOKEN": f"{REFERENCE}{row.token}"}))["TOKEN"]

    async def _asked(self, row: PollRow, token: str) -> Mapping[str, str]:
        """The headers that say most about limits: those of the events, with what is left after all parts."""
        told: dict[str, str] = {}
        for part in PARTS:
            row, headers = await self._part(row, part, token)
            told = {**headers, **{key: told[key] for key in ("x-poll-interval",) if key in told}}
        return told

    async def _part(self, row: PollRow, part: str, token: str) -> tuple[PollRow, Mapping[str, str]]:
        own: Mapping[str, Any] = row.state.get(part) or {}
        began = polling.read_time(row.state.get("began"))
        since = polling.read_time(own.get("since")) or began
        behind = None if since is None else max(since - OVERLAP, began or since)
        first = polling.address(row.url, row.repo, part, behind)
        answer = await self._fetch(row, first, token, str(own.get("etag", "")) if own.get("at") == first else "")
        if answer.status == 304:
            return row, answer.headers
        now = polling.server_time(answer.headers, self.clock.now())
        if began is None:  # the events are asked for first: what is there now has happened before
            seen = polling.seen_after(answer.items, ())
            after = {"began": polling.write_time(now), part: self._read(first, answer, seen=seen)}
            return await self._learn(row, after, []), answer.headers
        known = frozenset(own.get("seen", ()))
        items = [*answer.items]
        page, pages = answer, 1
        while not polling.is_last(part, page.items, behind or began, known) and pages < MOST_PAGES[part]:
            pages += 1
            page = await self._fetch(row, polling.address(row.url, row.repo, part, behind, pages), token, "")
            items += page.items
        if part == "events":
            polled = polling.of_events(items, row.repo, known)
            read = self._read(first, answer, seen=polling.seen_after(items, own.get("seen", ())))
        else:
            polled = polling.of_list(part, items, row.repo, behind or began)
            upto = polling.newest(items, since or began, now)
            read = self._read(first, answer, since=polling.write_time(upto))
        return await self._learn(row, {part: read}, polled), page.headers

    def _read(self, address: str, answer: Fetched, **more: object) -> dict[str, Any]:
        return {"at": address, "etag": answer.headers.get("etag", ""), **more}

    async def _fetch(self, row: PollRow, address: str, token: str, etag: str) -> Fetched:
        """Raises _Refused, Unavailable."""
        answer = await self.source.fetch(address, token, etag)
        failures = int(row.state.get("failures", 0))
        refused = polling.refused(answer.status, answer.headers, row.repo, failures, self.clock.now())
        if refused is not None:
            raise _Refused(refused)
        return answer

    async def _learn(self, row: PollRow, after: Mapping[str, Any], polled: Sequence[Polled]) -> PollRow:
        """Raises _Gone."""
        kept = [one for one in polled if polls.can_be_kept(one)]
        if len(kept) < len(polled):
            log.get().warning("poll.not_kept", connection=row.connection, count=len(polled) - len(kept))
        learned = polls.Learned(row.connection, row.state, {**row.state, **after}, kept)
        found = await self.store.transact(polls.learn, learned, acting(polls.ACTOR, self.clock.now(), self.ids))
        if found is None:
            raise _Gone
        return found
