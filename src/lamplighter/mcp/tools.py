"""The tools, each a thin layer over a service; `domain.access` decides which caller may use which."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lamplighter.domain.access import Caller, Verb
from lamplighter.domain.runs.completion import ALIAS, TOOL, parse
from lamplighter.kit.errors import NotFound, Unavailable
from lamplighter.mcp import bead_tools
from lamplighter.mcp.arguments import Arguments
from lamplighter.mcp.schemas import COMPLETION, Schema, arguments, free, text
from lamplighter.services.toolbox import CityDesk, Toolbox

Call = Callable[[Toolbox, Caller, Mapping[str, Any]], Awaitable[Any]]


@dataclass(frozen=True)
class Tool:
    """`there` tells whether the toolbox has the service behind the tool."""

    name: str
    description: str
    schema: Schema
    verb: Verb
    call: Call
    there: Callable[[Toolbox], bool]


class ToolUnknown(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no tool {name} here.", hint="List the tools to see those there are.")


def offered(toolbox: Toolbox, caller: Caller) -> list[Tool]:
    """The tools that the caller may use; the others are hidden, so that a run's agent does not try them in vain."""
    return [tool for tool in TOOLS if tool.there(toolbox) and caller.may(tool.verb)]


def find(name: str, toolbox: Toolbox, caller: Caller) -> Tool:
    """Raises ToolUnknown, also for a tool that this caller may not use."""
    wanted = TOOL if name == ALIAS else name
    for tool in offered(toolbox, caller):
        if tool.name == wanted:
            return tool
    raise ToolUnknown(name)


async def _complete(toolbox: Toolbox, caller: Caller, given: Mapping[str, Any]) -> Any:
    service = _there(toolbox.completion)
    done = await service.complete(parse(given), caller=caller)
    word = "was already recorded" if done.replayed else "is recorded"
    return {"run": done.run, "state": done.state.value, "replayed": done.replayed, "message": f"The completion {word}."}


async def _run_get(toolbox: Toolbox, caller: Caller, given: Mapping[str, Any]) -> Any:
    args = Arguments(given)
    run = args.need("run_id")
    args.check()
    return dict(await _there(toolbox.completion).run(run, caller=caller))


async def _automation_list(toolbox: Toolbox, caller: Caller, _given: Mapping[str, Any]) -> Any:
    return {"automations": list(await _there(toolbox.automations).automations(caller=caller))}


async def _automation_create(toolbox: Toolbox, caller: Caller, given: Mapping[str, Any]) -> Any:
    made = await _there(toolbox.automations).create({**given, "enabled": False}, caller=caller)
    return {"automation": made, "message": "It is stored and disabled; a person has to enable it."}


async def _event_emit(toolbox: Toolbox, caller: Caller, given: Mapping[str, Any]) -> Any:
    args = Arguments(given)
    kind, subject, message = args.need("type"), args.text("subject"), args.text("message")
    args.check()
    await _there(toolbox.desk).emit(caller, kind, subject=subject, message=message, payload=args.any("payload"))
    return {"type": kind, "subject": subject, "emitted": True}


def _bead(name: str, description: str, schema: Schema, verb: Verb, call: bead_tools.Call) -> Tool:
    async def wrapped(toolbox: Toolbox, caller: Caller, given: Mapping[str, Any]) -> Any:
        desk: CityDesk = _there(toolbox.desk)
        return await desk.with_beads(caller, call(Arguments(given), caller))

    return Tool(name, description, schema, verb, wrapped, _has_desk)


def _has_completion(toolbox: Toolbox) -> bool:
    return toolbox.completion is not None


def _has_automations(toolbox: Toolbox) -> bool:
    return toolbox.automations is not None


def _has_desk(toolbox: Toolbox) -> bool:
    return toolbox.desk is not None


def _there(service: Any) -> Any:
    if service is None:
        raise Unavailable("The service behind this tool is not running here.", hint="Ask the city's own server.")
    return service


TOOLS = (
    Tool(
        TOOL,
        "Report the end of your run: succeeded, failed, or needs_human. Mandatory before you stop.",
        COMPLETION, Verb.COMPLETE_RUN, _complete, _has_completion,
    ),
    Tool(
        "event_emit", "Append a fact of your own to the city's event bus; automations may wait for it.",
        arguments(
            {"type": text("Words joined by dots, such as deploy.finished; not of a family that Lamplighter emits."),
             "subject": text("What it is about."), "message": text("A sentence for people."),
             "payload": free("Data for programs.")},
            "type",
        ),
        Verb.EMIT_EVENT, _event_emit, _has_desk,
    ),
    Tool("run_get", "A run with its state, timeline and artifacts.",
         arguments({"run_id": text("The run's id.")}, "run_id"), Verb.READ, _run_get, _has_completion),
    Tool("automation_list", "All automations with their triggers and next times.", arguments({}), Verb.READ,
         _automation_list, _has_automations),
    Tool(
        "automation_create", "Propose an automation; it is stored disabled until a person enables it.",
        arguments(
            {"name": text("Its name."), "description": text("What it is for."), "rig": text("The rig it belongs to."),
             "action": free("One of kind exec, formula or agent, with its keys."),
             "triggers": {"type": "array", "items": {"type": "object"}, "description": "What makes it fire."},
             "policies": free("Overlap, retry, deadline, budget and the like.")},
            "name", "action",
        ),
        Verb.WRITE, _automation_create, _has_automations,
    ),
    *(_bead(*row) for row in bead_tools.ROWS),
)  # fmt: skip
