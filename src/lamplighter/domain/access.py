"""Callers and their permissions: the city's owner may do everything, a run's token only what its run needs."""

import hmac
import re
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from lamplighter.kit.errors import LampError

KEY_BYTES = 32
_RUN_TOKEN = re.compile(r"lrt_(?P<run>run_[0-9a-z]{1,64})\.(?P<mac>[0-9a-f]{64})")


class Verb(StrEnum):
    COMPLETE_RUN = "complete_run"
    EMIT_EVENT = "emit_event"
    READ = "read"
    WRITE = "write"


OF_A_RUN = frozenset({Verb.COMPLETE_RUN, Verb.EMIT_EVENT})


@dataclass(frozen=True)
class Caller:
    """`run` is the run whose token was presented, or the run the caller works in; it counts as the cause of what the
    caller does.
    """

    actor: str
    verbs: frozenset[Verb]
    run: str | None = None

    def may(self, verb: Verb) -> bool:
        return verb in self.verbs

    @property
    def token_run(self) -> str | None:
        """The run whose token was presented; None for the owner, even when working inside a run."""
        return self.run if self.verbs == OF_A_RUN else None


class Unauthenticated(LampError):
    def __init__(self) -> None:
        super().__init__(
            "No valid token was shown.", hint="Send `Authorization: Bearer TOKEN`; the owner's is in .gc/owner.token."
        )


class Forbidden(LampError):
    def __init__(self, caller: Caller, what: str) -> None:
        super().__init__(f"{caller.actor} may not {what}.", hint="Ask the owner of the city to do it.")


class RunOver(Forbidden):
    def __init__(self, caller: Caller, state: str | None) -> None:
        LampError.__init__(
            self,
            f"Run {caller.run} has ended as {state}." if state else f"There is no run {caller.run} any more.",
            hint="Stop working on it: all that its token can still do is to repeat the completion it gave.",
        )


def owner(actor: str, run: str | None = None) -> Caller:
    return Caller(actor, frozenset(Verb), run)


def of_run(run: str) -> Caller:
    return Caller(f"run:{run}", OF_A_RUN, run)


def require(caller: Caller, verb: Verb) -> None:
    """Raises Forbidden."""
    if not caller.may(verb):
        raise Forbidden(caller, verb.value.replace("_", " "))


def require_own_run(caller: Caller, run: str) -> None:
    """A caller that works inside a run may complete only that run. Raises Forbidden."""
    require(caller, Verb.COMPLETE_RUN)
    if caller.run is not None and caller.run != run:
        raise Forbidden(caller, f"complete run {run}")


def run_token(key: bytes, run: str) -> str:
    """The token of a run: the same each time it is issued, so that a resumed start can issue it again."""
    return f"lrt_{run}.{_mac(key, run)}"


def run_of_token(key: bytes, token: str) -> str | None:
    """The run a token was issued for, or None. The comparison takes the same time for every wrong token of a run."""
    found = _RUN_TOKEN.fullmatch(token)
    if found is None or not hmac.compare_digest(_mac(key, found["run"]), found["mac"]):
        return None
    return found["run"]


@dataclass(frozen=True)
class TokenBook:
    """Checks the tokens of one city: its owner's, and those of its runs."""

    key: bytes = field(repr=False)
    owner_token: str = field(repr=False)
    owner_name: str = "owner"

    def caller(self, token: str) -> Caller | None:
        run = run_of_token(self.key, token)
        if run is not None:
            return of_run(run)
        shown, known = token.encode("utf-8", "surrogatepass"), self.owner_token.encode()
        return owner(self.owner_name) if hmac.compare_digest(shown, known) else None


def _mac(key: bytes, run: str) -> str:
    if len(key) < KEY_BYTES:
        raise ValueError("the city's key is too short")
    return hmac.new(key, f"lamplighter run token v1\0{run}".encode(), sha256).hexdigest()
