"""Wake-ups inside a process: who waits for which topic. A wake-up is a hint; whoever waits also polls."""

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

ALL = "*"


@dataclass
class Wakes:
    """Threads publish, tasks wait. Safe to call from any thread."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: list[tuple[frozenset[str], asyncio.Event, asyncio.AbstractEventLoop]] = field(default_factory=list)

    def subscribe(self, *topics: str) -> asyncio.Event:
        """An event that is set whenever one of `topics` is published. Must be called on the loop that waits."""
        event = asyncio.Event()
        with self._lock:
            self._waiting.append((frozenset(topics), event, asyncio.get_running_loop()))
        return event

    def unsubscribe(self, event: asyncio.Event) -> None:
        with self._lock:
            self._waiting = [entry for entry in self._waiting if entry[1] is not event]

    def publish(self, topics: Iterable[str]) -> None:
        wanted = set(topics)
        if not wanted:
            return
        with self._lock:
            hit = [(event, loop) for mine, event, loop in self._waiting if ALL in wanted or mine & wanted]
        for event, loop in hit:
            if event.is_set():
                continue  # already woken and not yet looked: a second call would only cost
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # the loop is closed: its waiter is gone with it
                self.unsubscribe(event)
