"""How events with fields become lines of the log: bound context, the masking of secrets, rendering."""

import io
import re
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO, cast

import structlog

from lamplighter.kit.masking import MASK, is_secret, masked

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_QUOTED = re.compile("[ \\t=\\r\\n\"']")  # the renderer quotes such values and escapes their control characters
_STEERING_BUT_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def mask_fields(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if is_secret(key):
            event[key] = MASK
        elif isinstance(value, str):
            event[key] = masked(value)
    return event


def escape_fields(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape line breaks and terminal control characters, so that foreign text cannot pass for a log line of ours."""
    for key, value in event.items():
        if isinstance(value, str) and (key == "event" or not _QUOTED.search(value)):
            event[key] = _STEERING.sub(_escaped, value)
    return event


def set_up(stream: TextIO | None, *, level: int, json: bool) -> None:
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
    """Tracebacks omit the values of variables: they may hold secrets, and printing a whole city takes minutes."""
    if not json:
        console = structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=24, exception_formatter=_write_traceback)
        return [escape_fields, console]
    frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    return [structlog.processors.ExceptionRenderer(frames), structlog.processors.JSONRenderer()]


def _write_traceback(out: TextIO, error: Any) -> None:
    text = io.StringIO()
    structlog.dev.plain_traceback(text, error)
    out.write(_STEERING_BUT_LINES.sub(_escaped, text.getvalue()))


def _escaped(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode()


class _Unbreakable:
    """A stream whose reader may go away and whose disk may be full: the line is then lost, and the work goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):  # ValueError when it was closed
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            return
