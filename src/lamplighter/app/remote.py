"""Operations that a command has the running daemon carry out, over the control socket. It imports little."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lamplighter.adapters.control import VerbFailed
from lamplighter.adapters.control import ask as ask_daemon
from lamplighter.kit.errors import Kind, LampError
from lamplighter.kit.shapes import from_json, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.access import Actor
    from lamplighter.services.operation import Operation

WITHIN = 90.0
"""In seconds; longer than an effect takes by its own limits, unless it declares others."""


def carried_out_there(socket: Path, operation: "Operation[Any, Any]", ask: Any, actor: "Actor") -> Any:
    """Raises NotAnswered, and what the operation raises in the daemon, as an error of the same kind and words."""
    within = (operation.within or WITHIN) if operation.here_after is None else operation.here_after
    who = {"name": actor.name, "run": actor.run, "session": actor.session, "rig": actor.rig}
    answer = answer_of_daemon(socket, operation.name, to_json(ask), who, within=within)
    return from_json(operation.answer, answer, strict=False)


def answer_of_daemon(socket: Path, operation: str, ask: Any, actor: Mapping[str, str | None], *, within: float) -> Any:
    """The operation's answer as JSON. Raises NotAnswered, and what the operation raises in the daemon."""
    try:
        reply = ask_daemon(socket, "do", within=within, operation=operation, ask=ask, actor=actor)
    except VerbFailed:
        raise  # it may be half done, so nobody else does it again
    except LampError as error:
        raise NotAnswered(error) from error
    if "problem" in reply:
        raise told_error(reply["problem"])
    return reply["answer"]


class NotAnswered(LampError):
    """The daemon did not answer, or is of a version that does not know how to.

    `reached` is False if it certainly did not get the request: it does not listen yet, or no more.
    """

    kind = Kind.UNAVAILABLE

    def __init__(self, error: LampError) -> None:
        super().__init__(error.message, hint=error.hint)
        self.reached = not isinstance(error.__cause__, (FileNotFoundError, ConnectionRefusedError))


def left_to_command(error: LampError, operation: "Operation[Any, Any]") -> bool:
    """Whether a command carries out itself what the daemon did not: because it did not answer, or because its database
    is away and the command waits for it.
    """
    if isinstance(error, NotAnswered):
        return operation.here_after is not None or not error.reached
    return operation.patient and error.kind is Kind.UNAVAILABLE


def problem_of(error: LampError) -> dict[str, str]:
    return {"type": error.kind.value, "title": type(error).__name__, "detail": error.message, "hint": error.hint}


def told_error(problem: Mapping[str, str]) -> LampError:
    """The error that `problem_of` described; its class has the same name, so that it is shown in the same way."""
    made = type(problem["title"], (LampError,), {"kind": Kind(problem["type"])})
    error: LampError = made(problem["detail"], hint=problem["hint"])
    return error
