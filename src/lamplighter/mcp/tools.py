"""The tools for agents, made from the operations that name one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from lamplighter.domain.access import Actor, Verb
from lamplighter.domain.runs.completion import ALIAS, ASK_TOOL, TOOL
from lamplighter.kit.errors import NotFound
from lamplighter.kit.shapes import schema_of, to_json
from lamplighter.services import table
from lamplighter.services.automations.queries import PAGE
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.operation import Operation

SURFACE = "tool"
_FIRST = (
    TOOL,
    "event_emit",
    "run_get",
    "automation_list",
    "automation_create",
    ASK_TOOL,
    "automation_notes",
    "automation_cursor",
)
"""The order in which tools are listed; the others follow as in the table of operations."""


@dataclass(frozen=True)
class Tool:
    name: str
    operation: Operation[Any, Any]

    @property
    def description(self) -> str:
        return self.operation.summary

    @property
    def schema(self) -> dict[str, Any]:
        return schema_of(self.operation.fields_of)

    @property
    def verb(self) -> Verb:
        return self.operation.verb

    async def call(self, city: CityOperations, actor: Actor, given: Mapping[str, Any]) -> Any:
        """Arguments that are not known are ignored: some programs add their own to every tool."""
        ask = self.operation.asked(given, strict=False)
        answer = to_json(await city.do(self.operation, ask, actor, surface=SURFACE))
        if self.name in _WRAPPED:
            return _WRAPPED[self.name](answer)
        return {f"{self.operation.subject}s": answer} if isinstance(answer, list) else answer


class ToolUnknown(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no tool {name} here.", hint="List the tools to see those there are.")


@cache
def tools() -> tuple[Tool, ...]:
    made = [Tool(one.tool, one) for one in table.every() if one.tool is not None]
    return tuple(sorted(made, key=lambda tool: _FIRST.index(tool.name) if tool.name in _FIRST else len(_FIRST)))


def offered(actor: Actor) -> list[Tool]:
    """The tools that the actor may use; the others are hidden, so that a run's agent does not try them in vain."""
    return [tool for tool in tools() if actor.may(tool.verb)]


def find(name: str, actor: Actor) -> Tool:
    """Raises ToolUnknown, also for a tool that this actor may not use."""
    wanted = TOOL if name == ALIAS else name
    for tool in offered(actor):
        if tool.name == wanted:
            return tool
    raise ToolUnknown(name)


def _completed(answer: Any) -> Any:
    word = "was already recorded" if answer["replayed"] else "is recorded"
    more = f" {answer['message']}" if answer.get("message") else ""
    return {**answer, "message": f"The completion {word}.{more}"}


def _asked(answer: Any) -> Any:
    word = "was already asked" if answer["replayed"] else "is asked"
    return {**answer, "message": f"The question {word}. End your turn now: you go on when a person has answered."}


def _with_ids_of_children(answer: Any) -> Any:
    return {**answer, "children": [child["id"] for child in answer["children"]]}


def _automations(answer: Any) -> Any:
    found = {"automations": answer}
    if len(answer) == PAGE:
        found["message"] = f"There may be more: pass `after` as {answer[-1]['scoped_name']} to see those that follow."
    return found


def _proposed(answer: Any) -> Any:
    return {"automation": answer, "message": "It is stored and disabled; a person has to enable it."}


_WRAPPED: Mapping[str, Callable[[Any], Any]] = {
    "bead_get": _with_ids_of_children,
    TOOL: _completed,
    ASK_TOOL: _asked,
    "automation_list": _automations,
    "automation_create": _proposed,
}
"""How a tool's answer differs from the operation's: a sentence for the model, ids for beads."""
