"""Generates the reference page of the tools from their definitions."""

from collections.abc import Mapping
from typing import Any

from lamplighter.domain.access import RIGHTS, Role
from lamplighter.domain.events import PRODUCT_FAMILIES
from lamplighter.mcp.tools import Tool, tools

_FAMILIES = ", ".join(f"`{family}.*`" for family in sorted(PRODUCT_FAMILIES))
_INTRODUCTION = f"""\
# Tools for agents

The Model Context Protocol, over standard input and output (`lamp mcp`) and over stateless streamable HTTP at `/mcp`,
where a bearer token says who calls. A run's own token completes that run, repeats the same completion, and, for as
long as the run goes on, emits events; other tools are not shown to it. Events of the families
that Lamplighter itself emits ({_FAMILIES}) are refused to everybody.
"""


def reference() -> str:
    return "\n".join([_INTRODUCTION, *(_section(tool) for tool in tools())])


def _section(tool: Tool) -> str:
    note = " A run's token may call it." if tool.verb in RIGHTS[Role.RUN] else ""
    properties: Mapping[str, Mapping[str, Any]] = tool.schema["properties"]
    required = tool.schema["required"]
    rows = [
        f"| `{name}`{' (required)' if name in required else ''} | {_kind(schema)} | {schema.get('description', '')} |"
        for name, schema in properties.items()
    ]
    table = ["| argument | kind | meaning |", "|---|---|---|", *rows, ""] if rows else []
    return "\n".join([f"## `{tool.name}`", "", f"{tool.description}{note}", "", *table])


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    return f"list of {schema['items']['type']}s" if schema["type"] == "array" else str(schema["type"])
