"""The description of the API (OpenAPI 3.1), made from the table of operations and our own types."""

import re
from dataclasses import Field, fields, replace
from typing import Any, get_args, get_origin

from lamplighter.domain.access import RIGHTS, Role
from lamplighter.kit.schemas import WHERE, Schema, Schemas, is_needed
from lamplighter.kit.shapes import key_of
from lamplighter.services import table
from lamplighter.services.guarding import takes_key
from lamplighter.services.operation import CURSOR, REPRESENTATION, ROOT, WITHOUT_BODY, Http, Kind, Operation
from lamplighter.web.errors import MEDIA_TYPE
from lamplighter.web.following import MEDIA_TYPE as EVENT_STREAM

VERSION = "1"
JSON = "application/json"
_SUMMARY = re.compile(r" ?(?:Exits? .*|Ctrl-C ends it\.|`lamp .*|Such as: .*)$")
ABOUT = """\
Everything that can be asked of a city of coding agents, as JSON over HTTP. Each operation is also a command of `lamp`.

Send a token as `Authorization: Bearer TOKEN`. Lists answer `{data, next, more}`: pass `next` as `after` to go on.
Errors are problem JSON (RFC 9457). Times are RFC 3339 in UTC; absent values are null. Unknown keys of a request are
errors, and an answer may have more keys one day. The conventions are told in `docs/reference/http-api.md`."""
PROBLEM: Schema = {
    "type": "object",
    "description": "What went wrong, and what to do next (RFC 9457).",
    "properties": {
        "type": {"type": "string", "description": "The kind of error, for programs."},
        "title": {"type": "string"},
        "detail": {"type": "string", "description": "What happened, in a sentence."},
        "hint": {"type": "string", "description": "What to do next."},
        "status": {"type": "integer"},
        "instance": {"type": "string", "description": "The id of the request."},
        "errors": {
            "type": "array",
            "description": "The values that are wrong.",
            "items": {
                "type": "object",
                "properties": {
                    "pointer": {"type": "string", "description": "A JSON pointer (RFC 6901) to the value."},
                    "detail": {"type": "string"},
                },
                "required": ["pointer", "detail"],
            },
        },
    },
    "required": ["type", "title", "detail", "hint", "status"],
}
REFUSALS = {
    400: "The request is not right; `errors` names the values.",
    401: "No valid token was shown.",
    403: "The token's role does not have the right, or the request came from a page of another site.",
    404: "What was named is not there.",
    409: "It does not fit what is there now.",
    412: "It has changed since it was read: `If-Match` names another version.",
    413: "The body is too large.",
    422: "It was understood and cannot be done; also an `Idempotency-Key` that was used for another request.",
    429: "Too many requests came with this token; try again after `Retry-After` seconds.",
    503: "The database or another program does not answer; try again after `Retry-After` seconds.",
}


def description() -> dict[str, Any]:
    """The whole description; the same for every city of this version."""
    schemas = Schemas()
    schemas.named["Problem"] = PROBLEM
    paths: dict[str, dict[str, Any]] = {}
    for operation in table.every():
        if operation.http is not None:
            path = paths.setdefault(operation.http.path, {})
            path[operation.http.method.lower()] = _operation(operation, operation.http, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lamplighter", "version": VERSION, "description": ABOUT},
        "servers": [{"url": ROOT}],
        "security": [{"token": []}],
        "tags": [
            {"name": name} for name in dict.fromkeys(one.subject for one in table.every() if one.http is not None)
        ],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {f"Problem{status}": _refusal(said) for status, said in REFUSALS.items()},
            "schemas": dict(sorted(schemas.named.items())),
        },
    }


def _refusal(said: str) -> Schema:
    return {"description": said, "content": {MEDIA_TYPE: {"schema": {"$ref": WHERE + "Problem"}}}}


def _operation(operation: Operation[Any, Any], http: Http, schemas: Schemas) -> dict[str, Any]:
    whole_summary = " ".join((_kind(operation).__doc__ or "").strip().split("\n\n")[0].split())
    summary = _SUMMARY.sub("", whole_summary)
    made: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.subject],
        "summary": summary or whole_summary,
        "description": f"Needs the right `{operation.verb.value}`, which {_holders(operation)} have.",
        "parameters": _parameters(operation, http, schemas),
    }
    if http.method not in WITHOUT_BODY:
        made["requestBody"] = _body(operation, http, schemas)
    made["responses"] = {str(http.status): _answer(operation, http, schemas)}
    if http.status == 204:
        made["responses"]["200"] = _answer(operation, replace(http, status=200), schemas)
    if operation.version is not None and operation.kind is Kind.READ:
        made["responses"]["304"] = {"description": "What `If-None-Match` names still holds."}
    made["responses"] |= {str(status): {"$ref": f"#/components/responses/Problem{status}"} for status in REFUSALS}
    return made


