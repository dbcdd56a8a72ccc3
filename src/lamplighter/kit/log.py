"""Logging of events with fields. Its library is loaded with the first logged line, because most commands log none."""

from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

INFO, WARNING = 20, 30


def set_up(stream: TextIO | None = None, *, level: int = INFO, json: bool = False) -> None:
    """Called once, when a process starts. Colours only on a terminal; with `json`, one JSON object a line."""
    from lamplighter.kit import log_lines

    log_lines.set_up(stream, level=level, json=json)


def get() -> "FilteringBoundLogger":
    import structlog

    if not structlog.is_configured():
        set_up(level=WARNING)  # a command: it prints its own output, and logs only what went wrong
    return cast("FilteringBoundLogger", structlog.get_logger())
