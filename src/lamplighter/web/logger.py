"""What the HTTP library says, in our own log: a line without a traceback, however often it says it."""

import logging
from collections.abc import Callable
from typing import Any

_TOLD_ALREADY = "Exception in ASGI application"


def web_logger(tell: Callable[..., None]) -> logging.Logger:
    """It is known to nobody by name, so that nothing of the process's logging changes."""
    logger = logging.Logger("lamp.web", logging.WARNING)  # noqa: LOG001  by name it would be everybody's
    logger.addHandler(_Handler(tell))
    return logger


class _Handler(logging.Handler):
    def __init__(self, tell: Callable[..., None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """A bug of a route has been logged with its traceback by `on_bug`, before the library hears of it."""
        said = record.getMessage().strip()
        if said == _TOLD_ALREADY:
            return
        fields: dict[str, Any] = {"said": said[:300]}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = repr(record.exc_info[1])[:300]
        self._tell("web.warning", **fields)
