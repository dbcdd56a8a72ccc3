"""Runs git commands, with a time limit and without prompts."""

import contextlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

from lamplighter.adapters.processes.child import (  # fmt: skip
    Call,
    Ended,
    NotStarted,
    TookTooLong,
    TooMuchOutput,
    run_child,
    run_child_here,
)
from lamplighter.ports.worktrees import GitFailed

LIMIT = timedelta(seconds=120)
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_ADVICE": "0"}


class Git:
    """Git gets `env` without its GIT_ variables, which could point it to another repository, and `more`.

    Calling the object is asynchronous, and cancelling the caller ends git; `run` blocks, for code without an event
    loop.
    """

    def __init__(
        self, env: Mapping[str, str], *, limit: timedelta = LIMIT, more: Mapping[str, str] | None = None
    ) -> None:
        self._env = {key: value for key, value in env.items() if not key.startswith("GIT_")} | _QUIET | dict(more or {})
        self._limit = limit

    def with_index(self, index: Path) -> "Git":
        """The same with another file as the index, so that what is staged in the repository stays as it is."""
        made = Git(self._env, limit=self._limit)
        made._env["GIT_INDEX_FILE"] = str(index)
        return made

    def run(self, cwd: Path, *args: str) -> str:
        """What it printed. Raises GitFailed."""
        with _told(args):
            return _printed(args, run_child_here(self._call(cwd, args)))

    async def __call__(self, cwd: Path, *args: str) -> str:
        """What it printed. Raises GitFailed."""
        with _told(args):
            return _printed(args, await run_child(self._call(cwd, args)))

    async def ok(self, cwd: Path, *args: str) -> bool:
        """Whether it succeeded, for commands that answer a question by their exit code."""
        with _told(args):
            return (await run_child(self._call(cwd, args))).exit_code == 0

    def _call(self, cwd: Path, args: tuple[str, ...]) -> Call:
        return Call(("git", *args), cwd, self._env, self._limit)


@contextlib.contextmanager
def _told(args: tuple[str, ...]) -> Iterator[None]:
    try:
        yield
    except NotStarted as error:
        raise GitFailed(args[0], error.reason) from error
    except TookTooLong as error:
        raise GitFailed(args[0], f"it took longer than {error.seconds:g} s") from None
    except TooMuchOutput as error:
        raise GitFailed(args[0], f"it printed more than {error.most} bytes") from None


def _printed(args: tuple[str, ...], ended: Ended) -> str:
    if ended.exit_code != 0:
        lines = ended.complaint.decode("utf-8", "replace").strip().splitlines()
        raise GitFailed(args[0], (lines[-1] if lines else f"exit code {ended.exit_code}").rstrip("."))
    return ended.output.decode("utf-8", "surrogateescape")
