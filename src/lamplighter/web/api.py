"""The routes of the API, made from the operations that name one."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_origin
from urllib.parse import quote, unquote, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from lamplighter.domain.access import Actor
from lamplighter.kit.errors import LampError, Misfit, UsageError
from lamplighter.kit.shapes import key_of, to_json
from lamplighter.services import table
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.guarding import Guard, Outcome, hash_of
from lamplighter.services.operation import CURSOR, REPRESENTATION, ROOT, WITHOUT_BODY, Http, Kind, Operation
from lamplighter.web.auth import actor_in
from lamplighter.web.bodies import json_object
from lamplighter.web.errors import REQUEST_ID, problem
from lamplighter.web.following import follow
from lamplighter.web.held import while_held
from lamplighter.web.metrics import Traffic
from lamplighter.web.queries import path_values, values_of
from lamplighter.web.rates import Rates

SURFACE = "api"
TOO_MANY = 429
REPLAYED = "Idempotent-Replayed"
_SLASH = "%2F"


def routes(city: CityOperations, traffic: Traffic | None = None) -> list[Route]:
    """Routes of fixed paths come first, so that `/beads/ready` is not taken for a bead."""
    made = [(operation.http, operation) for operation in table.every() if operation.http is not None]
    rates = Rates(lambda: city.clock.monotonic())  # noqa: PLW0108  asked when a request comes
    told = traffic or Traffic()
    found = sorted(made, key=lambda one: "{" in one[0].path)
    return [_route(city, http, operation, rates, told) for http, operation in found]


class SegmentRoute(Route):
    """A route whose parameters are single segments of the path; a slash within one is sent as `%2F`."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw = scope.get("raw_path", b"")
        if _SLASH.encode() not in raw.upper():
            return super().matches(scope)
        kept = "/".join(unquote(one).replace("/", _SLASH) for one in raw.partition(b"?")[0].decode("ascii").split("/"))
        match, found = super().matches({**scope, "path": kept})
        params = found.get("path_params")
        if params is not None:
            found["path_params"] = {key: one.replace(_SLASH, "/") for key, one in params.items()}
        return match, found


def _route(city: CityOperations, http: Http, operation: Operation[Any, Any], rates: Rates, traffic: Traffic) -> Route:
    async def endpoint(request: Request) -> Response:
        actor = actor_in(request.scope)
        rates.count(_holder(actor))
        city.admit(operation, actor)
        ask, asked = await _asked(request, http, operation)
        if operation.kind is Kind.STREAM:
            items = await city.do(operation, ask, actor, surface=SURFACE)
            return await follow(
                items,
                http.page,
                city.stopping,
                traffic.streams,
                lambda lines: while_held(lines, city, operation, actor),
            )
        guard = _guard(request, asked)
        outcome = await city.guarded(operation, _one_more(operation, ask), actor, surface=SURFACE, guard=guard)
        return _answer(request, http, outcome, ask)

    async def rated(request: Request) -> Response:
        actor = actor_in(request.scope)
        began = city.clock.monotonic()
        try:
            answer = await endpoint(request)
        except LampError as error:
            answer = problem(error, request.scope.get(REQUEST_ID))
        traffic.took(http.method, http.path, answer.status_code, city.clock.monotonic() - began)
        answer.headers.update(rates.headers(_holder(actor), refused=answer.status_code == TOO_MANY))
        return answer

    return SegmentRoute(ROOT + http.path, rated, methods=[http.method])


def _holder(actor: Actor) -> str:
    return actor.token or actor.name


# ── the request ───────────────────────────────────────────────────────────────────────────────────────────────────


async def _asked(request: Request, http: Http, operation: Operation[Any, Any]) -> tuple[Any, dict[str, Any]]:
    """The request, and the JSON it was made from."""
    kind = operation.request if operation.reads is None else operation.fields_of
    if http.method in WITHOUT_BODY:
        body = _with_cursor(values_of(kind, request.query_params), http, operation, request)
    else:
        body = await json_object(request)
    keys = {one.name: key_of(one) for one in fields(kind)}
    whole = _with_path(body, path_values(request.path_params), keys)
    return operation.asked(whole), whole


def _guard(request: Request, asked: dict[str, Any]) -> Guard:
    """Raises UsageError for an `If-Match` that is none."""
    key = request.headers.get("idempotency-key")
    match = request.headers.get("if-match")
    versions = frozenset() if match is None else frozenset(_tags(match))
    if match is not None and not versions:
        raise UsageError("`If-Match` names no version.", hint='Send the ETag of what was read, such as "5f1c…".')
    return Guard(key, "" if key is None else hash_of(asked), versions)


