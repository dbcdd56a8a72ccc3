"""A receiver of webhooks on this machine: keeps what it is sent, and answers as it is told."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lamplighter.testing.http_server import Quiet, served


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`status` is what it answers, with `says` as its body.

    0 closes the connection after the request was read, without an answer. `judge`, where there is one, chooses the
    status of each request.
    """

    url: str = ""
    status: int = 204
    says: bytes = b""
    judge: Callable[[Received], int] | None = None
    received: list[Received] = field(default_factory=list)
    came: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, count: int, *, within: float = 120.0) -> list[Received]:
        """Wait until so many requests have come. Raises TimeoutError."""
        with self.came:
            if not self.came.wait_for(lambda: len(self.received) >= count, within):
                raise TimeoutError(f"{len(self.received)} of {count} requests came")
            return list(self.received)


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(Quiet):
        def do_POST(self) -> None:  # noqa: N802  as the library has it
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            with receiver.came:
                sent = {name.lower(): value for name, value in self.headers.items()}
                got = Received(self.path, sent, body)
                receiver.received.append(got)
                status, says = receiver.judge(got) if receiver.judge else receiver.status, receiver.says
                receiver.came.notify_all()
            if status:
                self.send_response(status)
                self.send_header("content-length", str(len(says)))
                self.end_headers()
                self.wfile.write(says)
            else:
                self.close_connection = True

    with served(Handler) as receiver.url:
        yield receiver
