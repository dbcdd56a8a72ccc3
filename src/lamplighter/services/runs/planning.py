"""Plans that wait for a person: approved, a run carries them out; amended, one plans again; rejected, that was all."""

from collections.abc import Callable, Mapping

from lamplighter.domain.automations.model import Automation
from lamplighter.domain.city.model import City, Configuration
from lamplighter.domain.city.run_plan import CannotRun, RunPlan, run_plan
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.runs.model import Run, RunState, said
from lamplighter.kit.errors import Conflict
from lamplighter.services import configurations
from lamplighter.services.context import Context
from lamplighter.services.inbox.needs import PLAN
from lamplighter.services.runs import budgets, continuing, people
from lamplighter.services.runs.continuing import AlreadyAnswered, Said, checked, continue_run
from lamplighter.services.runs.ending import FALLBACK_TAKEN, snapshots_of
from lamplighter.store.tx import Tx

APPROVED = "Your plan is approved. Carry it out now."
AMENDED = "Your plan is not approved as it is. Make it anew, with this in mind:"
REJECTED = "rejected"


class NoPlanWaits(Conflict):
    def __init__(self, run: Run) -> None:
        why = f" ({run.reason})" if run.reason else ""
        super().__init__(
            f"Run {run.id} {said(run.state)}{why}; no plan of it waits for approval.",
            hint=f"`lamp run show {run.id}` tells more.",
        )


def plans(row: Run, automation: Automation) -> bool:
    """Whether the run only plans, because a person is to approve what it means to do."""
    return automation.policies.approve is not None and row.approved is None


def chosen(tx: Tx, row: Run) -> Configuration | None:
    """The configuration that the run works with; None if it has none. Raises CannotRun if that is gone."""
    if row.configuration is None:
        return None
    found = configurations.known(tx).get(row.configuration)
    if found is None:
        raise CannotRun("missing_configuration", f"Configuration `{row.configuration}` is gone.")
    return found


def plan_of(
    city: City,
    row: Run,
    chosen: Configuration | None,
    installed: Callable[[str, Mapping[str, str]], bool],
    *,
    instead: bool = False,
) -> RunPlan:
    """How the run is carried out, with the fallback `instead` of what is named first. Searches PATH for programs.

    Raises CannotRun.
    """
    automation = snapshots_of(row)
    if automation.session is not None and row.continues is None:
        raise CannotRun(
            "session_missing",
            f"There is no conversation of `{automation.session}` any more, into which this run was to speak.",
            hint="Name another `session` in the automation, or leave it out.",
        )
    env = {} if chosen is None else chosen.env
    return run_plan(
        city,
        automation,
        chosen,
        lambda command: installed(command, env),
        instead=instead or (row.in_force or {}).get("fallback") == FALLBACK_TAKEN,
        plans=plans(row, automation),
    )


def approve(tx: Tx, run: str, text: str, *, ctx: Context) -> Run:
    """Make the run that carries out the plan of this one; `text` is what it is told besides.

    Raises RunUnknown, NoPlanWaits, AlreadyAnswered, BudgetUsedUp, UsageError.
    """
    said = f"{APPROVED}\n\n{checked(text)}" if text.strip() else APPROVED
    before = _waiting(tx, run)
    budgets.must_be_left(tx, before, ctx.rules, ctx.now)
    told = [Said(said, ctx.actor.name, ctx.now)]
    reason = f"plan approved by {ctx.actor.name}"
    return continue_run(tx, before, told, reason=reason, ctx=ctx, how="approved", approved=True)


def amend(tx: Tx, run: str, text: str, *, ctx: Context) -> Run:
    """Make the run that plans again, told what is to be different.

    Raises RunUnknown, NoPlanWaits, AlreadyAnswered, BudgetUsedUp, UsageError.
    """
    said = f"{AMENDED}\n\n{checked(text)}"
    before = _waiting(tx, run)
    budgets.must_be_left(tx, before, ctx.rules, ctx.now)
    told = [Said(said, ctx.actor.name, ctx.now)]
    return continue_run(tx, before, told, reason=f"plan amended by {ctx.actor.name}", ctx=ctx, how="amended")


def reject(tx: Tx, run: str, reason: str, *, ctx: Context) -> Run:
    """Settle the run as failed: nobody carries out its plan, and what was kept for that is let go of.

    Raises RunUnknown, NoPlanWaits, AlreadyAnswered, UsageError.
    """
    comment = checked(reason) if reason.strip() else ""
    before = _waiting(tx, run)
    said = people.Resolution(RunState.FAILED, REJECTED, comment)
    after = people.resolve(tx, run, said, ctx=ctx, how="rejected")
    if before.node is not None:
        payload = {"session": run, "run": run, "node": before.node, "kept": True}
        tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.STOP_SESSION, payload, ctx.now))
    return after


def _waiting(tx: Tx, run: str) -> Run:
    found = continuing.locked(tx, run)
    if found.continued_by is not None:
        raise AlreadyAnswered(found)
    if found.state is not RunState.NEEDS_HUMAN or found.reason != PLAN:
        raise NoPlanWaits(found)
    return found
