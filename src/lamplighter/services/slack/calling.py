"""Calls of Slack that are made from the outbox, at least once."""

from collections.abc import Mapping
from typing import Any

from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.services.context import Context
from lamplighter.store.tx import Tx


def call(tx: Tx, team: str, method: str, args: Mapping[str, Any], ctx: Context, *, while_open: str = "") -> None:
    """Queue a call of Slack, made at least once; with `while_open` only as long as that inbox item is open."""
    payload: dict[str, Any] = {"team": team, "method": method, "args": dict(args)}
    if while_open:
        payload["while_open"] = while_open
    tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.SLACK_CALL, payload, ctx.now))
