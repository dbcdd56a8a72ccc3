"""The core of the client: what is sent, when it is sent again, and what the answers mean.

A call is a generator of steps (`Send`, `Pause`); a face carries them out and sends back what came.
"""

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from lamplighter.client.problems import CityUnreachable, NotACity, problem_in
from lamplighter.client.routes import KEY, Asked, answered, asked, next_page
from lamplighter.kit.backoff import doubling
from lamplighter.kit.errors import LampError
from lamplighter.kit.records import changed
from lamplighter.services.operation import Operation

A = TypeVar("A")
R = TypeVar("R")

TOO_MANY = 429
LONGEST_PAUSE = timedelta(seconds=10)
NO_KEY = "KeyNotTaken"
"""The title of the problem where beads or mail live in another program's store, which knows no keys."""


@dataclass(frozen=True)
class Retries:
    """A request that may be repeated is sent at most `most` times more, and never later than `within` seconds."""

    most: int = 3
    first: timedelta = timedelta(milliseconds=200)
    within: timedelta = timedelta(seconds=30)


@dataclass(frozen=True)
class Send:
    asked: Asked


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Reply:
    status: int
    media_type: str
    retry_after: str | None
    body: bytes

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300


Came = Reply | CityUnreachable | None
Steps = Generator[Send | Pause, Came, R]


@dataclass(frozen=True)
class Core:
    """`url` is the city's address; `now` is a clock that only goes forward, `chance` a number in [0, 1)."""

    url: str
    retries: Retries
    now: Callable[[], float]
    chance: Callable[[], float]
    new_key: Callable[[], str]

    def call(self, operation: Operation[Any, A], ask: Any, key: str | None = None) -> Steps[A]:
        """Raises what the operation raises in the city, and CityUnreachable, NotACity."""
        body = yield from self._json(operation, asked(operation, ask, key=key or self.new_key()))
        return answered(operation, body)

    def page(self, operation: Operation[Any, A], one: Asked) -> Steps[tuple[A, Asked | None]]:
        """A page of a list, and the request for the next one."""
        body = yield from self._json(operation, one)
        return answered(operation, body), next_page(operation, one, body)

    def _json(self, operation: Operation[Any, Any], one: Asked) -> Steps[Any]:
        try:
            reply = yield from self._repeated(one)
        except LampError as error:
            if operation.elsewhere is None or type(error).__name__ != NO_KEY:
                raise
            without = {name: value for name, value in one.headers.items() if name != KEY}
            reply = yield from self._repeated(changed(one, headers=without, repeats=operation.repeatable))
        try:
            return json.loads(reply.body)
        except ValueError:
            raise NotACity(self.url, f"its answer to {one.method} {one.path} is not JSON") from None

    def _repeated(self, one: Asked) -> Steps[Reply]:
        began, tries = self.now(), 0
        while True:
            came = yield Send(one)
            if isinstance(came, Reply) and came.succeeded:
                return came
            error, pause, again = self._judged(one, came, tries)
            late = self.now() + pause - began > self.retries.within.total_seconds()
            if not again or late or tries >= self.retries.most:
                raise error
            yield Pause(pause)
            tries += 1

    def _judged(self, one: Asked, came: Came, tries: int) -> tuple[LampError, float, bool]:
        """The error, how many seconds to wait, and whether to ask again."""
        pause = doubling(tries, first=self.retries.first, most=LONGEST_PAUSE, chance=self.chance()).total_seconds()
        if isinstance(came, Reply):
            error = problem_in(came.status, came.media_type, came.body, self.url)
            undone = came.status == TOO_MANY  # it was refused before it was looked at
            again = undone or (one.repeats and came.status in (502, 503, 504))
            return error, max(pause, _seconds(came.retry_after)), again
        assert came is not None, "a face answers every request"  # noqa: S101
        return came, pause, came.passing and (one.repeats or not came.reached)


def _seconds(header: str | None) -> float:
    return float(header) if header is not None and header.isascii() and header.isdecimal() and len(header) < 6 else 0.0
