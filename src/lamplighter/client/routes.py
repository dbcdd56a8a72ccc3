"""An operation and its request as an HTTP request, and the answer that comes back as the operation's answer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, get_origin
from urllib.parse import quote

from lamplighter.kit.errors import Unavailable, UsageError
from lamplighter.kit.shapes import from_json, key_of, to_json
from lamplighter.services.guarding import takes_key
from lamplighter.services.operation import CURSOR, REPRESENTATION, ROOT, WITHOUT_BODY, Http, Kind, Operation
from lamplighter.services.searching import Found

A = TypeVar("A")

USUAL_S = 120.0
"""How many seconds an answer may take: longer than an effect by its own limits, and the city's wait for its store."""
MARGIN_S = 30.0
KEY = "Idempotency-Key"


class NotOverHttp(UsageError):
    def __init__(self, operation: str) -> None:
        super().__init__(
            f"{operation} cannot be asked over HTTP: it concerns the machine that the city is on.",
            hint="Ask it there, with `lamp`.",
        )


class AnswerUnknown(Unavailable):
    def __init__(self, operation: str, why: list[str]) -> None:
        super().__init__(
            f"The city answers {operation} otherwise than this program expects: {'; '.join(why[:3])}.",
            hint="It was done. Use the city's own version of the program: `lamp version` here and there.",
        )


@dataclass(frozen=True)
class Asked:
    """An HTTP request: `path` begins at the city's address, `repeats` tells that asking twice does no harm."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeats: bool = False
    within: float = USUAL_S


def asked(operation: Operation[Any, Any], ask: Any, *, key: str | None = None) -> Asked:
    """`key` makes sure that what is asked for twice is done once. Raises NotOverHttp, UsageError."""
    http = _route(operation)
    kind = operation.request if operation.reads is None else operation.fields_of
    values: dict[str, Any] = to_json(ask) if operation.writes is None else dict(operation.writes(ask))
    keys = {one.name: key_of(one) for one in fields(kind)}
    path = ROOT + re.sub(r"{(\w+)}", lambda found: _segment(values, found[1], keys, operation), http.path)
    headers = {} if http.status != 204 else {"Prefer": REPRESENTATION}
    keyed = takes_key(operation) and key is not None
    if keyed and key is not None:
        headers[KEY] = key
    safe = keyed or operation.repeatable or http.method == "GET"
    within = USUAL_S if operation.within is None else operation.within + MARGIN_S
    if http.method in WITHOUT_BODY:
        return Asked(http.method, path, tuple(_query(values)), None, headers, safe, within)
    return Asked(http.method, path, (), values, headers, safe, within)


def _route(operation: Operation[Any, Any]) -> Http:
    if operation.http is None:
        raise NotOverHttp(operation.name)
    return operation.http


def _segment(values: dict[str, Any], name: str, keys: Mapping[str, str], operation: Operation[Any, Any]) -> str:
    """A name in the path, which then need not be told again."""
    value = str(values.pop(keys[name], None) or "")
    if not value:
        raise UsageError(f"{operation.name} asks for a name: `{name}` is empty.", hint=f"Name the {name}.")
    return quote(value, safe=":") if value.strip(".") else value.replace(".", "%2E")  # else it would be a way upwards


def _query(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    many = {key: value if isinstance(value, list) else [value] for key, value in values.items() if value is not None}
    return [(key, _text(one)) for key, found in many.items() for one in found]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def following(operation: Operation[Any, Any], ask: Any, last: str | None) -> Asked:
    """A stream, after the item whose id was `last`. Raises NotOverHttp, UsageError."""
    if operation.kind is not Kind.STREAM:
        raise UsageError(f"{operation.name} is no stream.", hint="Ask it with `do`.")
    made = asked(operation, ask)
    headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": last})
    return Asked(made.method, made.path, made.query, None, headers, made.repeats)


def answered(operation: Operation[Any, A], body: Any) -> A:
    """The operation's answer from JSON. Keys that are not known are left out: the city may be newer than this."""
    if get_origin(operation.answer) is list:
        wrapped = body if isinstance(body, dict) else {}
        items = read(operation, wrapped.get("data"))
        return Found(items, wrapped.get("searched_to"))  # type: ignore[return-value,arg-type]  # A is a list
    if operation.answer is None:
        return None  # type: ignore[return-value]  # A is None then
    return read(operation, body)


def read(operation: Operation[Any, A], data: Any) -> A:
    """An answer or an item of a stream from JSON. Raises AnswerUnknown."""
    try:
        made: A = from_json(operation.answer, data, strict=False)
    except UsageError as error:
        raise AnswerUnknown(operation.name, [one.told for one in error.misfits]) from error
    return made


def next_page(operation: Operation[Any, Any], asked_before: Asked, body: Any) -> Asked | None:
    """The request for the page after this one; None after the last."""
    following = body.get("next")
    http = _route(operation)
    if following is None or http.page is None:
        return None
    cursors = {CURSOR, http.page.cursor}
    query = (*(one for one in asked_before.query if one[0] not in cursors), (CURSOR, str(following)))
    return Asked(asked_before.method, asked_before.path, query, None, asked_before.headers, repeats=True)
