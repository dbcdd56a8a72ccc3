"""Sends warnings of the HTTP library to our own log, as one line without a traceback."""

import logging
from collections.abc import Callable
from typing import Any

_TOLD_ALREADY = "Exception in ASGI application"


def web_logger(tell: Callable[..., None]) -> logging.Logger:
    """A logger that is not registered by name, so that the logging set-up of the process stays unchanged."""
    logger = logging.Logger("lamp.web", logging.WARNING)  # noqa: LOG001  getLogger would register it for all
    logger.addHandler(_Handler(tell))
    return logger


class _Handler(logging.Handler):
    def __init__(self, tell: Callable[..., None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Skips a bug of a route: `on_bug` has logged it with its traceback before the library sees it."""
        said = record.getMessage().strip()
        if said == _TOLD_ALREADY:
            return
        fields: dict[str, Any] = {"said": said[:300]}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = repr(record.exc_info[1])[:300]
        self._tell("web.warning", **fields)
