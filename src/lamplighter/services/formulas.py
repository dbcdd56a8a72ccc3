"""Formulas: listed, shown and cooked into wisps in one transaction; old closed wisps are deleted with their steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lamplighter.domain.access import Verb
from lamplighter.domain.beads.formulas import Formula, FormulaInvalid, Plan, Step, Variable, plan
from lamplighter.domain.beads.model import Bead
from lamplighter.kit.shapes import given
from lamplighter.kit.threads import in_thread
from lamplighter.services.beads import changes as beads
from lamplighter.services.beads.operations import prefix_for
from lamplighter.services.beads.views import BeadView, view
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Need, effect
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.ports.formulas import FormulaFile
    from lamplighter.services.host import Host

COLLECT_AT_ONCE = 200


def cook(tx: Tx, plan: Plan, *, prefix: str, ctx: Context) -> Bead:
    """Create the root and every step; needs between steps become needs between their beads."""
    root = beads.create(tx, plan.root, prefix=prefix, ctx=ctx)
    made: dict[str, str] = {}
    for step in plan.in_order():
        needs = tuple(made[need] for need in step.needs)
        bead = beads.create(tx, replace(step, parent=root.id, needs=needs), prefix=prefix, ctx=ctx)
        made[step.ref or bead.id] = bead.id
    return root


def collect(tx: Tx, *, closed_before: datetime) -> int:
    """Delete a batch of ephemeral molecules closed before then, with their steps.

    Returns how many, so that the caller can repeat until none is left.
    """
    wisps = tx.beads.collectable(before=closed_before, limit=COLLECT_AT_ONCE)
    if wisps:
        tx.beads.delete_trees(wisps)
    return len(wisps)


# ── operations ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FormulaView:
    name: str
    description: str | None
    version: str | None
    variables: Sequence[Variable] = given("The variables of its texts.", key="vars")
    steps: Sequence[Step] = given("Its steps.")
    source: str = given("Its file.")


@dataclass(frozen=True)
class FormulaListed(FormulaView):
    """Of a file that is wrong only the name, the source and the problem are known."""

    step_count: int | None = given("How many steps it has.")
    problem: str | None = given("What is wrong with the file.")


@dataclass(frozen=True)
class ListFormulas:
    """The formulas there are; a file that is wrong is listed with its problem."""

    rig: str | None = given("As this rig sees them.", default=None)


@dataclass(frozen=True)
class ShowFormula:
    """A formula's variables and steps."""

    name: str = given("Its name.", positional=True)
    rig: str | None = given("As this rig sees it.", default=None)


@dataclass(frozen=True)
class CookFormula:
    """Cook a formula: all its beads at once, or none."""

    name: str = given("Its name.", positional=True)
    title: str | None = given("The title of the root bead; the formula's name when left out.", default=None)
    variables: Mapping[str, str] = given("The values of its variables, by name.", key="vars", default={})
    parent: str | None = given("The bead whose child the root becomes.", default=None)
    labels: tuple[str, ...] = given("Labels of the root, such as `pool:coder`.", default=())
    rig: str | None = given("The rig it is cooked for.", default=None)


async def list_formulas(host: "Host", ask: ListFormulas, _ctx: Context) -> list[FormulaListed]:
    return [_listed(one) for one in host.formulas.every(ask.rig)]


async def show_formula(host: "Host", ask: ShowFormula, _ctx: Context) -> FormulaView:
    """Raises NotFound, FormulaInvalid."""
    found = host.formulas.read(ask.name, ask.rig)
    return FormulaView(found.name, found.description, found.version, found.variables, found.steps, found.source)


async def cook_formula(host: "Host", ask: CookFormula, ctx: Context) -> BeadView:
    """The root bead. Raises NotFound, FormulaInvalid, and UsageError for variables that do not fit."""
    made = plan(host.formulas.read(ask.name, ask.rig), title=ask.title, values=ask.variables)
    made = replace(made, root=replace(made.root, parent=ask.parent, labels=ask.labels))
    outside = host.outside_beads()
    if outside is None:
        return view(await host.store.transact(cook, made, prefix=prefix_for(ask.rig, ctx), ctx=ctx))
    return view(await in_thread(outside.cook, made, rig=ask.rig))


def _listed(file: "FormulaFile") -> FormulaListed:
    match file.formula:
        case Formula() as one:
            return FormulaListed(
                file.name, one.description, one.version, one.variables, one.steps, one.source, len(one.steps), None
            )
        case FormulaInvalid() as error:
            return FormulaListed(file.name, None, None, (), (), file.source, None, "; ".join(error.problems))


LIST = effect(
    "formula.list",
    Verb.READ,
    ListFormulas,
    list[FormulaListed],
    list_formulas,
    here=True,
    http=Http("GET", "/formulas"),
)
SHOW = effect(
    "formula.show", Verb.READ, ShowFormula, FormulaView, show_formula, here=True, http=Http("GET", "/formulas/{name}")
)
COOK = effect(
    "formula.cook",
    Verb.WRITE_BEADS,
    CookFormula,
    BeadView,
    cook_formula,
    needs=Need.CONFIG,
    here=True,
    http=Http("POST", "/formulas/{name}/cook", status=201, location="/beads/{id}"),
)
