"""Tokens of members, by which programs act in their name: made, listed, revoked, and judged with every operation."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.domain.access import Actor, Role, Verb, require
from lamplighter.domain.tokens import new_token, token_hash
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import NotFound, UsageError
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.shapes import given
from lamplighter.services import members
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, read, transaction
from lamplighter.services.resolving import the_one
from lamplighter.services.token_checks import VERBS
from lamplighter.store.members import MemberRow
from lamplighter.store.tokens import TokenRow
from lamplighter.store.tx import Tx

NEVER = "never"
USUAL = "90d"
SHOWN = 4


class TokenUnknown(NotFound):
    def __init__(self, token: str) -> None:
        super().__init__(f"There is no token `{token}`.", hint="`lamp token list` shows those there are.")


@dataclass(frozen=True)
class TokenView:
    """The token itself is shown only once, when it is made."""

    id: str
    member: str
    name: str
    ending: str = given("Its last characters, to tell it apart.")
    scopes: Sequence[str] = given("The only rights it keeps of its member's; empty for all.")
    created_at: datetime = given("When it was made.")
    created_by: str = given("By whom.")
    expires_at: datetime | None = given("When it ends; null for never.")
    used_at: datetime | None = given("When it was last shown, to the minute.")
    revoked_at: datetime | None = given("When it was revoked.")


@dataclass(frozen=True)
class TokenMade(TokenView):
    """With the token itself, which is not kept and never shown again."""

    token: str = given("The token itself.")


@dataclass(frozen=True)
class TokenRevoked:
    id: str
    revoked: bool = True
    changed: bool = True


@dataclass(frozen=True)
class CreateToken:
    """Make a token, by which a program acts in a member's name. It is shown once."""

    name: str = given("What it is for, in a word or two.", positional=True)
    member: str | None = given("Whose it is; your own when left out.", default=None)
    scopes: Sequence[str] = given(
        "A right that it keeps, such as `read`; all of the member's when left out.", default=()
    )
    expires: str = given("How long it holds: a duration, or `never`.", default=USUAL)


@dataclass(frozen=True)
class ListTokens:
    """Tokens of members; your own, or with the right to change members those of all."""

    member: str | None = given("Only of this member.", default=None)


@dataclass(frozen=True)
class RevokeToken:
    """Make a token void at once."""

    token: str = given("Its id, or a part of it.", key="id", metavar="ID", positional=True)


# ── operations ────────────────────────────────────────────────────────────────────────────────────────────────────


def creating(chance: Callable[[int], bytes]) -> Callable[[Tx, CreateToken, Context], TokenMade]:
    """The operation, with the source of the token's random part."""

    def create_token(tx: Tx, ask: CreateToken, ctx: Context) -> TokenMade:
        """Raises MemberUnknown, UsageError, and Forbidden for a token of somebody else."""
        member = _owner(tx, ask.member, ctx)
        scopes = _scopes(ask.scopes, ctx.actor)
        token = new_token(chance)
        row = TokenRow(
            ctx.ids.make("tok"), member.name, ask.name.strip(), token_hash(token), token[-SHOWN:], scopes, ctx.now,
            ctx.actor.name, _bounded(tx, _end(ask.expires, ctx.now), ctx),
        )  # fmt: skip
        if not row.name or len(row.name) > members.LONGEST_NAME:
            raise UsageError("A token needs a name of at most 80 characters.", hint="Say what it is for.")
        tx.tokens.add(row)
        return TokenMade(**_parts(row), token=token)

    return create_token


def list_tokens(tx: Tx, ask: ListTokens, ctx: Context) -> list[TokenView]:
    """Raises Forbidden for the tokens of somebody else."""
    if ctx.actor.may(Verb.WRITE_MEMBERS):
        rows = tx.tokens.all() if ask.member is None else tx.tokens.of(ask.member)
    else:
        if ask.member not in (None, ctx.actor.name):
            require(ctx.actor, Verb.WRITE_MEMBERS)
        rows = tx.tokens.of(ctx.actor.name)
    return [TokenView(**_parts(row)) for row in rows]


def revoke_token(tx: Tx, ask: RevokeToken, ctx: Context) -> TokenRevoked:
    """Raises TokenUnknown, also for a token of somebody else that the actor may not see; IdAmbiguous."""
    seen = tx.tokens.all() if ctx.actor.may(Verb.WRITE_MEMBERS) else tx.tokens.of(ctx.actor.name)
    meant = the_one(ask.token, "token", [one.id for one in seen])
    row = None if meant is None else tx.tokens.lock(meant)
    if row is None:
        raise TokenUnknown(ask.token)
    return TokenRevoked(row.id, changed=tx.tokens.revoke(row.id, ctx.now))


def _owner(tx: Tx, name: str | None, ctx: Context) -> MemberRow:
    """Whose the token is. The city's local owner becomes a member with the first token. Raises MemberUnknown."""
    if name is not None and name != ctx.actor.name:
        require(ctx.actor, Verb.WRITE_MEMBERS)
    wanted = name or ctx.actor.name
    if wanted == ctx.actor.name and ctx.actor.token is None and ctx.actor.role is Role.OWNER:
        tx.members.add(MemberRow(wanted, Role.OWNER, ctx.now, ctx.actor.name))
    return members.locked(tx, wanted)


def _scopes(wanted: Sequence[str], actor: Actor) -> tuple[str, ...]:
    """Raises UsageError for a right that there is not, or that the token which makes this one does not keep."""
    for one in wanted:
        if one not in VERBS:
            near = did_you_mean(one, VERBS) or f"; there are {', '.join(sorted(VERBS))}"
            raise UsageError(f"`{one}` is not a right{near}", hint="Nothing was made.")
    kept = actor.scopes
    if kept is not None and (not wanted or not {Verb(one) for one in wanted} <= kept):
        raise UsageError(
            "A token cannot make one that may more than itself.",
            hint=f"Name some of its rights: {', '.join(sorted(one.value for one in kept))}.",
        )
    return tuple(sorted(set(wanted)))


def _end(text: str, now: datetime) -> datetime | None:
    if text.strip() == NEVER:
        return None
    hint = "Write how long it holds, such as `30d`, or `never`."
    try:
        end = now + parse_duration(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{error}.", hint=hint) from error
    if end <= now:
        raise UsageError(f"`{text}` is no time at all.", hint=hint)
    return end


def _bounded(tx: Tx, end: datetime | None, ctx: Context) -> datetime | None:
    """A token that ends makes none that holds longer: the earlier end of the two."""
    made_by = None if ctx.actor.token is None else tx.tokens.lock(ctx.actor.token)
    last = None if made_by is None else made_by.expires_at
    return end if last is None else last if end is None else min(end, last)


def _parts(row: TokenRow) -> dict[str, Any]:
    names = (
        "id",
        "member",
        "name",
        "ending",
        "scopes",
        "created_at",
        "created_by",
        "expires_at",
        "used_at",
        "revoked_at",
    )
    return {name: getattr(row, name) for name in names}


CREATE = transaction("token.create", Verb.WRITE_TOKENS, CreateToken, TokenMade, creating(secrets.token_bytes),
                     http=Http("POST", "/tokens", status=201), is_secret=True)  # fmt: skip
LIST = read("token.list", Verb.WRITE_TOKENS, ListTokens, list[TokenView], list_tokens, http=Http("GET", "/tokens"))
REVOKE = transaction("token.revoke", Verb.WRITE_TOKENS, RevokeToken, TokenRevoked, revoke_token,
                     http=Http("POST", "/tokens/{token}/revoke"))  # fmt: skip
