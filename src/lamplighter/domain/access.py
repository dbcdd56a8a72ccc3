"""Who asks and what they may do: roles with their rights as one table."""

from collections.abc import Mapping
from enum import StrEnum

from lamplighter.kit.errors import LampError
from lamplighter.kit.records import record


class Verb(StrEnum):
    """A right: what an operation asks its actor to have."""

    READ = "read"
    COMPLETE_RUN = "complete_run"
    EMIT_EVENT = "emit_event"
    RUN_AUTOMATION = "run_automation"
    CANCEL_RUN = "cancel_run"
    RETRY_RUN = "retry_run"
    ANSWER_RUN = "answer_run"
    KEEP_NOTES = "keep_notes"
    CLAIM_RUN = "claim_run"
    RESOLVE_RUN = "resolve_run"
    SNOOZE_ITEM = "snooze_item"
    DISMISS_ITEM = "dismiss_item"
    RETRY_OUTBOX = "retry_outbox"
    WRITE_DESTINATIONS = "write_destinations"
    WRITE_BEADS = "write_beads"
    WRITE_MAIL = "write_mail"
    WRITE_AUTOMATIONS = "write_automations"
    WRITE_CONFIGURATIONS = "write_configurations"
    WRITE_SECRETS = "write_secrets"
    WRITE_CONNECTIONS = "write_connections"
    CONTROL_AGENTS = "control_agents"
    PAUSE_CITY = "pause_city"
    WRITE_CITY = "write_city"
    WRITE_TOKENS = "write_tokens"
    """One's own tokens; those of others are a matter of `write_members`."""
    LINK_SLACK = "link_slack"
    """To say which user of Slack one is."""
    SAVE_VIEWS = "save_views"
    ACT_IN_BULK = "act_in_bulk"
    """To ask for one thing to be done to many runs; each is judged by the right to that thing."""
    READ_AUDIT = "read_audit"
    WRITE_MEMBERS = "write_members"
    WRITE_ORGANIZATION = "write_organization"
    INVITE_CITY = "invite_city"
    """A token that keeps only this right is an invitation."""
    MOVE_CITY = "move_city"
    """From one organization to another; the other one must have invited it."""


OF_ORGANIZATION = frozenset({Verb.WRITE_MEMBERS, Verb.WRITE_TOKENS, Verb.WRITE_ORGANIZATION, Verb.INVITE_CITY})
"""The rights whose use concerns every city of an organization. Outside its home city they need a token that the request
itself carries: whatever a city knows from its own files proves nothing to the others.
"""


