"""A stream of a city as server-sent events: its items, its end, and how it goes on where a connection was cut."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, TypeVar

from lamplighter.client.calls import Core, Reply
from lamplighter.client.problems import CityUnreachable, NotACity, cut_off, problem_in, told_error
from lamplighter.client.routes import Asked, following, read
from lamplighter.kit.backoff import doubling
from lamplighter.kit.errors import LampError
from lamplighter.services.operation import Operation

A = TypeVar("A")

LONGEST_PAUSE = timedelta(seconds=5)
MEDIA_TYPE = "text/event-stream"


@dataclass
class Following(Generic[A]):
    """What was seen of one stream. A face hands it the bytes that come, and what cut them off."""

    core: Core
    operation: Operation[Any, A]
    ask: Any
    _over: bool = False
    _last: str | None = None
    _seen: int = 0
    _connected: bool = False
    _tries: int = 0
    _lost_at: float | None = None
    _lines: dict[str, str] = field(default_factory=dict)
    _rest: bytes = b""
    _began: float = 0.0

    def is_over(self) -> bool:
        return self._over

    def asked(self) -> Asked:
        """Raises NotOverHttp, UsageError."""
        self._lines, self._rest, self._began = {}, b"", self.core.now()
        return following(self.operation, self.ask, self._last)

    def take(self, chunk: bytes) -> Iterator[A]:
        """The items that end within these bytes. Raises what ended the stream in the city."""
        self._connected = True
        if self.core.now() - self._began > self.core.retries.within.total_seconds():
            self._tries, self._lost_at = 0, None  # this connection holds, whether items come or not
        *whole, self._rest = (self._rest + chunk).split(b"\n")  # texts may have other ends of lines in them
        for line in whole:
            if self._over:
                return
            event = self._event(line.decode(errors="replace").rstrip("\r"))
            match event.get("event"):
                case "end":
                    self._over = True
                case "problem":
                    raise told_error(self._json(event))
                case None if "data" in event:
                    yield self._item(event)

    def _event(self, line: str) -> dict[str, str]:
        """The lines of an event, at the empty line that ends it; else nothing."""
        if not line:
            event, self._lines = self._lines, {}
            return event
        key, _, value = line.partition(":")
        if key:  # else a comment, which shows that the city is there
            self._lines[key] = value.removeprefix(" ")
        return {}

    def _json(self, event: dict[str, str]) -> Any:
        try:
            return json.loads(event.get("data", ""))
        except ValueError:
            raise NotACity(self.core.url, "an event of its stream is not JSON") from None

    def _item(self, event: dict[str, str]) -> A:
        item = read(self.operation, self._json(event))
        self._last = event.get("id", self._last)
        self._seen += 1
        self._tries, self._lost_at = 0, None
        self._over = self._seen == getattr(self.ask, "count", None)
        return item

    def refused(self, reply: Reply) -> float:
        """An answer that is no stream: raises its error, or returns how many seconds to wait before asking again."""
        error = problem_in(reply.status, reply.media_type, reply.body, self.core.url)
        if reply.succeeded:
            raise NotACity(self.core.url, f"{reply.media_type or 'no type'} in place of a stream")
        if reply.status not in (429, 502, 503, 504):
            raise error
        return self._pause(error)

    def cut(self, error: CityUnreachable | None = None) -> float:
        """The lines ended before the stream did: returns how many seconds to wait. Raises CityUnreachable."""
        told = error or cut_off(self.core.url, done=False)
        if not told.passing:
            raise told
        return self._pause(told)

    def _pause(self, error: LampError) -> float:
        now = self.core.now()
        self._lost_at = now if self._lost_at is None else self._lost_at
        if not self._goes_on() or now - self._lost_at > self.core.retries.within.total_seconds():
            raise error
        if self._tries >= self.core.retries.most and not self._connected:
            raise error
        first, chance = self.core.retries.first, self.core.chance()
        pause = doubling(self._tries, first=first, most=LONGEST_PAUSE, chance=chance)
        self._tries += 1
        return pause.total_seconds()

    def _goes_on(self) -> bool:
        """Whether asking again leaves out nothing and repeats nothing."""
        if self._last is not None or not self._connected:
            return True
        http = self.operation.http
        page = None if http is None else http.page
        begins = page is None or getattr(self.ask, page.cursor) is not None
        return begins and self._seen == 0
