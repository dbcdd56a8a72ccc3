"""Deliveries: what came in, what each trigger made of it, and the connections at which it comes in."""

import json

from starlette.responses import Response

from lamplighter.services.connections import LIST as CONNECTIONS
from lamplighter.services.connections import ListConnections
from lamplighter.services.deliveries.operations import (
    LIST,
    REPLAY,
    SHOW,
    ListDeliveries,
    ReplayDeliveries,
    ShowDelivery,
)
from lamplighter.web.console.visit import Visit, back, together

ROWS = 50
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
        "deliveries.html", found=found, shown=shown, older=older, connections=connections, query=query
    )


async def delivery(visit: Visit) -> Response:
    """Raises DeliveryUnknown."""
    one = await visit.do(SHOW, ShowDelivery(visit.path["delivery"]))
    body = json.dumps(one.payload, indent=2, ensure_ascii=False)
    return await visit.page("delivery.html", one=one, body=body[:LONGEST_BODY], left_out=len(body) - LONGEST_BODY)


async def replay(visit: Visit) -> Response:
    done = await visit.do(REPLAY, ReplayDeliveries((visit.path["delivery"],)))
    (one,) = done.deliveries
    return back(f"/deliveries/{one}", "It is judged again, by the triggers as they are now.")


PAGES = (
    ("GET", "/deliveries", deliveries),
    ("GET", "/deliveries/{delivery}", delivery),
    ("POST", "/deliveries/{delivery}/replay", replay),
)
