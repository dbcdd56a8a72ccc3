"""Logs are events with fields: set-up, bound context, and the masking of secrets."""

import sys
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, TextIO, cast

from lamplighter.kit.masking import MASK, is_secret, masked

if TYPE_CHECKING:
    import structlog  # loaded with the first line that is logged: most commands log none

INFO, WARNING = 20, 30


def mask_fields(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if is_secret(key):
            event[key] = MASK
        elif isinstance(value, str):
            event[key] = masked(value)
    return event


def set_up(stream: TextIO | None = None, *, level: int = INFO, json: bool = False) -> None:
    """Called once, at a process edge. Colours only on a terminal; one JSON object a line where asked for."""
    import structlog

    out = _Unbreakable(stream or sys.stderr)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            cast("Any", mask_fields),
            *_renderers(json=json, colors=out.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", out)),
        cache_logger_on_first_use=False,
    )


def _renderers(*, json: bool, colors: bool) -> list[Any]:
    """Tracebacks without the values of variables: those hold secrets, and to print a city's takes minutes."""
    import structlog

    if not json:
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=24, exception_formatter=plain)]
    frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    return [structlog.processors.ExceptionRenderer(frames), structlog.processors.JSONRenderer()]


class _Unbreakable:
    """A stream whose reader may leave and whose disk may fill: a line is lost then, and the work goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):  # the latter when it was closed
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            return


def get() -> "structlog.typing.FilteringBoundLogger":
    import structlog

    if not structlog.is_configured():
        set_up(level=WARNING)  # a command: what it prints is its own, and only what went wrong is logged beside it
    return cast("structlog.typing.FilteringBoundLogger", structlog.get_logger())
