"""Leases: at most one live holder; a version number keeps earlier holders from writing."""

from dataclasses import replace
from datetime import datetime, timedelta

from lamplighter.kit.errors import Conflict
from lamplighter.kit.records import record

LEASE = timedelta(minutes=5)


@record
class Lease:
    """`version` grows with every claim and never decreases; a holder may write only with the version it was given."""

    version: int = 0
    owner: str | None = None
    expires_at: datetime | None = None

    def live(self, now: datetime) -> bool:
        return self.owner is not None and self.expires_at is not None and self.expires_at > now


class LeaseHeld(Conflict):
    """The lease is live; try again after it ends."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(f"The lease is held by {lease.owner}.", hint="Leave the work to its holder.")
        self.lease = lease


class LeaseLost(Conflict):
    """The caller's version is not the current one, or the lease was revoked."""

    def __init__(self, held: int, current: Lease) -> None:
        super().__init__(
            f"Lease version {held} is no longer valid; the current one is {current.version}.",
            hint="Stop working on it; its new holder goes on.",
        )
        self.current = current


def claim(lease: Lease, owner: str, now: datetime, *, ttl: timedelta = LEASE) -> Lease:
    """Claim the lease. Raises LeaseHeld while it is live, even if `owner` holds it: two workers of one process must
    not share a lease.
    """
    if lease.live(now):
        raise LeaseHeld(lease)
    return Lease(lease.version + 1, owner, now + ttl)


def fence(lease: Lease, version: int) -> None:
    """Raises LeaseLost unless `version` is held. An expired lease still belongs to its holder until it is reclaimed."""
    if lease.owner is None or lease.version != version:
        raise LeaseLost(version, lease)


def renew(lease: Lease, version: int, now: datetime, *, ttl: timedelta = LEASE) -> Lease:
    """Extend the lease, never shorten it. Raises LeaseLost."""
    fence(lease, version)
    until = now + ttl
    return replace(lease, expires_at=max(until, lease.expires_at or until))


def release(lease: Lease, version: int) -> Lease:
    """Give up the lease. Raises LeaseLost."""
    fence(lease, version)
    return void(lease)


def void(lease: Lease) -> Lease:
    """Revoke the lease: its owner is known to be dead, or the work has ended."""
    return Lease(lease.version)
