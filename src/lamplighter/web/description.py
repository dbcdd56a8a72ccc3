"""The description of the API for programs and for people: `/api/openapi.json` and `/api/docs`.

Both are the same for every city and need no token. The page is plain HTML without a script.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from lamplighter.web.openapi import description

OPENAPI_PATH = "/api/openapi.json"
DOCS_PATH = "/api/docs"
OPEN = frozenset({OPENAPI_PATH, DOCS_PATH})
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 0.9em ui-monospace, monospace; }
nav a { margin-right: 0.7em; }
section > h3 { margin-bottom: 0; }
.method { display: inline-block; min-width: 4.5em; font-weight: 600; }
table { border-collapse: collapse; margin: 0.5rem 0; }
td, th { text-align: left; vertical-align: top; padding: 0.1rem 1rem 0.1rem 0; }
details { margin: 0.5rem 0; }
pre { overflow-x: auto; padding: 0.5rem; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def routes() -> list[Route]:
    async def openapi(_request: Request) -> Response:
        return Response(written(), media_type="application/json")

    async def docs(_request: Request) -> Response:
        return HTMLResponse(page(), headers={"Content-Security-Policy": _POLICY})

    return [Route(OPENAPI_PATH, openapi), Route(DOCS_PATH, docs)]


@lru_cache(maxsize=1)
def written() -> str:
    """The description as it is committed and served."""
    return json.dumps(description(), indent=1, ensure_ascii=False) + "\n"


@lru_cache(maxsize=1)
def page() -> str:
    return "\n".join(_page(description()))


def _page(api: Mapping[str, Any]) -> Iterator[str]:
    title = f"{escape(api['info']['title'])} API v{escape(api['info']['version'])}"
    yield f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{_STYLE}</style></head><body><main><h1>{title}</h1>"
    for paragraph in api["info"]["description"].split("\n\n"):
        yield f"<p>{_text(paragraph)}</p>"
    yield f'<p>The same for programs: <a href="{OPENAPI_PATH}">{OPENAPI_PATH}</a>.</p><nav aria-label="Subjects">'
    for tag in api["tags"]:
        yield f'<a href="#{escape(tag["name"])}">{escape(tag["name"])}</a>'
    yield "</nav>"
    for tag in api["tags"]:
        yield f'<h2 id="{escape(tag["name"])}">{escape(tag["name"])}</h2>'
        for path, methods in api["paths"].items():
            for method, one in methods.items():
                if tag["name"] in one["tags"]:
                    yield from _operation(api["servers"][0]["url"] + path, method, one)
    yield '<h2 id="shapes">Shapes</h2>'
    for name, schema in api["components"]["schemas"].items():
        yield f'<section id="shape-{escape(name)}"><h3>{escape(name)}</h3>{_keys(schema)}</section>'
    yield "</main></body></html>"


def _operation(path: str, method: str, one: Mapping[str, Any]) -> Iterator[str]:
    yield f'<section id="{escape(one["operationId"])}"><h3><span class="method">{method.upper()}</span> '
    yield f"<code>{escape(path)}</code></h3><p>{_text(one['summary'])} {_text(one['description'])}</p>"
    if one["parameters"]:
        rows = {item["name"]: item["schema"] | {"description": item["description"]} for item in one["parameters"]}
        needed = [item["name"] for item in one["parameters"] if item.get("required")]
        yield f"<p>Parameters</p>{_table(rows, needed)}"
    if "requestBody" in one:
        yield f"<p>Body</p>{_keys(one['requestBody']['content']['application/json']['schema'])}"
    for status, answer in one["responses"].items():
        for media, content in answer.get("content", {}).items():
            shape = _type(content.get("x-item", content["schema"]))
            yield f"<p>Answers {status}, <code>{escape(media)}</code>: {shape}</p>"
    yield "</section>"


def _keys(schema: Mapping[str, Any]) -> str:
    told = f"<p>{_text(schema['description'])}</p>" if schema.get("description") else ""
    others = "<p>More keys are taken.</p>" if schema.get("additionalProperties") is True else ""
    return told + _table(schema.get("properties", {}), schema.get("required", [])) + others


def _table(keys: Mapping[str, Any], needed: list[str]) -> str:
    rows = [
        f"<tr><td><code>{escape(key)}</code></td><td>{_type(one)}{', needed' if key in needed else ''}</td>"
        f"<td>{_text(one.get('description', ''))}{_bounds(one)}</td></tr>"
        for key, one in keys.items()
    ]
    return f"<table>{''.join(rows)}</table>" if rows else "<p>None.</p>"


def _bounds(one: Mapping[str, Any]) -> str:
    words = {"minimum": "at least", "maximum": "at most", "default": "when left out"}
    told = [f"{word} {escape(str(one[key]))}" for key, word in words.items() if one.get(key) not in (None, "")]
    return f" ({'; '.join(told)})" if told else ""


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#shape-{escape(name)}">{escape(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(one))}</code>" for one in schema["enum"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    if kind == "object" and "data" in schema.get("properties", {}):
        return f"page of {_type(schema['properties']['data']['items'])}"
    return escape(" or ".join(kind) if isinstance(kind, list) else schema.get("format", kind))


def _text(text: str) -> str:
    """Escaped, with what stands between backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{one}</code>" if number % 2 else one for number, one in enumerate(parts))
