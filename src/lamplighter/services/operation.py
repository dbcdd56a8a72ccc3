"""An operation: something that can be asked of the product, declared once for all surfaces.

Each subject declares its operations beside the functions that carry them out; `services.table` names them all.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, Generic, TypeVar

from lamplighter.domain.access import OF_ORGANIZATION, Actor, RunOver, Verb, require
from lamplighter.kit.records import record
from lamplighter.kit.shapes import from_json
from lamplighter.services.context import Context
from lamplighter.services.resolving import names_of, resolved
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host

Q = TypeVar("Q")
A = TypeVar("A")


ROOT = "/api/v1"
"""Below it are the routes of all operations."""
CURSOR = "after"
"""The key under which every list takes the `next` of the page before."""
WITHOUT_BODY = frozenset({"GET", "DELETE"})
"""The methods of routes that take their arguments after the path."""
REPRESENTATION = "return=representation"
"""The preference (RFC 7240) by which a deletion is answered with what was deleted in place of 204."""

_MOVING = OF_ORGANIZATION | {Verb.MOVE_CITY}
"""What is judged and done in one organization: the city must not move to another one meanwhile."""

LOOK_S = 5.0
"""How many seconds a command waits for the daemon's answer before it looks at store and sessions itself."""
EDIT_S = 30.0
"""The same for edits of city.toml, which the daemon also brings into force."""


class Kind(StrEnum):
    """How an operation is carried out.

    `read` and `transaction` are plain functions of a transaction; an `effect` works on what lies outside the store, in
    the process that holds it; a `stream` goes on until whoever asked has enough.
    """

    READ = "read"
    TRANSACTION = "transaction"
    EFFECT = "effect"
    STREAM = "stream"


class Need(StrEnum):
    """What must be at hand before an operation begins: the configuration in force, or also the definitions of the
    city's files in the store.
    """

    CONFIG = "config"
    DEFINITIONS = "definitions"


@record
class Page:
    """How a list goes on: the field of the request that takes the end of the page before, and the key of each item that
    is such an end. For a stream: the field that takes the last item seen, and the key that tells an item apart.
    """

    cursor: str
    key: str
    ends: bool = False
    """Without a cursor it is the end of the list that is shown, not its beginning."""


@record
class Http:
    """The route of an operation below `/api/v1`; `{name}` in a path is a field of the request.

    `location` is the path of what was made, with fields of the answer.
    """

    method: str
    path: str
    status: int = 200
    location: str | None = None
    page: Page | None = None


@record
class Operation(Generic[Q, A]):
    """`name` is subject and verb, such as `run.cancel`; the request's docstring says in a sentence what it does."""

    name: str
    kind: Kind
    verb: Verb
    request: type[Q]
    answer: Any
    """The type of the answer; a list of views is `list[View]`."""
    run: Callable[..., Any]
    needs: Need | None = None
    command: str | None = None
    """The words of its command after `lamp`; None for subject and verb."""
    tool: str | None = None
    """The name of its tool for agents; None if agents do not need it."""
    http: Http | None = None
    settle: Callable[[Any], Any] | None = None
    """Makes the answer from what `run` returned, after the commit; may raise an error that the commit must outlive."""
    repeatable: bool = False
    """The same request may be repeated when it is not known whether it was committed."""
    elsewhere: Callable[[Any, Any, Context], Any] | None = None
    """Carries it out where beads, or for the subject `mail` messages, live in a store of another program: its first
    argument is that store."""
    recorded: Callable[[Tx, Any, Context], None] | None = None
    """Records in the city's store what `elsewhere` did; called with its answer."""
    form: type[Any] | None = None
    """The fields of the request as surfaces show them, where `reads` makes the request itself."""
    reads: Callable[[Mapping[str, Any]], Any] | None = None
    """Makes the request from JSON, where its checks say more than types can."""
    writes: Callable[[Any], Mapping[str, Any]] | None = None
    """The JSON that `reads` makes the request from; None where that is the request's own fields."""
    version: "Callable[..., str] | None" = None
    """`version(tx, ask, lock=…)` tells the version of what the request names; with `lock` it stays so until the commit.
    Raises NotFound."""
    is_secret: bool = False
    """Its answer has a secret that is shown once, and so is kept nowhere."""
    changes: Callable[[Any], bool] | None = None
    """Whether a request changes anything; None where every one does whose verb is not to read."""
    within: float | None = None
    """How many seconds an effect may take by its own limits; None for as many as is usual."""
    patient: bool = False
    """Agents call it during their work: its command waits for an unreachable database for a while."""
    here: bool = False
    """An effect that a command always carries out itself, such as one that looks at the daemon from outside."""
    here_after: float | None = None
    """An effect that a command carries out itself if the daemon has not answered after so many seconds; None where
    only the daemon may do it, or where doing it twice would do harm."""

    @property
    def names(self) -> bool:
        """Whether a field of the request names something by an id, for which people type many forms."""
        return bool(names_of(self.request))

    @property
    def subject(self) -> str:
        return self.name.partition(".")[0]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of its command after `lamp`."""
        subject, _, verb = self.name.partition(".")
        return tuple(self.command.split()) if self.command is not None else (subject, verb)

    @property
    def fields_of(self) -> type[Any]:
        """The dataclass whose fields are the request's arguments on every surface."""
        return self.form or self.request

    def asked(self, data: Mapping[str, Any], *, strict: bool = True) -> Q:
        """The request from parsed JSON. Raises UsageError. `strict` refuses unknown keys; `reads` has its own rule."""
        made: Q = from_json(self.request, data, strict=strict, filled=True) if self.reads is None else self.reads(data)
        return made

    @property
    def summary(self) -> str:
        """What it does, in a sentence."""
        return " ".join((self.fields_of.__doc__ or "").strip().split("\n\n")[0].split())


