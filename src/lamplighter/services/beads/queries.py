"""Reading beads: a list of them, those that can be taken, one with its children. It imports little, because agents
run these commands often.
"""

from dataclasses import dataclass

from lamplighter.domain.access import Verb
from lamplighter.domain.beads.model import BeadFilter, BeadNotFound, BeadStatus
from lamplighter.kit.shapes import given
from lamplighter.services.beads.views import BeadDetail, BeadView, detail, views
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, read
from lamplighter.services.versions import version_of
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.ports.beads import BeadStore
    from lamplighter.services.beads.operations import UpdateBead

ID = "The bead's id, such as sf-4k2."
MOST = 500
"""The longest list for a tool; commands may ask for more."""


@dataclass(frozen=True)
class ShowBead:
    """One bead with its children."""

    bead: str = given(ID, key="id", names="bead")


@dataclass(frozen=True)
class ListBeads:
    """Beads, newest first; every condition given must hold."""

    status: BeadStatus | None = given("Its status.", default=None)
    type: str | None = given("Its type.", default=None)
    label: str | None = given("A label it has.", default=None)
    assignee: str | None = given("Whose it is.", default=None)
    parent: str | None = given(ID, default=None, names="bead")
    limit: int = given("At most so many; 50 when left out.", default=50, least=1, most=MOST)


@dataclass(frozen=True)
class ReadyBeads:
    """Work that can be done now, oldest first."""

    label: str | None = given("A label it has.", default=None)
    assignee: str | None = given("Whose it is.", default=None)
    limit: int = given("At most so many.", default=50, least=1, most=MOST)


def show_bead(tx: Tx, ask: ShowBead, _ctx: Context) -> BeadDetail:
    """Raises BeadNotFound."""
    found = tx.beads.get(ask.bead)
    if found is None:
        raise BeadNotFound(ask.bead)
    return detail(found, tx.beads.children(ask.bead))


def list_beads(tx: Tx, ask: ListBeads, _ctx: Context) -> list[BeadView]:
    return views(tx.beads.matching(_filter(ask), limit=ask.limit))


def ready_beads(tx: Tx, ask: ReadyBeads, _ctx: Context) -> list[BeadView]:
    return views(tx.beads.ready(label=ask.label, assignee=ask.assignee, limit=ask.limit))


def _filter(ask: ListBeads) -> BeadFilter:
    return BeadFilter(ask.status, ask.type, ask.label, ask.assignee, ask.parent)


def version(tx: Tx, ask: "ShowBead | UpdateBead", *, lock: bool) -> str:
    """Raises BeadNotFound."""
    found = tx.beads.lock(ask.bead) if lock else tx.beads.get(ask.bead)
    if found is None:
        raise BeadNotFound(ask.bead)
    return version_of(found)


# ── in a store of another program ─────────────────────────────────────────────────────────────────────────────────


def _show_outside(beads: "BeadStore", ask: ShowBead, _ctx: Context) -> BeadDetail:
    return detail(beads.get(ask.bead), beads.children(ask.bead))


def _list_outside(beads: "BeadStore", ask: ListBeads, _ctx: Context) -> list[BeadView]:
    return views(beads.matching(_filter(ask), limit=ask.limit))


def _ready_outside(beads: "BeadStore", ask: ReadyBeads, _ctx: Context) -> list[BeadView]:
    return views(beads.ready(label=ask.label, assignee=ask.assignee, limit=ask.limit))


SHOW = read(
    "bead.show",
    Verb.READ,
    ShowBead,
    BeadDetail,
    show_bead,
    elsewhere=_show_outside,
    patient=True,
    tool="bead_get",
    http=Http("GET", "/beads/{bead}"),
    version=version,
)
LIST = read(
    "bead.list", Verb.READ, ListBeads, list[BeadView], list_beads,
    elsewhere=_list_outside, patient=True, tool="bead_list", http=Http("GET", "/beads"),
)  # fmt: skip
READY = read(
    "bead.ready", Verb.READ, ReadyBeads, list[BeadView], ready_beads,
    elsewhere=_ready_outside, patient=True, tool="bead_ready", http=Http("GET", "/beads/ready"),
)  # fmt: skip
