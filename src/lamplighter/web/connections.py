"""The connections of the port: how many there may be, and which of them goes when another one comes.

A connection is a stranger's until it has shown a valid token. Agents of the city and strangers of the same machine come
from the same address, so it is the token that tells them apart.
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
    """Both in the order in which they came. `most_of_address` binds strangers of other machines."""

    most: int
    most_of_address: int = MOST_OF_ADDRESS
    strangers: dict[Connection, None] = field(default_factory=dict)
    trusted: dict[Connection, None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.strangers) + len(self.trusted)

    def add(self, new: Connection) -> bool:
        """Whether there is room for it, if need be that of another one."""
        if self._crowded(new.address):
            self._drop(self._oldest_of(new.address))
        if len(self) >= self.most and not self.make_room():
            return False
        self.strangers[new] = None
        return True

    def trust(self, one: Connection) -> None:
        """It has shown a valid token."""
        if one in self.strangers:
            del self.strangers[one]
            self.trusted[one] = None

    def remove(self, one: Connection) -> None:
        self.strangers.pop(one, None)
        self.trusted.pop(one, None)

    def make_room(self) -> bool:
        """Drop the oldest that waits for nothing; false where every one is a trusted one that is being answered."""
        return self._drop(self.next_to_go())

    def next_to_go(self) -> Connection | None:
        """The oldest stranger without a whole request, then any stranger, then the oldest idle one of the others."""
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
    """A quarter of the descriptors this process may have: the rest is for its agents, its store and its log."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(8, min(MOST, soft // SHARE_OF_DESCRIPTORS))


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
