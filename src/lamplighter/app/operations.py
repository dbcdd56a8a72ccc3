"""Carries out operations for commands, which have no event loop: directly on the store, or in the running daemon."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from lamplighter.app.beads import outside_beads
from lamplighter.app.mail import outside_mail
from lamplighter.app.on_demand import ConfiguredOnDemand
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.access import Actor, Role, Unauthenticated, Verb, of_run
from lamplighter.kit.errors import LampError
from lamplighter.kit.records import changed
from lamplighter.services.context import Context, InForce
from lamplighter.services.operation import Kind, Need, Operation, admit, judged, permit
from lamplighter.store.errors import CommitUnknown
from lamplighter.store.tx import Tx

Q = TypeVar("Q")
A = TypeVar("A")

SURFACE = "cli"
REPEATS = 3


class DirectOperations:
    """The operations of one city, for one command."""

    def __init__(self, city: OpenCity) -> None:
        self._city = city

    def do(self, operation: Operation[Q, A], ask: Q, *, as_name: str | None = None, here: bool = False) -> A:
        """`as_name` names the actor otherwise than the environment does; `here` leaves out the daemon.

        Raises Forbidden, RunOver, StoreUnavailable, and what the operation raises.
        """
        ctx = self._context(operation, as_name)
        done = self._carried_out(operation, ask, ctx, here=here or operation.here)
        answer: A = done if operation.settle is None else operation.settle(done)
        return answer

    def follow(self, operation: Operation[Q, A], ask: Q, show: Callable[[A], None]) -> None:
        """Call `show` with each part of a stream as it comes, until the stream ends. Raises as `do` does."""
        from lamplighter.app.local_host import followed_here

        followed_here(self._city, operation, ask, self._context(operation), show)

    def _context(self, operation: Operation[Any, Any], as_name: str | None = None) -> Context:
        city = self._city
        found: InForce | None = None
        if operation.needs is Need.CONFIG:
            found = ConfiguredOnDemand(city)
        elif operation.needs is not None:
            from lamplighter.app.definitions import prepare

            found = prepare(city, operation.needs)
        actor = actor_of(city, operation.verb)
        if as_name is not None:
            actor = changed(actor, name=as_name)
        return Context(actor, city.clock.now(), city.ids, SURFACE, found)

    def _carried_out(self, operation: Operation[Q, A], ask: Q, ctx: Context, *, here: bool) -> Any:
        city = self._city
        if operation.elsewhere is not None:
            outside = _outside(city, operation.subject)
            if outside is not None:
                if not admit(ctx.actor, operation.verb):
                    city.store.read(permit, operation.verb, ctx)
                done = operation.elsewhere(outside, ask, ctx)
                if operation.recorded is not None:
                    city.store.transact(operation.recorded, done, ctx)
                return done
        if operation.kind is Kind.READ:
            return city.store.read(judged, operation, ask, ctx)
        if operation.kind is Kind.TRANSACTION:
            return self._transacted(operation, ask, ctx)
        if not here and city.is_kept:
            from lamplighter.app.remote import carried_out_there, left_to_command

            try:
                return carried_out_there(city.paths.socket, operation, ask, ctx.actor)
            except LampError as error:
                if not left_to_command(error, operation):
                    raise
        from lamplighter.app.local_host import carried_out_here

        return carried_out_here(city, operation, ask, ctx)

    def _transacted(self, operation: Operation[Q, A], ask: Q, ctx: Context) -> Any:
        now = self._city.clock.now

        def transact(tx: Tx) -> Any:
            """With the time of each try: what is done when the database is back is done then."""
            return judged(tx, operation, ask, changed(ctx, now=now()))

        for left in range(REPEATS if operation.repeatable else 0, -1, -1):
            try:
                return self._city.store.transact(transact)
            except CommitUnknown:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")


def _outside(city: OpenCity, subject: str) -> Any:
    return outside_mail(city) if subject == "mail" else outside_beads(city)


def actor_of(city: OpenCity, verb: Verb) -> Actor:
    """A process that runs commands here can read the city's files, and so is its owner, also inside a run.

    Only the completion of a run asks for the run's own token. Raises Unauthenticated if it cannot be read or is wrong.
    """
    file, run = city.settings.env.get("LAMP_RUN_TOKEN_FILE"), city.settings.run
    session = city.settings.session
    if not file or verb is not Verb.COMPLETE_RUN:
        return Actor(city.settings.actor, Role.OWNER, run, session, city.settings.rig)
    from lamplighter.adapters.files.secrets import run_shown

    shown = run_shown(city.paths.runtime, Path(file))
    if shown is None:
        raise Unauthenticated
    return changed(of_run(shown), session=session)
