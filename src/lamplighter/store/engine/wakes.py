"""Wake-ups inside a process: which task waits for which topic. A wake-up is a hint; every waiter also polls."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

ALL = "*"


@dataclass
class Wakes:
    """Threads publish, tasks wait. Safe to call from any thread."""

    own: set[str] = field(default_factory=set)
    """The sockets by which other processes wake these tasks: what is published here need not be sent to them."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: list["_Waiter"] = field(default_factory=list)

    def subscribe(self, *topics: str) -> asyncio.Event:
        """An event that is set whenever one of `topics` is published. Must be called on the loop that waits."""
        event = asyncio.Event()
        self.watch(topics, event.set, event)
        return event

    def watch(self, topics: Iterable[str], call: Callable[[], None], token: object) -> None:
        """Have `call` called on this loop whenever one of `topics` is published; `token` names it to `unsubscribe`."""
        with self._lock:
            self._waiting.append(_Waiter(frozenset(topics), call, asyncio.get_running_loop(), token))

    def unsubscribe(self, token: object) -> None:
        with self._lock:
            self._waiting = [waiter for waiter in self._waiting if waiter.token is not token]

    def publish(self, topics: Iterable[str]) -> None:
        wanted = set(topics)
        if not wanted:
            return
        with self._lock:
            hit = [waiter for waiter in self._waiting if ALL in wanted or waiter.topics & wanted]
        for waiter in hit:
            if isinstance(waiter.token, asyncio.Event) and waiter.token.is_set():
                continue  # already woken, has not looked yet: a second call would change nothing
            try:
                waiter.loop.call_soon_threadsafe(waiter.call)
            except RuntimeError:  # the loop is closed: its waiter is gone with it
                self.unsubscribe(waiter.token)


@dataclass(frozen=True, slots=True)
class _Waiter:
    topics: frozenset[str]
    call: Callable[[], None]
    loop: asyncio.AbstractEventLoop
    token: object
