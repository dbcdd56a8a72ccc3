"""What can go wrong with a store, each with the sentence a person reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lamplighter.kit.errors import Conflict, Fenced, Kind, LampError, Unavailable


class StoreUnavailable(Unavailable):
    """The database cannot be reached or opened now; nothing was changed. `passing`: trying again later may help."""

    passing: bool = True


class StoreBusy(StoreUnavailable):
    def __init__(self, where: str) -> None:
        super().__init__(
            f"The database {where} is locked by another program.",
            hint="Close whatever holds it (a database shell, a backup); nothing was changed, so try again.",
        )


class StoreFull(StoreUnavailable):
    def __init__(self, where: str) -> None:
        super().__init__(
            f"The disk that holds the database {where} is full.",
            hint="Free some space; nothing that was acknowledged is lost, and work goes on by itself.",
        )


class StoreDisk(StoreUnavailable):
    def __init__(self, where: str, detail: str) -> None:
        super().__init__(
            f"The disk did not take or give the database {where}: {detail}.",
            hint="Check the disk and its free space; nothing that was acknowledged is lost.",
        )


class StoreReadOnly(StoreUnavailable):
    passing = False

    def __init__(self, where: str) -> None:
        super().__init__(
            f"The database {where} cannot be written: it, its directory or its disk is read-only.",
            hint="Check the owner and mode of the city's .gc directory and how its disk is mounted.",
        )


class ServerReadOnly(StoreReadOnly):
    passing = True

    def __init__(self, where: str) -> None:
        StoreUnavailable.__init__(
            self,
            f"The database {where} takes no writes now: it is read-only.",
            hint="Work goes on by itself once it takes them again; see default_transaction_read_only, and whether it "
            "is a standby.",
        )


class StoreRefused(StoreUnavailable):
    passing = False

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(
            f"The database {where} does not let this user work on it: {detail}.",
            hint="Grant its role the rights on the database's schema, or name another user in [store] url.",
        )


class StoreCorrupt(LampError):
    kind = Kind.UNAVAILABLE

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(
            f"The database {where} is damaged or is not a database ({detail}).",
            hint="Stop the city, move the file aside and restore a copy, or rescue it with sqlite3's .recover.",
        )


class StoreMissing(StoreUnavailable):
    passing = False

    def __init__(self, where: str) -> None:
        super().__init__(f"There is no database at {where}.", hint="Run `lamp init` in the city, or check [store] url.")


class StoreOld(StoreUnavailable):
    """The schema is older than this program."""

    passing = False

    def __init__(self, where: str, have: int, want: int) -> None:
        super().__init__(
            f"The database {where} has schema {have}; this program needs {want}.",
            hint="Run `lamp store migrate`, or start the city: its controller migrates.",
        )


class StoreNewer(Conflict):
    """The schema no longer serves a program as old as this one."""

    def __init__(self, where: str, have: int, oldest: int, ours: int) -> None:
        super().__init__(
            f"The database {where} was upgraded to schema {have}, which serves programs from schema {oldest}; "
            f"this program knows schema {ours}.",
            hint="Upgrade lamplighter here to the version that made the change.",
        )


@dataclass(frozen=True)
class Settled:
    """What became of a commit whose answer was lost: whether it took (None: it cannot be told), and what it gave."""

    took: bool | None
    value: Any = None


class CommitUnknown(StoreUnavailable):
    """Never repeated blindly. `settle`, where there is one, asks the database afterwards."""

    passing = False
    settle: "Callable[[], Settled] | None" = None

    def __init__(self, where: str) -> None:
        super().__init__(
            f"The connection to the database {where} broke during a commit; whether it took is unknown.",
            hint="Look before you repeat the command.",
        )


class ClockSkewed(StoreUnavailable):
    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"This machine's clock is {seconds:+.1f} s away from the database's; the most allowed is 2 s.",
            hint="Set the clock (enable time synchronisation); this process takes no work until then.",
        )


class ProofLost(Fenced):
    def __init__(self, owner: str) -> None:
        super().__init__(
            f"Process {owner} lost its proof of life; others may already hold its work.",
            hint="It stops working and starts anew under a new name.",
        )
