"""Suspending a whole city in city.toml, and resuming it."""

from collections.abc import Sequence
from dataclasses import dataclass

from lamplighter.domain.access import Verb
from lamplighter.kit.threads import in_thread
from lamplighter.services.automations import editing
from lamplighter.services.context import Context
from lamplighter.services.file_edits import recorded
from lamplighter.services.operation import EDIT_S, Http, effect
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host


@dataclass(frozen=True)
class SuspendedView:
    """`changed` is false if it was suspended already."""

    suspended: bool
    changed: bool


@dataclass(frozen=True)
class ResumedView:
    """`lifted` names what there was to lift: the pause, the suspension."""

    paused: bool
    suspended: bool
    lifted: Sequence[str]


@dataclass(frozen=True)
class SuspendCity:
    """Suspend the city in city.toml: nothing is started, nothing fires, what runs is stopped."""


@dataclass(frozen=True)
class ResumeCity:
    """Lift the city's pause and suspension, and say which."""


async def suspend_city(host: "Host", _ask: SuspendCity, ctx: Context) -> SuspendedView:
    """Raises NotEditable, CopiedCity."""
    edited = await in_thread(host.files.suspend_city, suspended=True)
    if edited.changed:
        fact = ctx.event("city.suspended", subject=host.roster.city.name)
        await recorded(host, edited, lambda tx: tx.events.append(fact))
        await host.reload()
    return SuspendedView(suspended=True, changed=edited.changed)


async def resume_city(host: "Host", _ask: ResumeCity, ctx: Context) -> ResumedView:
    """Lift suspension and pause, both or neither. Raises NotEditable, CopiedCity.

    The file is edited first, and put back if the store does not take the rest. With a broken city.toml the pause can
    still be lifted, provided that the configuration in force is not suspended.
    """
    edited = None
    if host.roster.city.workspace.suspended or host.config_problem is None:
        edited = await in_thread(host.files.suspend_city, suspended=False)
    resumed = edited is not None and edited.changed
    name = host.roster.city.name if resumed else None
    paused = await recorded(host, edited, lambda tx: _lift_pause(tx, ctx, name))
    if resumed:
        await host.reload()
    return ResumedView(False, False, [*(["pause"] if paused else []), *(["suspension"] if resumed else [])])


def _lift_pause(tx: Tx, ctx: Context, resumed: str | None) -> bool:
    """In the same transaction the event about a suspension that was lifted, under the city's name."""
    if resumed is not None:
        tx.events.append(ctx.event("city.resumed", subject=resumed))
    return editing.resume(tx, ctx=ctx)


SUSPEND = effect(
    "city.suspend",
    Verb.WRITE_CITY,
    SuspendCity,
    SuspendedView,
    suspend_city,
    command="suspend",
    here_after=EDIT_S,
    http=Http("POST", "/city/suspend"),
)
RESUME = effect(
    "city.resume",
    Verb.WRITE_CITY,
    ResumeCity,
    ResumedView,
    resume_city,
    command="resume",
    here_after=EDIT_S,
    http=Http("POST", "/city/resume"),
)
