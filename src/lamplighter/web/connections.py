"""The connections of the port: how many there may be, and which one is dropped to make room for a new one.

A connection counts as a stranger's until it has shown a valid token. The city's agents and strangers on the same
machine have the same address, so only the token tells them apart.
"""

import resource
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Protocol

MOST = 512
MOST_OF_ADDRESS = 64
SHARE_OF_DESCRIPTORS = 4


class Connection(Protocol):
    address: str

    @property
    def busy(self) -> bool:
        """A whole request was received and is being answered."""
        ...

    def drop(self, reason: str) -> None: ...


@dataclass
class Connections:
    """`strangers` are in the order in which they connected, `trusted` in the order in which they showed their token.

    `most_of_address` limits the strangers of one address, except loopback.
    """

    most: int
    most_of_address: int = MOST_OF_ADDRESS
    strangers: dict[Connection, None] = field(default_factory=dict)
    trusted: dict[Connection, None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.strangers) + len(self.trusted)

    def add(self, new: Connection) -> bool:
        """Add a connection, dropping another one if needed; False if there is no room."""
        if self._crowded(new.address):
            self._drop(self._oldest_of(new.address))
        if len(self) >= self.most and not self.make_room():
            return False
        self.strangers[new] = None
        return True

    def replace(self, old: Connection, new: Connection) -> None:
        """`new` has the place of `old`, which became it."""
        self.remove(old)
        self.strangers[new] = None

    def trust(self, one: Connection) -> None:
        """Called when the connection has shown a valid token."""
        if one in self.strangers:
            del self.strangers[one]
            self.trusted[one] = None

    def remove(self, one: Connection) -> None:
        self.strangers.pop(one, None)
        self.trusted.pop(one, None)

    def make_room(self) -> bool:
        """Drop the connection that `next_to_go` names; False if all are trusted and being answered."""
        return self._drop(self.next_to_go())

    def next_to_go(self) -> Connection | None:
        """The oldest stranger without a whole request; else the oldest stranger; else the first idle trusted one."""
        idle = (one for one in self.strangers if not one.busy)
        resting = (one for one in self.trusted if not one.busy)
        return next(idle, None) or next(iter(self.strangers), None) or next(resting, None)

    def _drop(self, one: Connection | None) -> bool:
        if one is None:
            return False
        self.remove(one)
        one.drop("crowded_out")
        return True

    def _crowded(self, address: str) -> bool:
        if len(self.strangers) < self.most_of_address or _is_loopback(address):
            return False
        return sum(one.address == address for one in self.strangers) >= self.most_of_address

    def _oldest_of(self, address: str) -> Connection | None:
        return next((one for one in self.strangers if one.address == address), None)


def most_connections() -> int:
    """A quarter of the descriptors this process may open, from 8 to MOST; the rest is for agents, store and log."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(8, min(MOST, soft // SHARE_OF_DESCRIPTORS))


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
