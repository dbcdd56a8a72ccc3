"""A socket to Slack: messages in, acknowledgements out; one whose other end gives no sign of life is closed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.util import find_spec

from lamplighter.kit.errors import Unavailable
from lamplighter.ports.slack import LEAVE

LARGEST = 1 << 20
PING_S, PONG_S = 15.0, 15.0
"""How often the other end is asked for a sign of life, and how long it may take to give it."""


def can_listen() -> bool:
    """Whether what sockets need is installed, by the extra `slack`."""
    return find_spec("wsproto") is not None


@dataclass(frozen=True)
class SlackDial:
    ping: float = PING_S
    pong: float = PONG_S

    async def __call__(self, url: str, hear: Callable[[str], Awaitable[str | None]]) -> None:
        import httpx2.websockets

        closed = httpx2.websockets.HTTPXWSException
        ended: Exception | None = None
        try:
            async with (
                httpx2.AsyncClient(timeout=10.0) as client,
                client.websocket(
                    url,
                    max_message_size_bytes=LARGEST,
                    keepalive_ping_interval_seconds=self.ping,
                    keepalive_ping_timeout_seconds=self.pong,
                ) as session,
            ):
                try:  # inside, because whatever leaves the block comes out of it as a group of errors
                    while (answer := await hear(await session.receive_text())) != LEAVE:
                        if answer is not None:
                            await session.send_text(answer)
                except closed as error:
                    ended = error
        except (
            httpx2.HTTPError,
            httpx2.InvalidURL,
            httpx2.websockets.HTTPXWSException,
            OSError,
            ExceptionGroup,
        ) as error:
            ended = ended or error
        if ended is not None:
            raise Unavailable(f"The socket to Slack is closed: {type(ended).__name__}.") from ended
