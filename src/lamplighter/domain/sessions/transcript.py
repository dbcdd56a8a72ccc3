"""What a session said and did, program by program the same: the events of its transcript."""

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
    """The program waits for the next message or exits. `ok` is its own word for it, and proves nothing."""

    kind: ClassVar[str] = "turn_ended"
    ok: bool = True
    reason: str = ""


@dataclass(frozen=True)
class Failed:
    kind: ClassVar[str] = "error"
    message: str


@dataclass(frozen=True)
class Usage:
    """What was used since the last such event; to be summed."""

    kind: ClassVar[str] = "usage"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None


SessionEvent = Text | ToolStarted | ToolEnded | TurnEnded | Failed | Usage


@dataclass(frozen=True)
class Parsed:
    """What one line of output tells: events, and the program's own id of the session where it is named."""

    events: tuple[SessionEvent, ...] = field(default=())
    session_id: str = ""
