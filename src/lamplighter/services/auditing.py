"""The record of what people change: a row in the transaction of the change; and reading it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.kit.shapes import given
from lamplighter.services.audit_notes import note
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Operation, Page, is_audited, meant_by, permit, read
from lamplighter.store.tx import Tx


@dataclass(frozen=True)
class AuditView:
    id: str
    at: datetime
    actor: str = given("Who did it.")
    token: str | None = given("The id of the token that was shown, if it was a member's.")
    surface: str = given("Where it was asked: cli, api or tool.")
    operation: str = given("What was asked.")
    object: str | None = given("What it is about.")
    asked: Mapping[str, Any] = given("The request, with secrets masked, and long texts and lists cut.")
    bulk: str | None = given("The bulk action that caused it, if one did.")
    asked_in: str | None = given("The city of the same organization where it was asked, if not in this one.")


@dataclass(frozen=True)
class ListAudit:
    """Who changed what, newest first."""

    actor: str | None = given("Only what this one did.", default=None)
    before: str | None = given(
        "Only entries older than this one: the next page.", default=None, metavar="ID", names="entry"
    )
    limit: int = given("At most so many.", default=50, least=1, most=10_000)


def begin_effect(tx: Tx, operation: Operation[Any, Any], ask: Any, ctx: Context) -> None:
    """Judge an effect before it begins, and note a person's: it has no transaction of its own.

    Raises what `permit` raises.
    """
    permit(tx, operation.verb, ctx)
    if is_audited(tx, operation, ask, ctx):
        note(tx, operation.name, meant_by(tx, operation, ask), ctx)


def list_audit(tx: Tx, ask: ListAudit, _ctx: Context) -> list[AuditView]:
    rows = tx.audit.page(actor=ask.actor, before=ask.before, limit=ask.limit)
    return [AuditView(**{one.name: getattr(row, one.name) for one in fields(AuditView)}) for row in rows]


LIST = read(
    "audit.list", Verb.READ_AUDIT, ListAudit, list[AuditView], list_audit,
    http=Http("GET", "/audit", page=Page("before", "id")),
)  # fmt: skip
