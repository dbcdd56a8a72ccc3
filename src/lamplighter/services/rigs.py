"""Rigs: the project directories registered with a city."""

from dataclasses import dataclass
from pathlib import Path

from lamplighter.domain.access import Verb
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import given
from lamplighter.kit.threads import in_thread
from lamplighter.services.context import Context
from lamplighter.services.file_edits import recorded
from lamplighter.services.operation import EDIT_S, LOOK_S, Http, effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.ports.city_files import Edited
    from lamplighter.services.host import Host


@dataclass(frozen=True)
class RigView:
    name: str
    path: str
    prefix: str
    suspended: bool
    agents: int
    exists: bool


@dataclass(frozen=True)
class RigAddedView:
    name: str
    path: str
    prefix: str


@dataclass(frozen=True)
class RigSwitchedView:
    """`changed` is false if it was so already."""

    name: str
    suspended: bool
    changed: bool


@dataclass(frozen=True)
class ListRigs:
    """The rigs there are."""


@dataclass(frozen=True)
class AddRig:
    """Register the project directory PATH."""

    path: str = given("The directory, as an absolute path.", positional=True)
    name: str | None = given("Its name; the directory's name when left out.", default=None)
    prefix: str | None = given("Prefix of its beads; derived from the name when left out.", default=None)
    topology: str | None = given("A topology whose agents join the rig.", default=None)


@dataclass(frozen=True)
class SuspendRig:
    """Start none of its agents and fire none of its automations."""

    name: str = given("The rig.", positional=True, names="rig")


@dataclass(frozen=True)
class ResumeRig:
    """Lift its suspension."""

    name: str = given("The rig.", positional=True, names="rig")


async def list_rigs(host: "Host", _ask: ListRigs, _ctx: Context) -> list[RigView]:
    city = host.roster.city
    return [
        RigView(
            name=rig.name,
            path=str(city.rig_path(rig)),
            prefix=rig.prefix,
            suspended=rig.suspended,
            agents=sum(agent.dir == rig.name for agent in city.agents),
            exists=city.rig_path(rig).is_dir(),
        )
        for rig in city.rigs
    ]


class RigMissing(UsageError):
    def __init__(self, path: str) -> None:
        super().__init__(
            f"There is no directory `{path}` on the city's machine.", hint="Name a project directory by its whole path."
        )


async def add_rig(host: "Host", ask: AddRig, ctx: Context) -> RigAddedView:
    """Raises RigMissing, Conflict if the name or the directory is taken, ConfigInvalid if the prefix is.

    Also NotEditable, CopiedCity.
    """
    from lamplighter.ports.city_files import NewRig

    path = Path(ask.path)
    if not path.is_absolute() or not await in_thread(path.is_dir):
        raise RigMissing(ask.path)
    added = await in_thread(host.files.add_rig, NewRig(path, ask.name, ask.prefix, ask.topology))
    await _changed(host, added.edited, "rig.added", added.rig.name, ctx)
    return RigAddedView(added.rig.name, added.rig.path, added.rig.prefix)


async def suspend_rig(host: "Host", ask: SuspendRig, ctx: Context) -> RigSwitchedView:
    """Raises NotFound, NotEditable, CopiedCity."""
    return await _switch(host, ask.name, ctx, suspended=True)


async def resume_rig(host: "Host", ask: ResumeRig, ctx: Context) -> RigSwitchedView:
    """Raises NotFound, NotEditable, CopiedCity."""
    return await _switch(host, ask.name, ctx, suspended=False)


async def _switch(host: "Host", name: str, ctx: Context, *, suspended: bool) -> RigSwitchedView:
    edited = await in_thread(host.files.suspend_rig, name, suspended=suspended)
    if edited.changed:
        await _changed(host, edited, "rig.suspended" if suspended else "rig.resumed", name, ctx)
    return RigSwitchedView(name, suspended, edited.changed)


async def _changed(host: "Host", edited: "Edited", event_type: str, subject: str, ctx: Context) -> None:
    fact = ctx.event(event_type, subject=subject)
    await recorded(host, edited, lambda tx: tx.events.append(fact))
    await host.reload()


LIST = effect("rig.list", Verb.READ, ListRigs, list[RigView], list_rigs, here_after=LOOK_S, http=Http("GET", "/rigs"))
ADD = effect("rig.add", Verb.WRITE_CITY, AddRig, RigAddedView, add_rig, http=Http("POST", "/rigs", status=201))
SUSPEND = effect(
    "rig.suspend",
    Verb.WRITE_CITY,
    SuspendRig,
    RigSwitchedView,
    suspend_rig,
    here_after=EDIT_S,
    http=Http("POST", "/rigs/{name}/suspend"),
)
RESUME = effect(
    "rig.resume",
    Verb.WRITE_CITY,
    ResumeRig,
    RigSwitchedView,
    resume_rig,
    here_after=EDIT_S,
    http=Http("POST", "/rigs/{name}/resume"),
)
