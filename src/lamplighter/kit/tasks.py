"""Background tasks that no code awaits: their failures are logged, never lost."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from lamplighter.kit import log

R = TypeVar("R")


def spawn(work: Coroutine[Any, Any, R], *, name: str) -> "asyncio.Task[R]":
    """Start `work` as a task of its own; an exception that ends it is logged as `task.failed`."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(tell_failure)
    return task


def tell_failure(task: "asyncio.Task[Any]") -> None:
    """A done callback that logs a task's failure; for tasks that `spawn` did not make."""
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        log.get().error("task.failed", task=task.get_name(), exc_info=error)
