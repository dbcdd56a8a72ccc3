"""Calls an outside program: bytes in, bytes out, with a time limit, a size limit, and its process group ended."""

import shutil
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from lamplighter.adapters.processes.child import (
    LONGEST_OUTPUT,
    Call,
    NotStarted,
    TookTooLong,
    TooMuchOutput,
    run_child_here,
)
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.records import record

CALL_SECONDS = 30.0


@record
class Limits:
    call_seconds: float = CALL_SECONDS
    longest_output: int = LONGEST_OUTPUT


@record
class Answer:
    exit_code: int
    output: bytes
    complaint: str
    """The end of what it wrote to standard error."""


@record
class Program:
    """Runs in `directory` with `env`. `setting` is the setting in city.toml that names the program."""

    path: str
    directory: Path
    env: Mapping[str, str]
    limits: Limits = Limits()
    setting: str = "[beads] provider"

    def call(self, args: Sequence[str], stdin: bytes = b"", *, env: Mapping[str, str] | None = None) -> Answer:
        """Raises Unavailable when it cannot be started, CallTooLong or AnswerTooLong when it goes over its limits."""
        what = " ".join([self.path, *args[:2]])
        try:
            ended = run_child_here(self._child(args, stdin, env or {}))
        except NotStarted as error:
            raise self._not_started(error.reason) from error
        except TookTooLong as error:
            raise CallTooLong(what, error.seconds) from None
        except TooMuchOutput as error:
            raise AnswerTooLong(what, error.most) from None
        return Answer(ended.exit_code, ended.output, ended.complaint.decode(errors="replace").strip())

    def _child(self, args: Sequence[str], stdin: bytes, env: Mapping[str, str]) -> Call:
        return Call(
            (self.path, *args),
            self.directory,
            {**self.env, **env},
            timedelta(seconds=self.limits.call_seconds),
            stdin=stdin,
            longest_output=self.limits.longest_output,
            ends_helpers=True,
        )

    def _not_started(self, why: str) -> Unavailable:
        return Unavailable(
            f"{self.path} cannot be run: {why}.",
            hint=f"Check that it is there and executable, and what {self.setting} in city.toml says.",
        )


def script_path(script: str, city: Path, search: str | None) -> str:
    """The path of the script: a relative one is below the city, a bare name that is not there is sought in `search`."""
    path = Path(script).expanduser()
    if path.is_absolute():
        return str(path)
    inside = city / path
    if inside.exists() or len(path.parts) > 1:
        return str(inside)
    return shutil.which(script, path=search) or str(inside)


class CallTooLong(Unavailable):
    def __init__(self, call: str, seconds: float) -> None:
        super().__init__(
            f"`{call}` gave no answer within {seconds:g} seconds and was ended.",
            hint="Run it by hand to see what it waits for.",
        )


class AnswerTooLong(LampError):
    def __init__(self, call: str, most: int) -> None:
        super().__init__(
            f"`{call}` wrote more than {most} bytes and was ended.",
            hint="Let it answer with less; what is closed can be purged.",
        )