class Role(StrEnum):
    """Where an actor's rights come from: a membership, the token of a run, or being a part of Lamplighter itself."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    RUN = "run"
    SYSTEM = "system"


_OF_MEMBERS = frozenset(
    {
        Verb.READ,
        Verb.EMIT_EVENT,
        Verb.RUN_AUTOMATION,
        Verb.CANCEL_RUN,
        Verb.RETRY_RUN,
        Verb.ANSWER_RUN,
        Verb.KEEP_NOTES,
        Verb.CLAIM_RUN,
        Verb.SNOOZE_ITEM,
        Verb.WRITE_BEADS,
        Verb.WRITE_MAIL,
        Verb.WRITE_TOKENS,
        Verb.LINK_SLACK,
        Verb.SAVE_VIEWS,
        Verb.ACT_IN_BULK,
    }
)
_OF_ADMINS = _OF_MEMBERS | {
    Verb.COMPLETE_RUN,
    Verb.RESOLVE_RUN,
    Verb.DISMISS_ITEM,
    Verb.RETRY_OUTBOX,
    Verb.WRITE_DESTINATIONS,
    Verb.WRITE_AUTOMATIONS,
    Verb.WRITE_CONFIGURATIONS,
    Verb.WRITE_SECRETS,
    Verb.WRITE_CONNECTIONS,
    Verb.CONTROL_AGENTS,
    Verb.PAUSE_CITY,
    Verb.WRITE_CITY,
    Verb.READ_AUDIT,
}
RIGHTS: Mapping[Role, frozenset[Verb]] = {
    Role.OWNER: frozenset(Verb),
    Role.ADMIN: _OF_ADMINS,
    Role.MEMBER: _OF_MEMBERS,
    Role.RUN: frozenset({Verb.COMPLETE_RUN, Verb.EMIT_EVENT, Verb.KEEP_NOTES}),
    Role.SYSTEM: frozenset(Verb),
}
"""What each role may do; nothing else in the program decides it."""


PEOPLE = frozenset({Role.OWNER, Role.ADMIN, Role.MEMBER})


@record
class Actor:
    """Who asks. `run` is the run whose token was presented, or in which the actor works: the cause of what it does."""

    name: str
    role: Role
    run: str | None = None
    session: str | None = None
    """The session from which it speaks, if that is known."""
    rig: str | None = None
    """The rig in which it works, if that is known."""
    token: str | None = None
    """The id of the member's token that was presented, which must still hold when the operation is judged."""
    scopes: frozenset[Verb] | None = None
    """The only rights of the role that its token keeps; None for all."""
    is_proved: bool = False
    """Whether the request itself carried the member's token; not so for a browser, or a user of Slack."""

    def may(self, verb: Verb) -> bool:
        return verb in RIGHTS[self.role] and (self.scopes is None or verb in self.scopes)

    @property
    def is_person(self) -> bool:
        """Whether it is a person, or a program with a person's token; not a run or a part of Lamplighter."""
        return self.role in PEOPLE

    @property
    def token_run(self) -> str | None:
        """The run whose token was presented; None for everybody else, even when working inside a run."""
        return self.run if self.role is Role.RUN else None


class Unauthenticated(LampError):
    def __init__(self) -> None:
        super().__init__(
            "No valid token was shown.", hint="Send `Authorization: Bearer TOKEN`; the owner's is in .gc/owner.token."
        )


class NotProved(Unauthenticated):
    """Who signs in at a provider is not proved."""

    def __init__(self, why: str) -> None:
        LampError.__init__(self, f"Who you are is not proved: {why}.", hint="Sign in again.")


class TokenVoid(Unauthenticated):
    def __init__(self, why: str) -> None:
        LampError.__init__(self, f"The token {why}.", hint="Make another one with `lamp token create`.")


class Forbidden(LampError):
    def __init__(self, actor: Actor, what: str) -> None:
        hint = "Ask the owner of the city to do it."
        if actor.scopes is not None:
            kept = ", ".join(sorted(actor.scopes)) or "nothing"
            hint = f"The token that was shown keeps only: {kept}. Make one with more rights with `lamp token create`."
        super().__init__(f"{actor.name} may not {what}.", hint=hint)


class NotItsHome(Forbidden):
    """The city's own files say who asks, and it is not from there that its organization is looked after."""

    def __init__(self, organization: str, home: str) -> None:
        LampError.__init__(
            self,
            f"The members, tokens and name of the organization {organization} are looked after from {home}.",
            hint="Do it there; or from here with an owner's token: `lamp --url URL --token-file FILE …`.",
        )


class RunOver(Forbidden):
    def __init__(self, actor: Actor, state: str | None) -> None:
        LampError.__init__(
            self,
            f"Run {actor.run} has ended as {state}." if state else f"There is no run {actor.run} any more.",
            hint="Stop working on it: all that its token can still do is to repeat the completion it gave.",
        )


def owner(name: str, run: str | None = None) -> Actor:
    return Actor(name, Role.OWNER, run)


def of_run(run: str) -> Actor:
    return Actor(f"run:{run}", Role.RUN, run)


def system(name: str) -> Actor:
    return Actor(name, Role.SYSTEM)


def require(actor: Actor, verb: Verb) -> None:
    """Raises Forbidden."""
    if not actor.may(verb):
        raise Forbidden(actor, verb.value.replace("_", " "))


def require_own_run(actor: Actor, run: str) -> None:
    """An actor that works inside a run may complete only that run. Raises Forbidden."""
    require(actor, Verb.COMPLETE_RUN)
    if actor.run is not None and actor.run != run:
        raise Forbidden(actor, f"complete run {run}")
