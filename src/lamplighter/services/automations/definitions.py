"""Synchronizing file definitions into the store: additions, changes, removals and errors in one transaction."""

from dataclasses import dataclass, field, replace

from lamplighter.domain.automations.layers import Defined, Definitions, FileProblem, Standing
from lamplighter.domain.automations.model import Automation, scoped_name
from lamplighter.services.automations import registering, snapshots
from lamplighter.services.context import Context
from lamplighter.services.inbox import needs, settling
from lamplighter.services.rules import Rules
from lamplighter.store.automations import AutomationRow
from lamplighter.store.tx import Tx

FILE = "file"


@dataclass
class Synced:
    """Scoped names by what happened to them; each of `problems` is a sentence that names its file."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    """Configurations of city.toml whose name belongs to one made by people."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.broken)


def sync(tx: Tx, definitions: Definitions, rules: Rules, *, ctx: Context) -> Synced:
    """Make the stored file definitions equal to `definitions`; automations created in the store are left alone.

    A broken file affects only its own automation.
    """
    tx.cities.lock()  # syncs run one after another
    report = Synced(problems=[str(problem) for problem in definitions.problems])
    known = {row.scoped_name: row for row in tx.automations.of_files()}
    for one in definitions.defined:
        _sync_one(tx, one, known.pop(one.automation.scoped_name, None), report, rules=rules, ctx=ctx)
    for name, problems in _broken(definitions).items():
        _mark_broken(tx, name, problems, known.pop(name, None), report, rules=rules, ctx=ctx)
    for row in known.values():
        tx.automations.delete(row.id)
        report.removed.append(row.scoped_name)
        _tell(tx, "automation.removed", row.scoped_name, row.path, ctx)
    registering.rezone(tx, rules, ctx.now)
    if tx.triggers.release_blocked() or report:
        tx.wake(registering.TOPIC)
    return report


def _sync_one(tx: Tx, one: Defined, row: AutomationRow | None, report: Synced, *, rules: Rules, ctx: Context) -> None:
    automation, left_out = one.automation, one.standing is Standing.SKIPPED
    name = automation.scoped_name
    if row is None:
        new = registering.new_row(automation, ctx.ids.make("aut"), by=ctx.actor.name, now=ctx.now, left_out=left_out)
        if not tx.automations.insert(new):
            report.problems.append(_taken(automation))
            return
        registering.save(tx, None, new, rules, ctx.now)
        report.added.append(name)
        _tell(tx, "automation.added", name, automation.path, ctx)
        return
    if row.definition == snapshots.written(automation) and row.left_out == left_out and not row.problems:
        return
    locked = tx.automations.lock(row.id) or row
    registering.save(tx, locked, registering.edited_row(locked, automation, ctx.now, left_out=left_out), rules, ctx.now)
    if locked.problems:
        settling.of_mended(tx, name, ctx=ctx)
    report.changed.append(name)
    _tell(tx, "automation.changed", name, automation.path, ctx)


def _broken(definitions: Definitions) -> dict[str, list[FileProblem]]:
    found: dict[str, list[FileProblem]] = {}
    for problem in definitions.problems:
        if problem.name is not None:
            found.setdefault(scoped_name(problem.name, problem.rig), []).append(problem)
    return found


def _mark_broken(  # noqa: PLR0913  as above
    tx: Tx,
    name: str,
    problems: list[FileProblem],
    row: AutomationRow | None,
    report: Synced,
    *,
    rules: Rules,
    ctx: Context,
) -> None:
    """List a broken file with its problems; it fires nothing, and its previous definition is not used."""
    told = tuple(str(problem) for problem in problems)
    report.broken.append(name)
    if row is not None and row.problems == told and row.definition is None:
        report.broken.remove(name)
        return
    if row is None:
        row = _empty_row(problems[0], ctx.ids.make("aut"), told, ctx)
        if not tx.automations.insert(row):
            return
    else:
        locked = tx.automations.lock(row.id) or row
        row = replace(locked, definition=None, problems=told, quiet_at=None, updated_at=ctx.now)
        registering.save(tx, locked, row, rules, ctx.now)
    need = needs.broken(row)
    if need is not None:
        needs.open_item(tx, need, ctx=ctx)
    payload = {"path": problems[0].path, "problems": list(told)}
    tx.events.append(ctx.event("automation.broken", subject=name, message=told[0][:300], payload=payload))


def _empty_row(problem: FileProblem, row_id: str, told: tuple[str, ...], ctx: Context) -> AutomationRow:
    name = problem.name or ""
    return AutomationRow(
        id=row_id,
        scoped_name=scoped_name(name, problem.rig),
        name=name,
        rig=problem.rig,
        source=FILE,
        path=problem.path,
        definition=None,
        problems=told,
        version=1,
        enabled=True,
        left_out=False,
        suspended=False,
        disabled_reason="",
        failures=0,
        armed_at=ctx.now,
        quiet_at=None,
        created_at=ctx.now,
        created_by=ctx.actor.name,
        updated_at=ctx.now,
    )


def _taken(automation: Automation) -> str:
    return f"{automation.path}: the name `{automation.scoped_name}` belongs to a stored automation; rename one of them"


def _tell(tx: Tx, event_type: str, name: str, path: str | None, ctx: Context) -> None:
    tx.events.append(ctx.event(event_type, subject=name, payload={"path": path, "source": FILE}))
