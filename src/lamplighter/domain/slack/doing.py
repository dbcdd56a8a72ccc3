"""What a thread shows of an agent at work: the kinds of what it does, never what it is given or what comes of it."""

from collections.abc import Iterable

THINKS = "works"
MOST = 4
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("verifies", ("verify", "test")),
    ("plans", ("todo", "plan")),
    ("changes files", ("edit", "write", "patch", "replace", "file_change", "create_file", "delete_file")),
    ("runs commands", ("bash", "shell", "exec", "command", "terminal")),
    ("hands work on", ("task", "subagent", "delegate")),
    ("asks the web", ("web", "fetch", "browse")),
)


def kind_of(tool: str) -> str:
    """The kind of what a tool does, in our own words; empty for one that is not worth telling, such as reading."""
    name = tool.lower()
    return next((kind for kind, marks in _KINDS if any(mark in name for mark in marks)), "")


def doing(before: str, tools: Iterable[str]) -> str:
    """What is shown after these tools were begun: the last few kinds, each once in a row."""
    kinds = [] if before in {"", THINKS} else before.split(", ")
    for kind in filter(None, map(kind_of, tools)):
        if kind in kinds:
            kinds.remove(kind)
        kinds.append(kind)
    return ", ".join(kinds[-MOST:]) or before
