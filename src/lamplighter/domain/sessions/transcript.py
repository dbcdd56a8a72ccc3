"""The events of a session's transcript, in one form for all agent programs."""

from dataclasses import field
from typing import ClassVar

from lamplighter.kit.records import record


@record
class Text:
    kind: ClassVar[str] = "text"
    text: str


@record
class ToolStarted:
    kind: ClassVar[str] = "tool_started"
    tool_id: str
    name: str
    detail: str = ""


@record
class ToolEnded:
    kind: ClassVar[str] = "tool_ended"
    tool_id: str
    ok: bool
    detail: str = ""


@record
class TurnEnded:
    """The program waits for the next message or exits. `ok` is what the program claims, and proves nothing."""

    kind: ClassVar[str] = "turn_ended"
    ok: bool = True
    reason: str = ""


@record
class Failed:
    kind: ClassVar[str] = "error"
    message: str


@record
class Usage:
    """Usage since the last such event; the total is the sum of all of them."""

    kind: ClassVar[str] = "usage"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None


SessionEvent = Text | ToolStarted | ToolEnded | TurnEnded | Failed | Usage


@record
class Parsed:
    """What one line of output contains: events, and the program's own session id if the line names it.

    `is_piece` says that its text is a piece of what the program is still saying; the next such line continues it.
    """

    events: tuple[SessionEvent, ...] = field(default=())
    session_id: str = ""
    is_piece: bool = False
