"""What people, programs and agents can do to beads."""

from collections.abc import Mapping
from dataclasses import dataclass

from lamplighter.domain.access import Verb
from lamplighter.domain.beads.model import BeadChange, BeadStatus, NewBead
from lamplighter.domain.city.names import bead_prefix
from lamplighter.kit.shapes import given
from lamplighter.services.beads import changes
from lamplighter.services.beads.queries import ID, version
from lamplighter.services.beads.views import BeadView, view
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Need, transaction
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.ports.beads import BeadStore


@dataclass(frozen=True)
class CreateBead:
    """Write down a unit of work."""

    title: str = given("One line.")
    description: str = given("All that is known.", default="")
    type: str = given("task when left out.", default="task")
    labels: tuple[str, ...] = given("Such as pool:coder.", default=())
    assignee: str | None = given("Who is to do it.", default=None)
    parent: str | None = given(ID, default=None, names="bead")
    needs: tuple[str, ...] = given("Beads that must be closed first.", default=())
    rig: str | None = given("The rig it belongs to.", default=None)
    metadata: Mapping[str, str] = given("Further texts by name.", default={})


@dataclass(frozen=True)
class ClaimBead:
    """Take a bead; of many claimants one wins."""

    bead: str = given(ID, key="id", names="bead")
    assignee: str | None = given("For whom; yourself when left out.", default=None)


@dataclass(frozen=True)
class UpdateBead:
    """Change what is named; empty text clears an assignee or a parent. Closing goes by bead_close."""

    bead: str = given(ID, key="id", names="bead")
    title: str | None = given("One line.", default=None)
    description: str | None = given("All that is known.", default=None)
    status: BeadStatus | None = given("Its status.", default=None)
    type: str | None = given("Its type.", default=None)
    assignee: str | None = given("Whose it is.", default=None)
    parent: str | None = given(ID, default=None, names="bead")
    add_labels: tuple[str, ...] = given("Labels to add.", default=())
    remove_labels: tuple[str, ...] = given("Labels to take away.", default=())
    add_needs: tuple[str, ...] = given("Beads it shall wait for.", default=())
    remove_needs: tuple[str, ...] = given("Beads it need not wait for.", default=())
    metadata: Mapping[str, str | None] = given("Texts to set by name.", default={})


@dataclass(frozen=True)
class CloseBead:
    """Say that a bead is done; may be repeated."""

    bead: str = given(ID, key="id", names="bead")


def create_bead(tx: Tx, ask: CreateBead, ctx: Context) -> BeadView:
    """Raises BeadNotFound for an unknown parent or need, NotFound for an unknown rig."""
    return view(changes.create(tx, _new(ask, ctx), prefix=prefix_for(ask.rig, ctx), ctx=ctx))


def claim_bead(tx: Tx, ask: ClaimBead, ctx: Context) -> BeadView:
    return view(changes.claim(tx, ask.bead, ask.assignee or ctx.actor.name, ctx=ctx))


def update_bead(tx: Tx, ask: UpdateBead, ctx: Context) -> BeadView:
    return view(changes.change(tx, ask.bead, _change(ask), ctx=ctx))


def close_bead(tx: Tx, ask: CloseBead, ctx: Context) -> BeadView:
    return view(changes.close(tx, ask.bead, ctx=ctx))


def prefix_for(rig: str | None, ctx: Context) -> str:
    """The prefix of ids of new beads: that of the rig, or of the rig in which the actor works. Raises NotFound."""
    return bead_prefix(ctx.city, rig or ctx.actor.rig)


def _new(ask: CreateBead, ctx: Context) -> NewBead:
    return NewBead(
        title=ask.title,
        type=ask.type,
        labels=tuple(ask.labels),
        assignee=ask.assignee,
        sender=None if ctx.surface == "cli" else ctx.actor.name,
        parent=ask.parent,
        needs=tuple(dict.fromkeys(ask.needs)),
        description=ask.description,
        metadata=ask.metadata,
    )


def _change(ask: UpdateBead) -> BeadChange:
    return BeadChange(
        title=ask.title,
        description=ask.description,
        assignee=ask.assignee,
        parent=ask.parent,
        status=ask.status,
        type=ask.type,
        add_labels=ask.add_labels,
        remove_labels=ask.remove_labels,
        add_needs=ask.add_needs,
        remove_needs=ask.remove_needs,
        metadata=ask.metadata,
    )


# ── in a store of another program ─────────────────────────────────────────────────────────────────────────────────


def _create_outside(beads: "BeadStore", ask: CreateBead, ctx: Context) -> BeadView:
    return view(beads.create(_new(ask, ctx), rig=ask.rig))


def _claim_outside(beads: "BeadStore", ask: ClaimBead, ctx: Context) -> BeadView:
    return view(beads.claim(ask.bead, ask.assignee or ctx.actor.name))


def _update_outside(beads: "BeadStore", ask: UpdateBead, _ctx: Context) -> BeadView:
    return view(beads.change(ask.bead, _change(ask)))


def _close_outside(beads: "BeadStore", ask: CloseBead, _ctx: Context) -> BeadView:
    return view(beads.close(ask.bead))


CREATE = transaction(
    "bead.create", Verb.WRITE_BEADS, CreateBead, BeadView, create_bead,
    needs=Need.CONFIG, elsewhere=_create_outside, patient=True, tool="bead_create",
    http=Http("POST", "/beads", status=201, location="/beads/{id}"),
)  # fmt: skip
CLAIM = transaction(
    "bead.claim", Verb.WRITE_BEADS, ClaimBead, BeadView, claim_bead,
    elsewhere=_claim_outside, patient=True, repeatable=True, tool="bead_claim",
    http=Http("POST", "/beads/{bead}/claim"),
)  # fmt: skip
UPDATE = transaction(
    "bead.update", Verb.WRITE_BEADS, UpdateBead, BeadView, update_bead,
    elsewhere=_update_outside, patient=True, tool="bead_update", http=Http("PATCH", "/beads/{bead}"), version=version,
)  # fmt: skip
CLOSE = transaction(
    "bead.close", Verb.WRITE_BEADS, CloseBead, BeadView, close_bead,
    elsewhere=_close_outside, patient=True, repeatable=True, tool="bead_close",
    http=Http("POST", "/beads/{bead}/close"),
)  # fmt: skip
