"""Deliveries: what came in, what each trigger made of it, and the connections at which it comes in."""

import json
from collections.abc import Sequence
from difflib import unified_diff
from typing import Any

from starlette.responses import Response

from lamplighter.kit.errors import LampError
from lamplighter.services.connections import LIST as CONNECTIONS
from lamplighter.services.connections import TEST, ListConnections, TryConnection
from lamplighter.services.deliveries.operations import (
    LIST,
    REPLAY,
    SHOW,
    ListDeliveries,
    ReplayDeliveries,
    ShowDelivery,
)
from lamplighter.services.deliveries.views import DeliveryDetail
from lamplighter.web.console.visit import Answer, Visit, back, own_path, together

ROWS = 50
OTHERS = 10
"""So many earlier ones are offered to be compared with."""
LONGEST_BODY = 64_000
"""So many characters of a body are shown; the operation gives all of it."""


async def deliveries(visit: Visit) -> Response:
    query = visit.query
    ask = ListDeliveries(query.get("connection"), query.get("before"), ROWS + 1)
    found, connections, _ = await together(
        visit.ask(LIST, ask), visit.ask(CONNECTIONS, ListConnections()), visit.look()
    )
    shown = [] if found.error else found.value[:ROWS]
    older = shown[-1].id if not found.error and len(found.value) > ROWS else None
    return await visit.page(
        "deliveries.html", found=found, shown=shown, older=older, connections=connections, query=query,
        address_of=visit.address_of,
    )  # fmt: skip


async def delivery(visit: Visit) -> Response:
    """Raises DeliveryUnknown."""
    one = await visit.do(SHOW, ShowDelivery(visit.path["delivery"]))
    body = _written(one.payload)
    listed, other = await together(
        visit.ask(LIST, ListDeliveries(one.connection, one.id, OTHERS)),
        visit.ask(SHOW, ShowDelivery(visit.query["with"])) if visit.query["with"] else _nothing(),
    )
    against = None if other.found is None else _difference(other.value, body)
    return await visit.page(
        "delivery.html", one=one, body=body[:LONGEST_BODY], left_out=len(body) - LONGEST_BODY,
        earlier=listed.found or (), other=other, against=against,
    )  # fmt: skip


def _written(payload: Any) -> str:
    return json.dumps(payload, indent=2, ensure_ascii=False)


def _difference(before: DeliveryDetail, body: str) -> Sequence[tuple[str, str]]:
    """What the body has that the other has not, and what it has no more, line by line."""
    was, now = (text[:LONGEST_BODY].splitlines() for text in (_written(before.payload), body))
    lines = list(unified_diff(was, now, n=2, lineterm=""))[2:]
    looks = {"+": "add", "-": "del", "@": "hunk"}
    return [(looks.get(line[:1], "same"), line) for line in lines]


async def _nothing() -> Answer[Any]:
    return Answer()


async def replay(visit: Visit) -> Response:
    done = await visit.do(REPLAY, ReplayDeliveries((visit.path["delivery"],)))
    (one,) = done.deliveries
    return back(f"/deliveries/{one}", "It is judged again, by the triggers as they are now.")


async def test(visit: Visit) -> Response:
    """Raises Forbidden. What the city answered to the sample is said on the page it was asked from."""
    form, name = await visit.form(), visit.path["name"]
    where = own_path(form["next"] or "/deliveries")
    try:
        found = await visit.do(TEST, TryConnection(name))
    except LampError as error:
        if visit.why_not(TEST.name):
            raise
        return back(where, f"{name} could not be tested: {error.message}")
    if found.accepted:
        return back(where, f"{name} took a signed test, which fires nothing.")
    return back(where, f"{name} refused the test with {found.status}: {found.answer}")


PAGES = (
    ("GET", "/deliveries", deliveries),
    ("POST", "/deliveries/connections/{name}/test", test),
    ("GET", "/deliveries/{delivery}", delivery),
    ("POST", "/deliveries/{delivery}/replay", replay),
)
