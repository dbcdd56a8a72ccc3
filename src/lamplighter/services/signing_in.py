"""Signing in at an OpenID provider: who somebody is here, and the token that their browser's session holds on to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lamplighter.domain.access import Actor, Forbidden, NotProved, Role
from lamplighter.domain.tokens import token_hash
from lamplighter.kit.errors import LampError
from lamplighter.services.audit_notes import note
from lamplighter.services.context import Context
from lamplighter.services.members import LONGEST_NAME
from lamplighter.store.members import MemberRow
from lamplighter.store.tokens import TokenRow
from lamplighter.store.tx import Tx

OPERATION = "member.sign-in"
LASTS = timedelta(days=7)
"""After that the provider is asked again; who leaves its directory is out here by then."""
TOKEN = "browser"  # noqa: S105  the name under which it is listed
NOT_SHOWN = "none"


class NoMember(Forbidden):
    def __init__(self, name: str) -> None:
        LampError.__init__(
            self,
            f"{name} is not a member of this city.",
            hint=f"An owner makes you one with `lamp member add {name}`.",
        )


@dataclass(frozen=True)
class SignIn:
    name: str
    issuer: str
    joined: bool


def address_of(claims: Mapping[str, Any]) -> str:
    """The mail address that is the name of the member. Raises NotProved for one that the provider did not verify."""
    found = claims.get("email")
    name = found.strip().lower() if isinstance(found, str) and claims.get("email_verified") is True else ""
    if "@" not in name or len(name) > LONGEST_NAME or not name.isprintable() or " " in name:
        raise NotProved("the provider tells no mail address of yours that it has verified")
    return name


def sign_in(tx: Tx, address: str, issuer: str, domains: Sequence[str], unknown: str, ctx: Context) -> Actor:
    """The member, with a token of their own that no program can show: revoking it ends the browser's session.

    `unknown` is a text that nobody knows. Nobody becomes a member of an organization that another city looks after: it
    did not choose this provider. Raises NoMember.
    """
    tx.cities.lock()
    row = tx.members.lock(address)
    joined = row is None and address.rpartition("@")[2] in domains and tx.organizations.is_home()
    if joined:
        row = MemberRow(address, Role.MEMBER, ctx.now, address)
        tx.members.add(row)
    if row is None:
        raise NoMember(address)
    token = TokenRow(
        ctx.ids.make("tok"), row.name, TOKEN, token_hash(unknown), NOT_SHOWN, (), ctx.now, row.name, ctx.now + LASTS
    )
    tx.tokens.add(token)
    also = [one.id for one in tx.organizations.cities()] if joined else []
    note(tx, OPERATION, SignIn(row.name, issuer, joined), ctx, also)
    return Actor(row.name, row.role, token=token.id)
