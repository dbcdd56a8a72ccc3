"""Wake-ups by city: collected while transactions run, passed on once they are committed."""

import threading
from collections.abc import Container, Iterable, Mapping
from typing import Protocol

from lamplighter.store.engine.datagrams import Datagrams


class Publisher(Protocol):
    """Takes the wake-ups of one city once their transactions are committed."""

    def publish(self, topics: Iterable[str]) -> None: ...


class CityTopics(dict[str, set[str]]):
    """The wake-ups that transactions have asked for, by city."""

    def add(self, city: str, topics: Iterable[str]) -> None:
        if topics:
            self.setdefault(city, set()).update(topics)


class CityWakes:
    """Who is told of the wake-ups of each city. Safe to call from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, tuple[Publisher, ...]] = {}

    def add(self, city: str, publisher: Publisher) -> None:
        with self._lock:
            self._told[city] = (*self._told.get(city, ()), publisher)

    def remove(self, city: str, publisher: Publisher) -> None:
        """Does nothing if it was removed before."""
        with self._lock:
            left = tuple(one for one in self._told.pop(city, ()) if one is not publisher)
            if left:
                self._told[city] = left

    def publish(self, topics: Mapping[str, Iterable[str]]) -> None:
        for city, wanted in topics.items():
            for publisher in self._told.get(city, ()):
                publisher.publish(wanted)

    def publish_to_all(self, topic: str) -> None:
        self.publish({city: {topic} for city in list(self._told)})


class WithDatagrams:
    """Wakes the tasks of this process and, by datagram, the other processes of a city."""

    def __init__(self, wakes: Publisher, datagrams: Datagrams) -> None:
        self._wakes = wakes
        self._datagrams = datagrams

    def publish(self, topics: Iterable[str]) -> None:
        self._wakes.publish(topics)
        own: Container[str] = getattr(self._wakes, "own", ())  # not all who publish listen, too
        self._datagrams.publish(topics, but=own)
