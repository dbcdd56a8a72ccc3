"""The errors of a store, each with the message and the hint that a person reads."""

from collections.abc import Callable
from typing import Any

from lamplighter.kit.errors import Conflict, Fenced, Kind, LampError, Unavailable, UsageError
from lamplighter.kit.records import record


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
            hint="Check the disk and its free space, and that nobody removed a file of the database.",
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


class PooledByTransaction(UsageError):
    def __init__(self, where: str) -> None:
        super().__init__(
            f"The database {where} is behind a pooler that gives each transaction another session.",
            hint="Proofs of life and wake-ups need a session of their own: let the pooler pool by session (PgBouncer: "
            "pool_mode = session), or name the server itself in [store] url.",
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
        super().__init__(
            f"There is no database at {where}.",
            hint="If it was deleted or moved, put it or a copy of it back; else check [store] url. `lamp init "
            "--new-database` begins with an empty one.",
        )


class StoreLost(StoreUnavailable):
    """A city that existed before has no database any more, or one that holds nothing of it."""

    passing = False

    def __init__(self, where: str, what: str) -> None:
        super().__init__(
            f"{what} {where}, though this city was made before: its database was deleted, moved or replaced.",
            hint="Put the file or a copy of it back. `lamp init --new-database` begins with an empty one: runs, beads "
            "and events of the old one are then gone.",
        )


class StoreSaved(StoreUnavailable):
    """The city's database was lost while the city ran, and a person has not yet decided how to go on."""

    passing = False

    def __init__(self, where: str, copy: str) -> None:
        super().__init__(
            f"The database {where} was lost while the city ran; what it held was saved as {copy}.",
            hint=f"To go on with that: move it to {where}, without the -wal and -shm that lie there. To go on with "
            "what is there now: delete the copy, or move it elsewhere.",
        )


class StoreGone(StoreUnavailable):
    """The database file was deleted, moved, replaced or overwritten while a program had it open."""

    passing = False

    def __init__(self, where: str, what: str) -> None:
        super().__init__(
            f"The database file {where} was {what} while it was in use; nothing is written any more.",
            hint="Stop the city, put the file back, or a copy of it and then without the -wal and -shm that lie there, "
            "and start it again. What was recorded since that copy is lost.",
        )


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


@record
class Settled:
    """What became of a commit whose answer was lost: whether it took (None: unknown), and the function's value."""

    took: bool | None
    value: Any = None


class CommitUnknown(StoreUnavailable):
    """The transaction must not be repeated blindly; `settle`, if set, asks the database whether it was committed."""

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


class NotTaken(Conflict):
    """A row of a copy was refused by the database it was copied to."""

    def __init__(self, where: str, table: str, detail: str) -> None:
        super().__init__(
            f"The database {where} did not take a row of the table `{table}`: {detail}.",
            hint="Nothing was changed there. See that no other process copies to it or works on it, and repeat.",
        )
