"""Keeping a city: its backup, and its end."""

from lamplighter.domain.access import Verb
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.operation import effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host


@record
class BackUp:
    """Save the city in one file, while it may run: its database as it is at one moment, and its files.

    Never in it: the keys and tokens in `.gc`, the directories of rigs and other repositories, what runs and sessions
    left in `.gc`. Only its owner can read the file.
    """

    file: str | None = given(
        "Where to write it; a new file in the working directory, named after city and time, when left out.",
        default=None, positional=True, metavar="FILE",
    )  # fmt: skip
    artifacts: bool = given("Also the artifacts of runs, where they are kept in a directory.", default=False)


@record
class BackupView:
    file: str
    size: int
    """In bytes."""
    files: int
    """How many files of the city are in it, besides the database."""
    left_out: list[str]
    """Directories of the city that are not in it: rigs and other repositories."""
    artifacts: bool


async def back_up(host: "Host", ask: BackUp, _ctx: Context) -> BackupView:
    return await host.back_up(ask.file, artifacts=ask.artifacts)


BACK_UP = effect("city.backup", Verb.WRITE_CITY, BackUp, BackupView, back_up, command="backup", here=True)


@record
class Uninstall:
    """Stop the city, its agents and its service, and say what is left of it on this machine."""

    purge: bool = given("Also delete `.gc` with the database in it; asks first.", default=False)


@record
class UninstalledView:
    stopped: int | None
    """The process that ran the city; None if none did."""
    removed: list[str]
    """The files that were deleted."""
    by_hand: list[str]
    """Commands that this program could not run."""
    left: list[str]
    """What is still there, a sentence each."""


async def uninstall(host: "Host", ask: Uninstall, _ctx: Context) -> UninstalledView:
    return await host.uninstall(purge=ask.purge)


UNINSTALL = effect(
    "city.uninstall", Verb.WRITE_CITY, Uninstall, UninstalledView, uninstall, command="uninstall", here=True
)