def read(name: str, verb: Verb, request: type[Q], answer: type[A], run: Callable[[Tx, Q, Context], A],
         **more: Any) -> Operation[Q, A]:  # fmt: skip
    return Operation(name, Kind.READ, verb, request, answer, run, **more)


def transaction(name: str, verb: Verb, request: type[Q], answer: type[A], run: Callable[[Tx, Q, Context], A],
                **more: Any) -> Operation[Q, A]:  # fmt: skip
    return Operation(name, Kind.TRANSACTION, verb, request, answer, run, **more)


def effect(name: str, verb: Verb, request: type[Q], answer: type[A], run: "Callable[[Host, Q, Context], Awaitable[A]]",
           **more: Any) -> Operation[Q, A]:  # fmt: skip
    return Operation(name, Kind.EFFECT, verb, request, answer, run, **more)


def stream(name: str, verb: Verb, request: type[Q], answer: type[A],
           run: "Callable[[Host, Q, Context], AsyncIterator[A]]", **more: Any) -> Operation[Q, A]:  # fmt: skip
    return Operation(name, Kind.STREAM, verb, request, answer, run, **more)


def judged(tx: Tx, operation: Operation[Q, A], ask: Q, ctx: Context) -> Any:
    """Carry out a read or a transaction if the actor may. Raises Forbidden, RunOver, TokenVoid, and what it raises.

    What a person changes is on record in the same transaction.
    """
    permit(tx, operation.verb, ctx, locks=operation.kind is Kind.TRANSACTION)
    meant = meant_by(tx, operation, ask)
    concerned = _concerned(tx, operation)
    done = operation.run(tx, meant, ctx)
    if is_audited(tx, operation, meant, ctx):
        from lamplighter.services.audit_notes import note

        note(tx, operation.name, meant, ctx, concerned | _concerned(tx, operation))
    return done


def meant_by(tx: Tx, operation: Operation[Q, Any], ask: Q) -> Q:
    """The request with the ids and whole names that are meant by what was typed. Raises IdAmbiguous."""
    return resolved(tx, ask) if operation.names else ask


def _concerned(tx: Tx, operation: Operation[Any, Any]) -> frozenset[str]:
    """The cities whose record tells of it besides this one's: those of the organization."""
    if operation.kind is not Kind.TRANSACTION or operation.verb not in _MOVING:
        return frozenset()
    return frozenset(one.id for one in tx.organizations.cities())


def is_change(operation: Operation[Any, Any], ask: Any, ctx: Context) -> bool:
    """Whether it changes something with a person's rights, which agents and runs have too."""
    changes = operation.kind in {Kind.TRANSACTION, Kind.EFFECT} and operation.verb is not Verb.READ
    return changes and ctx.actor.is_person and (operation.changes is None or operation.changes(ask))


def is_audited(tx: Tx, operation: Operation[Any, Any], ask: Any, ctx: Context) -> bool:
    """Whether a person changes something; what agents and runs do with commands and tools, their own records tell."""
    return is_change(operation, ask, ctx) and not _is_at_work(tx, ctx)


def _is_at_work(tx: Tx, ctx: Context) -> bool:
    """Whether a run or an agent asks. A caller names its run and its session itself: only one under way counts.

    A session counts only where a command names it, from the environment that its agent was given: no agent has the
    owner's token, and whoever shows that over HTTP may name any session.
    """
    actor = ctx.actor
    if actor.token is not None or ctx.surface in {"api", "web"}:
        return False
    run = None if actor.run is None else tx.runs.get(actor.run)
    if run is not None and not run.ended:
        return True
    session = None if actor.session is None or ctx.surface != "cli" else tx.sessions.get(actor.session)
    return session is not None and session.ended_at is None


def admit(actor: Actor, verb: Verb) -> bool:
    """Raises Forbidden. True if `permit` has nothing to ask the store, which may be away."""
    require(actor, verb)
    return actor.token is None and verb not in _MOVING and (actor.token_run is None or verb is Verb.COMPLETE_RUN)


def permit(tx: Tx, verb: Verb, ctx: Context, *, locks: bool = False) -> None:
    """Raises Forbidden for an actor without the right, RunOver for the token of an ended run, TokenVoid, NotItsHome.

    Completing stays allowed after the end, so that a completion can be repeated. `locks`: the run's row is locked, so
    that the run cannot end before this transaction commits; or the city's, so that it stays in its organization.
    """
    if admit(ctx.actor, verb):
        return
    if locks and verb in _MOVING:
        tx.cities.lock()
    if ctx.actor.token is not None:
        from lamplighter.services.token_checks import still_holds

        still_holds(tx, verb, ctx)
    if verb in OF_ORGANIZATION and not ctx.actor.is_proved:
        from lamplighter.services.token_checks import need_home

        need_home(tx)
    if ctx.actor.token_run is None or verb is Verb.COMPLETE_RUN:
        return
    found = tx.runs.lock(ctx.actor.token_run) if locks else tx.runs.get(ctx.actor.token_run)
    if found is None or found.ended:
        raise RunOver(ctx.actor, None if found is None else found.state.value)