def _tags(header: str) -> list[str]:
    """The versions in a header; a weak one matches nothing."""
    found = [one.strip() for one in header.split(",")]
    return [one.strip('"') for one in found if one == "*" or (len(one) > 1 and one[0] == one[-1] == '"')]


def _with_cursor(body: dict[str, Any], http: Http, operation: Operation[Any, Any], request: Request) -> dict[str, Any]:
    """`after` is the field that the list goes on from; a stream goes on after the last event that its client saw."""
    if http.page is None:
        return body
    resumed = request.headers.get("last-event-id") if operation.kind is Kind.STREAM else None
    if resumed is not None:
        body[CURSOR] = int(resumed) if resumed.isascii() and resumed.isdigit() and len(resumed) <= 18 else resumed
    if http.page.cursor != CURSOR and CURSOR in body:
        body[http.page.cursor] = body.pop(CURSOR)
    return body


def _with_path(body: dict[str, Any], path: Mapping[str, str], keys: Mapping[str, str]) -> dict[str, Any]:
    """The body with what the path names. Raises UsageError for a body that names something else."""
    for name, value in path.items():
        key = keys[name]
        if body.setdefault(key, value) != value:
            wrong = UsageError(f"The body names {name} {body[key]}, the path {value}.", hint=f"Name one {name}.")
            wrong.misfits = [Misfit((key,), f"is not {value}, which the path names")]
            raise wrong
    return body


def _one_more(operation: Operation[Any, Any], ask: Any) -> Any:
    """A list is asked for one item more than it shows, so that the answer can tell whether there is more."""
    bound = _bound(ask) if get_origin(operation.answer) is list else None
    return ask if bound is None else replace(ask, **{bound: getattr(ask, bound) + 1})


def _bound(ask: Any) -> str | None:
    """The field of a request for a list that says how many are wanted."""
    return next((one for one in ("limit", "count") if isinstance(getattr(ask, one, None), int)), None)


# ── the answer ────────────────────────────────────────────────────────────────────────────────────────────────────


def _answer(request: Request, http: Http, outcome: Outcome, ask: Any) -> Response:
    headers = {} if not outcome.is_repeated else {REPLAYED: "true"}
    status = http.status
    if status == 204 and not _wants_representation(request):
        return Response(status_code=204, headers=headers)
    if status == 204:
        status, headers["Preference-Applied"] = 200, REPRESENTATION
    if isinstance(outcome.answer, list):
        return _page(request, http, outcome.answer, ask)
    body = outcome.again if outcome.is_repeated else to_json(outcome.answer)
    if http.location is not None:
        headers["Location"] = _location(http.location, body)
    if outcome.version is not None:
        headers["ETag"] = f'"{outcome.version}"'
        if outcome.version in _tags(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=headers)
    return JSONResponse(body, status_code=status, headers=headers)


def _wants_representation(request: Request) -> bool:
    asked = (one for line in request.headers.getlist("prefer") for one in line.lower().split(","))
    return any(one.partition(";")[0].replace(" ", "") == REPRESENTATION for one in asked)


def _location(path: str, body: Mapping[str, Any]) -> str:
    return ROOT + path.format(**{key: quote(str(one), safe=":") for key, one in body.items()})


def _page(request: Request, http: Http, found: list[Any], ask: Any) -> Response:
    """`next` is what the next page goes on from; null on the last one. `more` tells that the list was cut.

    `searched_to` tells that a search stopped there; it goes on from there, too.
    """
    bound = _bound(ask)
    most = len(found) if bound is None else getattr(ask, bound)
    from_end = http.page is not None and http.page.ends and getattr(ask, http.page.cursor) is None
    more = len(found) > most
    data = to_json(found[-most:] if from_end else found[:most])
    goes_on = more and data and http.page is not None and not from_end
    following = data[-1][http.page.key] if goes_on and http.page is not None else None
    searched_to = getattr(found, "searched_to", None)
    body = {}
    if searched_to is not None and not more:
        following, more, body = searched_to, True, {"searched_to": searched_to}
    headers = {}
    if following is not None:
        query = [(key, one) for key, one in request.query_params.multi_items() if key != CURSOR]
        query.append((CURSOR, str(following)))
        headers["Link"] = f'<{request.url.path}?{urlencode(query)}>; rel="next"'
    body = {"data": data, "next": following, "more": more} | body
    return JSONResponse(body, status_code=http.status, headers=headers)
