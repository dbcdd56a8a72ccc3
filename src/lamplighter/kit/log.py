"""Logs are events with fields: set-up, bound context, and the masking of secrets."""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO, cast

import structlog

_SECRET_FIELD = re.compile(
    r"(token|secret|password|passwd|api_?key|authorization|credential|private_key)", re.IGNORECASE
)
_URL_PASSWORD = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://[^:/@\s]*):[^@/\s]+@", re.IGNORECASE)

MASK = "•••"


def masked(text: str) -> str:
    """`text` with the password of every URL in it covered."""
    return _URL_PASSWORD.sub(rf"\g<scheme>:{MASK}@", text)


def mask_fields(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if _SECRET_FIELD.search(key):
            event[key] = MASK
        elif isinstance(value, str):
            event[key] = masked(value)
    return event


def set_up(stream: TextIO | None = None, *, level: int = logging.INFO, json: bool = False) -> None:
    """Called once, at a process edge. Colours only on a terminal; one JSON object a line where asked for."""
    out = stream or sys.stderr
    last: list[Any] = (
        [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
        if json
        else [structlog.dev.ConsoleRenderer(colors=out.isatty(), pad_event_to=24)]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            cast("Any", mask_fields),
            *last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )


def get() -> structlog.typing.FilteringBoundLogger:
    return cast("structlog.typing.FilteringBoundLogger", structlog.get_logger())
