"""The events of a session's transcript, in one form for all agent programs."""

from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True)
class Text:
    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True)
class ToolStarted:
    kind: ClassVar[str] = "tool_started"
    tool_id: str
    name: str
    detail: str = ""


@dataclass(frozen=True)
class ToolEnded:
    kind: ClassVar[str] = "tool_ended"
    tool_id: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True)
class TurnEnded:
    """The program waits for the next message or exits. `ok` is what the program claims, and proves nothing."""

    kind: ClassVar[str] = "turn_ended"
    ok: bool = True
    reason: str = ""


@dataclass(frozen=True)
class Failed:
    kind: ClassVar[str] = "error"
    message: str


@dataclass(frozen=True)
class Usage:
    """Usage since the last such event; the total is the sum of all of them."""

    kind: ClassVar[str] = "usage"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None


SessionEvent = Text | ToolStarted | ToolEnded | TurnEnded | Failed | Usage


@dataclass(frozen=True)
class Parsed:
    """What one line of output contains: events, and the program's own session id if the line names it.

    `is_piece` says that its text is a piece of what the program is still saying; the next such line continues it.
    """

    events: tuple[SessionEvent, ...] = field(default=())
    session_id: str = ""
    is_piece: bool = False
