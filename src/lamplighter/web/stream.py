"""The stream of the API: what has changed, told to pages as topics, and to programs as events.

Pages get signals and nothing else: a signal names what a page shows, and the page asks for it again by its ordinary
route, where its rights are judged. Nothing is replayed; after a gap a page asks for everything it shows.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from lamplighter.domain.access import Actor
from lamplighter.domain.events import Event, EventFilter
from lamplighter.kit import log
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.shapes import to_json
from lamplighter.services import events
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.event_operations import LIST as LIST_EVENTS
from lamplighter.services.event_operations import TAIL, TailEvents
from lamplighter.services.host import Host
from lamplighter.web.auth import actor_in
from lamplighter.web.held import called_off, while_held

PATH = "/api/v1/stream"
SURFACE = "api"
EVERYTHING = "*"
"""Told instead of topics when some may have been missed: the page asks for all it shows."""
TOGETHER = timedelta(milliseconds=250)
"""Changes within this time are told together."""
ALIVE = timedelta(seconds=15)
"""A comment is sent after so long without a signal, so that both sides notice a dead connection."""
REST = timedelta(seconds=2)
MOST_TOPICS = 64
MOST_PAGES = 200
WAKES = {
    "inbox": "inbox",
    "runs": "runs",
    "agents": "agents",
    "beads": "beads",
    "automations": "automations",
    "bulk": "bulk",
}
"""Wake-ups of the store and the topic that each is for a page."""
FAMILIES = {
    "run": {"runs"},
    "automation": {"automations", "runs", "inbox"},
    "agent": {"agents", "inbox"},
    "bead": {"beads"},
    "convoy": {"beads"},
    "inbox": {"inbox"},
    "bulk": {"bulk"},
    "delivery": {"deliveries"},
    "connection": {"deliveries"},
    "node": {"nodes"},
    "owner": {"nodes"},
    "controller": {"nodes", "city"},
    "city": {"city", "automations"},
    "config": {"city", "automations", "agents"},
    "rig": {"agents", "city"},
}
"""The first word of an event's type, and the topics of the pages that show what it is about."""


def topics_of(event: Event) -> set[str]:
    """`events` for every event, those of its family, and the run, automation or agent it is about."""
    family = event.type.partition(".")[0]
    found = {"events"} | FAMILIES.get(family, set())
    if event.run is not None:
        found |= {"runs", f"run:{event.run}"}
    if family in {"automation", "agent"} and event.subject:
        found.add(f"{family}:{event.subject}")
    return found


@dataclass(eq=False)
class Listener:
    """A page that is told; the topics that wait for it are a set, so a slow one costs little and loses nothing."""

    waiting: set[str] = field(default_factory=set)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, topics: set[str]) -> None:
        self.waiting |= topics
        if EVERYTHING in self.waiting or len(self.waiting) > MOST_TOPICS:
            self.waiting = {EVERYTHING}
        self.news.set()

    def take(self) -> set[str]:
        taken, self.waiting = self.waiting, set()
        self.news.clear()
        return taken


@dataclass
class Signals:
    """Listens to the store once for all pages, and not at all while there is none."""

    host: Host
    stopping: asyncio.Event
    _listeners: set[Listener] = field(default_factory=set)
    _work: list[asyncio.Task[None]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._listeners)

    def join(self) -> Listener:
        listener = Listener()
        self._listeners.add(listener)
        if not self._work:
            self._work = [asyncio.create_task(self._events(), name="signals of events")]
            self._work += [asyncio.create_task(self._wakes(*pair), name="signals") for pair in WAKES.items()]
        return listener

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners:
            for task in self._work:
                task.cancel()
            self._work = []

    def tell(self, topics: set[str]) -> None:
        for listener in self._listeners:
            listener.tell(topics)

    async def _wakes(self, wake: str, topic: str) -> None:
        news = self.host.wakes.subscribe(wake)
        try:
            while not self.stopping.is_set():
                await news.wait()
                news.clear()
                self.tell({topic})
        finally:
            self.host.wakes.unsubscribe(news)

    async def _events(self) -> None:
        """Tell the topics of each event; where the log cannot be read, everything, once it can be again."""
        while not self.stopping.is_set():
            try:
                position = await self.host.store.read(events.head)
                async with aclosing(self.host.event_tail.follow(EventFilter(after=position))) as found:
                    async for event in found:
                        self.tell(topics_of(event))
            except LampError as error:
                log.get().warning("web.stream_interrupted", error=error.message)
                self.tell({EVERYTHING})
                await self.host.clock.wait(self.stopping, at_most=REST)
                self.tell({EVERYTHING})


def route(city: CityOperations) -> Route:
    signals: list[Signals] = []

    async def endpoint(request: Request) -> Response:
        actor = actor_in(request.scope)
        city.admit(LIST_EVENTS, actor)
        content = request.query_params.get("content", "topics")
        if content == "events":
            after = _after(request)
            return _stream(while_held(_told_events(city, actor, after), city, LIST_EVENTS, actor))
        if content != "topics":
            raise UsageError(f"There is no content `{content[:50]}`.", hint="Ask for `topics` or `events`.")
        if not signals:
            signals.append(Signals(city.host, city.stopping))
        if len(signals[0]) >= MOST_PAGES:
            return Response(status_code=503, headers={"Retry-After": "30"})
        return _stream(while_held(_told_topics(city, signals[0]), city, LIST_EVENTS, actor))

    return Route(PATH, endpoint, methods=["GET"])


def _after(request: Request) -> int | None:
    """`Last-Event-ID` counts before `after`: a browser that connects again sends it by itself."""
    text = request.headers.get("last-event-id") or request.query_params.get("after")
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise UsageError(f"`{text[:50]}` is not the number of an event.", hint="Leave `after` out to begin now.")
    return int(text)


def _stream(parts: AsyncIterator[bytes]) -> Response:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(parts, media_type="text/event-stream", headers=headers)


async def _told_topics(city: CityOperations, signals: Signals) -> AsyncGenerator[bytes, None]:
    listener = signals.join()
    stopping = asyncio.create_task(city.stopping.wait())
    stopping.add_done_callback(lambda _done: listener.news.set())
    try:
        yield b"retry: 2000\nevent: hello\ndata: {}\n\n"
        while not city.stopping.is_set():
            if not await city.clock.wait(listener.news, at_most=ALIVE):
                yield b": alive\n\n"
                continue
            await city.clock.wait(city.stopping, at_most=TOGETHER)
            topics = sorted(listener.take())
            if topics:
                yield f"event: changed\ndata: {json.dumps({'topics': topics})}\n\n".encode()
    finally:
        stopping.cancel()
        signals.leave(listener)


async def _told_events(city: CityOperations, actor: Actor, after: int | None) -> AsyncGenerator[bytes, None]:
    found: Any = await city.do(TAIL, TailEvents(after=after), actor, surface=SURFACE)
    yield b"retry: 2000\n\n"
    async with aclosing(found) as tail:
        following = aiter(tail)
        coming = asyncio.ensure_future(anext(following))
        stopping = asyncio.create_task(city.stopping.wait())
        try:
            while not city.stopping.is_set():
                done, _ = await asyncio.wait(
                    {coming, stopping}, timeout=ALIVE.total_seconds(), return_when=asyncio.FIRST_COMPLETED
                )
                if coming in done:
                    event = coming.result()
                    coming = asyncio.ensure_future(anext(following))
                    yield f"id: {event.seq}\nevent: {event.type}\ndata: {json.dumps(to_json(event))}\n\n".encode()
                elif not done:
                    yield b": alive\n\n"
        finally:
            await called_off(stopping, coming)