def _holders(operation: Operation[Any, Any]) -> str:
    roles = [one for one in Role if one is not Role.SYSTEM and operation.verb in RIGHTS[one]]
    words = [f"{role.value}s" if role is not Role.RUN else "tokens of runs" for role in roles]
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _parameters(operation: Operation[Any, Any], http: Http, schemas: Schemas) -> list[Schema]:
    kind = _kind(operation)
    inside = _in_path(http)
    found = [
        {"name": one.name, "in": "path", "required": True, **_described(kind, one, schemas, path=True)}
        for one in fields(kind)
        if one.name in inside
    ]
    if http.method in WITHOUT_BODY:
        found += [
            {"name": _query_key(one, http), "in": "query", **_described(kind, one, schemas)}
            | ({"required": True} if is_needed(one) else {})
            for one in fields(kind)
            if one.name not in inside
        ]
    return found + _headers(operation, http)


def _headers(operation: Operation[Any, Any], http: Http) -> list[Schema]:
    """What a client can ask for beside the request."""
    told = {}
    if takes_key(operation) and http.method == "POST":
        told["Idempotency-Key"] = "A repeated request with the same key has no second effect; kept for 24 hours."
    if http.status == 204:
        told["Prefer"] = f"`{REPRESENTATION}`: answer 200 with what was deleted in place of 204."
    if operation.version is not None and operation.kind is Kind.TRANSACTION:
        told["If-Match"] = "The ETag of what was read: if it has changed since, nothing is done."
    if operation.version is not None and operation.kind is Kind.READ:
        told["If-None-Match"] = "An ETag: 304 without a body if it still holds."
    return [
        {"name": name, "in": "header", "description": said, "schema": {"type": "string"}} for name, said in told.items()
    ]


def _described(kind: Any, one: "Field[Any]", schemas: Schemas, *, path: bool = False) -> Schema:
    schema = schemas.taken(kind, one)
    told = schema.pop("description", "")
    types = schema.get("type")
    if isinstance(types, list):  # a parameter that is left out has no value; there is no null in a path or a query
        schema["type"] = next(name for name in types if name != "null")
        if "enum" in schema:
            schema["enum"] = [value for value in schema["enum"] if value is not None]
    if path:
        schema.pop("default", None)
        schema["minLength"] = 1
    return {"description": told, "schema": schema}


def _query_key(one: "Field[Any]", http: Http) -> str:
    return CURSOR if http.page is not None and one.name == http.page.cursor else key_of(one)


def _body(operation: Operation[Any, Any], http: Http, schemas: Schemas) -> Schema:
    kind, inside = _kind(operation), _in_path(http)
    parts = [(kind, one) for one in fields(kind) if one.name not in inside and not one.metadata.get("whole")]
    whole = any(one.metadata.get("whole") for one in fields(kind))
    if whole and operation.form is not None:
        taken = {key_of(one) for _, one in parts}
        parts += [(operation.form, one) for one in fields(operation.form) if key_of(one) not in taken]
    schema: Schema = {
        "type": "object",
        "properties": {key_of(one): schemas.taken(of, one) for of, one in parts},
        "additionalProperties": whole or operation.reads is not None,
    }
    needed = [key_of(one) for of, one in parts if is_needed(one) and of is not operation.form]
    if operation.reads is not None:
        needed = [key_of(one) for _, one in parts if is_needed(one)]
    if needed:
        schema["required"] = needed
    return {"required": bool(needed) or whole, "content": {JSON: {"schema": schema}}}


def _answer(operation: Operation[Any, Any], http: Http, schemas: Schemas) -> Schema:
    if http.status == 204:
        return {"description": "Done."}
    if operation.kind is Kind.STREAM:
        item = schemas.of(operation.answer)
        said = "Server-sent events, each with an item as JSON in `data`; `event: end` where there will be no more."
        return {"description": said, "content": {EVENT_STREAM: {"schema": {"type": "string"}, "x-item": item}}}
    schema = schemas.of(operation.answer)
    if get_origin(operation.answer) is list:
        schema = _page(
            schemas.of(get_args(operation.answer)[0]),
            http,
            searches="query" in {one.name for one in fields(_kind(operation))},
        )
    answer: Schema = {"description": "The answer.", "content": {JSON: {"schema": schema}}}
    if operation.version is not None and operation.kind is Kind.READ:
        answer["headers"] = {"ETag": {"description": "Its version.", "schema": {"type": "string"}}}
    if http.location is not None:
        answer["headers"] = {"Location": {"description": "The path of what was made.", "schema": {"type": "string"}}}
    return answer


def _page(item: Schema, http: Http, *, searches: bool) -> Schema:
    following: Schema = {"type": ["string", "integer", "null"], "description": "The `after` of the next page."}
    if http.page is None:
        following = {"type": "null", "description": "This list has no second page."}
    more = {"type": "boolean", "description": "Whether the list was cut."}
    more_keys = {"searched_to": {"type": "string", "description": "Where a search stopped; `next` goes on from there."}}
    properties = {"data": {"type": "array", "items": item}, "next": following, "more": more}
    if searches:
        properties |= more_keys
    return {"type": "object", "properties": properties, "required": ["data", "next", "more"]}


def _kind(operation: Operation[Any, Any]) -> type[Any]:
    return operation.request if operation.reads is None else operation.fields_of


def _in_path(http: Http) -> set[str]:
    return set(re.findall(r"{(\w+)}", http.path))
