"""What `lamp doctor` says of automations: broken, off, gone quiet, and naming what is not there."""

import shlex
from collections.abc import Iterator, Sequence

from lamplighter.app.definitions import prepare
from lamplighter.app.missing_programs import missing_program
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.automations.model import Automation
from lamplighter.domain.automations.references import Known, unknown_names, unknown_pool
from lamplighter.domain.automations.shape import action_shape
from lamplighter.domain.city.sections import slack_destination
from lamplighter.domain.inbox.notices import NOBODY
from lamplighter.kit.counting import counted
from lamplighter.kit.records import changed, record
from lamplighter.services.automations import references, snapshots
from lamplighter.services.doctor import Finding, Level
from lamplighter.services.notices import DestinationView, Health, ListDestinations, list_destinations
from lamplighter.services.operation import Need
from lamplighter.store.automations import AutomationRow
from lamplighter.store.tx import Tx

MOST_AUTOMATIONS = 5000
MOST_TOLD = 10
MOST_NAMED = 5
CHECK = "automations"


@record
class _Seen:
    """The automations of the city, what they can name, and where people are told."""

    rows: Sequence[AutomationRow]
    known: Known
    destinations: Sequence[DestinationView]

    @property
    def readable(self) -> list[tuple[AutomationRow, Automation]]:
        return [(row, snapshots.of_row(row)) for row in self.rows if row.definition is not None]


def automations(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001  one shape for all checks
    ctx = changed(city.context(), configured=prepare(city, Need.DEFINITIONS))

    def look(tx: Tx) -> _Seen:
        told = list_destinations(tx, ListDestinations(), ctx)
        return _Seen(tx.automations.page(limit=MOST_AUTOMATIONS), references.known(tx, ctx), told)

    seen = city.store.read(look)
    found = [
        *_broken(seen),
        *_switched_off(seen),
        *_quiet(city, seen),
        *_unknown(seen),
        *_missing(city, seen),
        *_notices(city, seen),
    ]
    yield from found
    if not any(one.level is Level.PROBLEM for one in found):
        yield Finding(CHECK, Level.OK, f"{counted(len(seen.rows), 'automation')} can be read.")


def _told(found: list[Finding], more: str) -> Iterator[Finding]:
    """The first few, and how many there are besides."""
    yield from found[:MOST_TOLD]
    if len(found) > MOST_TOLD:
        yield Finding(CHECK, found[0].level, f"{len(found) - MOST_TOLD} more {more}.",
                      "`lamp automation list` shows all of them.")  # fmt: skip


def _broken(seen: _Seen) -> Iterator[Finding]:
    found = []
    for row in seen.rows:
        for problem in row.problems:
            where = f" ({row.path})" if row.path and row.path not in problem else ""
            found.append(Finding(CHECK, Level.PROBLEM, f"{row.scoped_name}{where}: {problem}", "Mend its file."))
    yield from _told(found, "problems of broken files")


def _switched_off(seen: _Seen) -> Iterator[Finding]:
    """Those that failures switched off are a problem; those that people switched off are only named."""
    failed = []
    by_people = []
    for row, _ in seen.readable:
        if row.enabled:
            continue
        if row.failures:
            name = shlex.quote(row.scoped_name)
            advice = (
                f"`lamp run list --automation {name}` tells why; `lamp automation enable {name}` when it is mended."
            )
            told = f"{row.scoped_name} is disabled: {row.disabled_reason or 'it failed too often'}."
            failed.append(Finding(CHECK, Level.PROBLEM, told, advice))
        else:
            by_people.append(row.scoped_name)
    yield from _told(failed, "are disabled by failures")
    if by_people:
        yield Finding(CHECK, Level.NOTE, f"Disabled and never fired: {_names(by_people)}.",
                      "`lamp automation enable NAME` lets one fire.")  # fmt: skip


def _quiet(city: OpenCity, seen: _Seen) -> Iterator[Finding]:
    """Those whose `quiet_after` has passed without a firing; once it is told, their row names no time any more."""
    now = city.clock.now()
    found = []
    for row, automation in seen.readable:
        after = automation.policies.quiet_after
        if after is None or not row.armed or row.suspended or row.paused:
            continue
        if row.quiet_at is None or row.quiet_at <= now:
            told = f"{row.scoped_name} is quiet: nothing has fired for longer than its `quiet_after`."
            advice = f"`lamp automation explain {shlex.quote(row.scoped_name)}` says why."
            found.append(Finding(CHECK, Level.PROBLEM, told, advice))
    yield from _told(found, "are quiet")


def _unknown(seen: _Seen) -> Iterator[Finding]:
    found = []
    pools = []
    for row, automation in seen.readable:
        for one in unknown_names(automation, seen.known):
            told = f"{row.scoped_name}: {one.key}: {one.message.rstrip('?')}."
            found.append(Finding(CHECK, Level.PROBLEM, told, _mend(row)))
        pool = unknown_pool(automation, seen.known)
        if pool is not None:
            told = f"{row.scoped_name}: {pool.key}: {pool.message.rstrip('?')}."
            pools.append(Finding(CHECK, Level.NOTE, told, _mend(row)))
    yield from _told(found, "names lead nowhere")
    yield from _told(pools, "pools are no agents")


def _missing(city: OpenCity, seen: _Seen) -> Iterator[Finding]:
    """Programs that this machine does not have; a worker elsewhere may have them."""
    found = []
    for row, automation in seen.readable:
        missing = missing_program(city, action_shape(automation.action)) if row.enabled else None
        if missing is not None:
            advice = "Install it, or name another program."
            found.append(Finding(CHECK, Level.NOTE, f"Runs of {row.scoped_name} fail here: {missing}", advice))
    yield from _told(found, "need programs that are not installed")


def _mend(row: AutomationRow) -> str:
    if row.path:
        return f"Mend {row.path}, or make what it names."
    return f"`lamp automation edit {shlex.quote(row.scoped_name)}`, or make what it names."


def _notices(city: OpenCity, seen: _Seen) -> Iterator[Finding]:
    """Destinations that take no notices, and those that automations name and city.toml does not declare."""
    for one in seen.destinations:
        if one.state in {Health.FAILING, Health.DISABLED}:
            told = (
                f"Destination {one.name} takes no notices: {(one.last_error or 'no reason is on record').rstrip('.')}."
            )
            name = shlex.quote(one.name)
            advice = f"`lamp notify test {name}` tries it again; `lamp notify log` shows what people were not told."
            yield Finding("notices", Level.PROBLEM, told, advice)
    known = {one.name for one in city.config.city.notifications.destinations} | NOBODY
    wanted: dict[str, list[str]] = {}
    for row, automation in seen.readable:
        notify = automation.policies.notify
        for name in (*notify.to, *filter(None, [notify.thread])):
            if name not in known and slack_destination(name) is None:
                wanted.setdefault(name, []).append(row.scoped_name)
    for name, users in wanted.items():
        told = f"There is no destination `{name}`, which {_names(users)} would tell."
        yield Finding(
            "notices", Level.PROBLEM, told, "Declare it in `[[notifications.destinations]]`, or mend `notify`."
        )


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
