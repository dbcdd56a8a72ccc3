"""The client that waits for each answer."""

import time
from collections.abc import Iterator
from typing import Any, Self, TypeVar

import httpx2

from lamplighter.client.calls import Came, Pause, Retries, Send, Steps
from lamplighter.client.following import MEDIA_TYPE, Following
from lamplighter.client.routes import Asked, asked
from lamplighter.client.transport import failure, reply_of, request_of, stream_of, way_to
from lamplighter.services.operation import Operation
from lamplighter.services.table import find

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")


class Client:
    """A city at an address. Errors are those that a local city raises, and CityUnreachable and NotACity.

    What may be asked twice is asked again for a while if no answer comes; a change that the city's store alone keeps is
    asked under a key of its own each time, so that it is done once.
    """

    def __init__(self, url: str, token: str, *, retries: Retries = Retries()) -> None:  # noqa: B008  it never changes
        """Raises UsageError for an address or a token that cannot be one."""
        way = way_to(url, token, retries)
        self._core = way.core
        self._http = httpx2.Client(**way.options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    @property
    def url(self) -> str:
        return self._core.url

    def do(self, operation: Operation[Q, A], ask: Q, *, key: str | None = None) -> A:
        """Have an operation done. `key` is the idempotency key, where the caller itself asks again."""
        return self._driven(self._core.call(operation, ask, key))

    def call(self, name: str, /, **fields: Any) -> Any:
        """The same by the operation's name and the fields of its request: `call("run.cancel", run="last")`."""
        operation = find(name)
        return self.do(operation, operation.request(**fields))

    def each(self, operation: Operation[Q, list[A]], ask: Q) -> Iterator[A]:
        """Every item of a list, page by page."""
        page: Asked | None = asked(operation, ask)
        while page is not None:
            found, page = self._driven(self._core.page(operation, page))
            yield from found

    def follow(self, operation: Operation[Q, A], ask: Q) -> Iterator[A]:
        """Each item of a stream as it comes, until the stream ends."""
        stream = Following(self._core, operation, ask)
        while not stream.is_over():
            one = stream.asked()
            try:
                with self._http.stream(**stream_of(one)) as answer:
                    if answer.headers.get("content-type", "").startswith(MEDIA_TYPE):
                        for chunk in answer.iter_bytes():
                            yield from stream.take(chunk)
                            if stream.is_over():
                                return
                        pause = stream.cut()
                    else:
                        answer.read()
                        pause = stream.refused(reply_of(answer))
            except httpx2.HTTPError as error:
                pause = stream.cut(failure(error, one, self.url))
            time.sleep(pause)

    def _driven(self, steps: Steps[R]) -> R:
        came: Came = None
        try:
            while True:
                came = self._carried_out(steps.send(came))
        except StopIteration as done:
            found: R = done.value
            return found

    def _carried_out(self, step: Send | Pause) -> Came:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            return reply_of(self._http.request(**request_of(step.asked)))
        except httpx2.HTTPError as error:
            return failure(error, step.asked, self.url)
