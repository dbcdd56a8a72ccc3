"""One call of an outside program: bytes in, bytes out, with a time limit, a size limit, and nothing left running."""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lamplighter.kit.errors import LampError, Unavailable

CALL_SECONDS = 30.0
PIPE_SECONDS = 2.0
"""How long what a program started may hold its output open after the program itself has ended."""
LONGEST_OUTPUT = 32 << 20
LONGEST_COMPLAINT = 64 << 10
_GLANCE_SECONDS = 0.1
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Limits:
    call_seconds: float = CALL_SECONDS
    pipe_seconds: float = PIPE_SECONDS
    longest_output: int = LONGEST_OUTPUT


@dataclass(frozen=True)
class Answer:
    exit_code: int
    output: bytes
    complaint: str
    """What it wrote to standard error, or the end of it."""


@dataclass(frozen=True)
class Program:
    """Runs in `directory` with `env`; the clock is the caller's. `setting` is where a person named it."""

    path: str
    directory: Path
    env: Mapping[str, str]
    monotonic: Callable[[], float]
    limits: Limits = Limits()
    setting: str = "[beads] provider"

    def call(self, args: Sequence[str], stdin: bytes = b"", *, env: Mapping[str, str] | None = None) -> Answer:
        """Raises Unavailable when it cannot be started, CallTooLong or AnswerTooLong when it goes over its limits."""
        try:
            process = subprocess.Popen(
                [self.path, *args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.directory,
                env={**self.env, **(env or {})},
                start_new_session=True,  # a process group of its own, so that all of it can be ended
            )
        except (OSError, ValueError) as error:
            raise self._not_started(error) from error
        with process:
            try:
                return _Exchange(self, process, args, stdin).run()
            finally:
                _end(process)

    def _not_started(self, error: OSError | ValueError) -> Unavailable:
        why = error.strerror if isinstance(error, OSError) else error
        return Unavailable(
            f"{self.path} cannot be run: {why}.",
            hint=f"Check that it is there and executable, and what {self.setting} in city.toml says.",
        )


def script_path(script: str, city: Path, search: str | None) -> str:
    """The script as it is run: below the city for a relative path, else looked for along `search`."""
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


class _Exchange:
    """The pipes of one call."""

    def __init__(self, program: Program, process: "subprocess.Popen[bytes]", args: Sequence[str], stdin: bytes) -> None:
        self._program = program
        self._process = process
        self._call = " ".join([program.path, *args[:2]])
        self._unsent = memoryview(stdin)
        self._output = bytearray()
        self._complaint = bytearray()
        self._deadline = program.monotonic() + program.limits.call_seconds
        self._pipes_until: float | None = None

    def run(self) -> Answer:
        with selectors.DefaultSelector() as selector:
            self._watch(selector)
            while selector.get_map() and not self._pipes_overdue():
                for key, _ in selector.select(_GLANCE_SECONDS):
                    if not key.data(key.fd):
                        selector.unregister(key.fileobj)
                        key.fileobj.close()  # type: ignore[union-attr]  # what _watch registered are files
                self._check_time()
        self._wait()
        complaint = bytes(self._complaint).decode(errors="replace").strip()
        return Answer(self._process.returncode, bytes(self._output), complaint)

    def _watch(self, selector: selectors.BaseSelector) -> None:
        process = self._process
        pipes: list[tuple[IO[bytes] | None, int, Callable[[int], bool]]] = [
            (process.stdin, selectors.EVENT_WRITE, self._send),
            (process.stdout, selectors.EVENT_READ, self._take_output),
            (process.stderr, selectors.EVENT_READ, self._take_complaint),
        ]
        for pipe, event, handler in pipes:
            assert pipe is not None  # noqa: S101  Popen was asked for all three
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, event, handler)

    def _send(self, fd: int) -> bool:
        """Whether there is more to send; a program that does not read what it is told is not wrong for that."""
        try:
            self._unsent = self._unsent[os.write(fd, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return bool(self._unsent)

    def _take_output(self, fd: int) -> bool:
        chunk = _read(fd)
        self._output += chunk or b""
        if len(self._output) > self._program.limits.longest_output:
            raise AnswerTooLong(self._call, self._program.limits.longest_output)
        return chunk != b""

    def _take_complaint(self, fd: int) -> bool:
        chunk = _read(fd)
        self._complaint = (self._complaint + (chunk or b""))[-LONGEST_COMPLAINT:]
        return chunk != b""

    def _check_time(self) -> None:
        now = self._program.monotonic()
        if self._process.poll() is None:
            if now >= self._deadline:
                raise CallTooLong(self._call, self._program.limits.call_seconds)
        elif self._pipes_until is None:
            self._pipes_until = now + self._program.limits.pipe_seconds

    def _pipes_overdue(self) -> bool:
        return self._pipes_until is not None and self._program.monotonic() >= self._pipes_until

    def _wait(self) -> None:
        """It may close its pipes first and end later."""
        try:
            self._process.wait(max(self._deadline - self._program.monotonic(), 0))
        except subprocess.TimeoutExpired:
            raise CallTooLong(self._call, self._program.limits.call_seconds) from None


def _read(fd: int) -> bytes | None:
    """Nothing at the end, None when there is nothing yet."""
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The whole group: also what the program left behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
