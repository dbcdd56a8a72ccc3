"""Deliveries as every surface shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.kit.shapes import given
from lamplighter.store.deliveries import DeliveryRow, ListedDelivery, Verdict


@dataclass(frozen=True)
class DeliveryVerdictView:
    """What one trigger made of it."""

    automation: str
    trigger: str
    verdict: str = given("`fired`, `filtered`, `duplicate`, `skipped`, `held`, `gathered` or `loop`.")
    reason: str | None = given("Why, and which rule.")
    run: str | None = given("The run that it fired, or had fired before.")
    at: datetime = given("When.")


@dataclass(frozen=True, kw_only=True)
class DeliveryView:
    """`state` is `waiting` or `processed`; `problem` says why no trigger was asked."""

    id: str
    connection: str
    received_at: datetime
    verified: bool = given("Always true: what is not verified is refused.")
    source: str = given("`webhook` for what was sent here, `polled` for what the city asked for.")
    state: str
    repeats: int = given("How often its sender sent it again.")
    event_type: str | None
    title: str | None
    author: str | None
    external_id: str | None = given("What it is known by when it is sent again: its sender's id, or a digest.")
    problem: str | None
    verdicts: Sequence[DeliveryVerdictView]


@dataclass(frozen=True, kw_only=True)
class DeliveryDetail(DeliveryView):
    headers: Mapping[str, str] = given("What is kept of its headers.")
    payload: Mapping[str, Any] = given("What was sent, with secrets masked.")


def view_of(row: DeliveryRow | ListedDelivery, verdicts: Sequence[Verdict]) -> DeliveryView:
    return DeliveryView(
        id=row.id,
        connection=row.connection,
        received_at=row.received_at,
        verified=True,
        source=row.source,
        state=row.state,
        repeats=row.repeats,
        event_type=row.event_type or None,
        title=row.title or None,
        author=row.author or None,
        external_id=row.external_id,
        problem=row.problem or None,
        verdicts=[
            DeliveryVerdictView(one.automation, one.trigger_id, one.verdict, one.reason or None, one.run_id, one.at)
            for one in verdicts
        ],
    )
