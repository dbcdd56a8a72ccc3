"""Runs a child process and waits for its end; used for all commands, checks, hooks, scripts and git.

A call ends when the child ends, not when its pipes close: a helper that the child left behind may hold them open for
any time. The child gets no descriptors but 0, 1 and 2. At its time limit, when it writes too much, and when the caller
is cancelled, the child is ended with every process it started, including those that moved to another process session:
each call has an id, which all descendants of its child carry in their environment.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from pathlib import Path

from lamplighter.adapters.processes.table import ENV_CHILD_ID
from lamplighter.kit import descriptors
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.kept_back import KEPT_BACK
from lamplighter.kit.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future  # importing it and asyncio takes a third of a short command's time

LONGEST_OUTPUT = 32 << 20
LONGEST_COMPLAINT = 64 << 10
_REAP_SECONDS = 5.0
_GLANCE_SECONDS = 0.05
_CHUNK = 1 << 16
_LARGEST_PIPE = 1 << 20


class Output(Enum):
    NONE = "none"
    """Not read at all."""
    END = "end"
    """The end of standard output and standard error, merged into one."""
    WHOLE = "whole"
    """All of standard output, or TooMuchOutput; and, separately, the end of standard error."""


@record
class Call:
    """`work_dir` None is the current directory of this process.

    With `ends_helpers`, processes that the child left in its process group are killed when it ends; else they go on.
    """

    command: Sequence[str]
    work_dir: str | Path | None
    env: Mapping[str, str]
    limit: timedelta
    stdin: bytes = b""
    output: Output = Output.WHOLE
    longest_output: int = LONGEST_OUTPUT
    ends_helpers: bool = False


@record
class Ended:
    """`exit_code` is the negative signal number for a child that a signal killed."""

    exit_code: int
    output: bytes
    complaint: bytes = b""


class NotStarted(Unavailable):
    def __init__(self, program: str, reason: str) -> None:
        super().__init__(f"{program} cannot be run: {reason}.", hint="Check that it is there and may be executed.")
        self.reason = reason


class TookTooLong(Unavailable):
    def __init__(self, program: str, limit: timedelta) -> None:
        self.seconds = limit.total_seconds()
        super().__init__(
            f"{program} took longer than {self.seconds:g} s and was ended.",
            hint="Run it by hand to see what it waits for.",
        )


class TooMuchOutput(LampError):
    def __init__(self, program: str, most: int) -> None:
        super().__init__(f"{program} wrote more than {most} bytes and was ended.", hint="Let it write less.")
        self.most = most


async def run_child(call: Call) -> Ended:
    """Raises NotStarted, TookTooLong and TooMuchOutput. When cancelled, it first ends all the child started."""
    import asyncio

    asked_to_stop, stop = _pipe(call)
    with contextlib.closing(os.fdopen(stop, "wb")) as stopping:
        try:
            ending = asyncio.wrap_future(_in_thread(lambda: _run(call, asked_to_stop)))
        except RuntimeError as error:  # the machine gives no more threads
            os.close(asked_to_stop)
            raise NotStarted(call.command[0], str(error)) from error
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            stopping.close()
            ending.add_done_callback(lambda done: done.exception())  # retrieved so that asyncio does not log it
            await asyncio.wait({ending})
            raise


def run_child_here(call: Call) -> Ended:
    """Like `run_child`, but blocking, for threads without an event loop."""
    return _run(call, None)


class _Stopped(Exception):
    """The caller of `run_child` was cancelled."""


def _pipe(call: Call) -> tuple[int, int]:
    try:
        return os.pipe()
    except OSError as error:
        raise NotStarted(call.command[0], error.strerror or str(error)) from error


def _in_thread(work: Callable[[], Ended]) -> "Future[Ended]":
    """Uses a thread of its own: the event loop's default threads are few, and a child may take long."""
    from concurrent.futures import Future

    done: Future[Ended] = Future()

    def fulfil() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001  the waiting caller gets it
            done.set_exception(error)

    threading.Thread(target=fulfil, name="child").start()
    return done


def _run(call: Call, asked_to_stop: int | None) -> Ended:
    """Closes `asked_to_stop`; the caller closes the other end of that pipe to have the child ended."""
    child_id = os.urandom(8).hex()
    try:
        process = _start(call, child_id)
        with _closing(process):
            try:
                return _Exchange(call, process, asked_to_stop).run()
            except BaseException:
                _end_tree(process, child_id)
                raise
    finally:
        if asked_to_stop is not None:
            os.close(asked_to_stop)


def _start(call: Call, child_id: str) -> "subprocess.Popen[bytes]":
    none = call.output is Output.NONE
    apart = subprocess.PIPE if call.output is Output.WHOLE else subprocess.STDOUT
    try:
        process = subprocess.Popen(
            list(call.command),
            cwd=call.work_dir,
            env={**without_keys(call.env), ENV_CHILD_ID: child_id},
            stdin=subprocess.PIPE if call.stdin else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if none else subprocess.PIPE,
            stderr=subprocess.DEVNULL if none else apart,
            close_fds=True,
            start_new_session=True,  # a process group of its own, so that all of it can be ended
        )
    except OSError as error:
        where = f"{error.filename}: " if str(error.filename) == str(call.work_dir) else ""
        raise NotStarted(call.command[0], f"{where}{error.strerror or error}") from error
    except ValueError as error:  # a zero byte in an argument or a variable
        raise NotStarted(call.command[0], str(error)) from error
    descriptors.limit_child(process.pid)
    return process


@contextlib.contextmanager
def _closing(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Close our ends of the pipes; Popen's own `__exit__` would flush unsent input and wait for the child."""
    try:
        yield
    finally:
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class _Exchange:
    """Feeds and reads the pipes of one child until it ends."""

    def __init__(self, call: Call, process: "subprocess.Popen[bytes]", asked_to_stop: int | None) -> None:
        self._call = call
        self._process = process
        self._asked_to_stop = asked_to_stop
        self._unsent = memoryview(call.stdin)
        self._output = bytearray()
        self._complaint = bytearray()
        self._ended = False
        self._monotonic = SystemClock().monotonic
        self._selector = selectors.PollSelector()  # takes no descriptor of its own

    def run(self) -> Ended:
        pidfd = _pidfd(self._process.pid)
        try:
            self._watch(pidfd)
            self._wait(glance=pidfd < 0)
            self._take_the_rest()
            if self._call.ends_helpers:
                _kill_group(self._process)
        finally:
            if pidfd >= 0:
                os.close(pidfd)
        return Ended(self._process.wait(), bytes(self._output), bytes(self._complaint))

    def _watch(self, pidfd: int) -> None:
        process, selector = self._process, self._selector
        for pipe, event, handler in (
            (process.stdin, selectors.EVENT_WRITE, self._send),
            (process.stdout, selectors.EVENT_READ, self._take_output),
            (process.stderr, selectors.EVENT_READ, self._take_complaint),
        ):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, event, handler)
        if pidfd >= 0:
            selector.register(pidfd, selectors.EVENT_READ, self._note_end)
        if self._asked_to_stop is not None:
            selector.register(self._asked_to_stop, selectors.EVENT_READ, self._stop)

    def _wait(self, *, glance: bool) -> None:
        """`glance` polls for the end of the child, for systems that give no pidfd."""
        deadline = self._monotonic() + self._call.limit.total_seconds()
        while not self._ended:
            left = deadline - self._monotonic()
            if left <= 0:
                raise TookTooLong(self._call.command[0], self._call.limit)
            for key, _ in self._selector.select(min(left, _GLANCE_SECONDS) if glance else left):
                if not key.data(key.fd):
                    self._close(key.fileobj)
            if glance and _has_ended(self._process):
                self._ended = True

    def _close(self, pipe: object) -> None:
        self._selector.unregister(pipe)  # type: ignore[arg-type]  # what _watch registered
        pipe.close()  # type: ignore[attr-defined]  # only handlers of pipes return False

    def _note_end(self, _fd: int) -> bool:
        self._ended = True
        return True

    def _stop(self, _fd: int) -> bool:
        raise _Stopped

    def _send(self, fd: int) -> bool:
        """Whether there is more to send; a child that closes its standard input unread is no error."""
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
        if len(self._output) > self._call.longest_output:
            if self._call.output is Output.WHOLE:
                raise TooMuchOutput(self._call.command[0], self._call.longest_output)
            del self._output[: -self._call.longest_output]
        return chunk != b""

    def _take_complaint(self, fd: int) -> bool:
        chunk = _read(fd)
        self._complaint += chunk or b""
        del self._complaint[:-LONGEST_COMPLAINT]
        return chunk != b""

    def _take_the_rest(self) -> None:
        """Read what is left in the pipes, at most one pipe's size each: a helper may go on writing for ever."""
        for pipe, take in ((self._process.stdout, self._take_output), (self._process.stderr, self._take_complaint)):
            for _ in range(_LARGEST_PIPE // _CHUNK):
                if pipe is None or pipe.closed or not take(pipe.fileno()):
                    break


def _read(fd: int) -> bytes | None:
    """Empty at the end of the stream; None when nothing has arrived yet."""
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return None


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Asked without reaping it where the system can: its number stays its own until its group has been ended."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _pidfd(pid: int) -> int:
    """A descriptor that becomes readable when the child ends; -1 when the system gives none."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1


def _end_tree(process: "subprocess.Popen[bytes]", child_id: str) -> None:
    """End the child and all it started, by TERM, then KILL; its process group is killed even if that fails."""
    from lamplighter.adapters.processes.child_ending import end_carriers  # few children are ended by us

    try:
        end_carriers(process.pid, child_id)
    finally:
        _kill_group(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_SECONDS)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process group, unless the child was reaped already: after that its number may be reused."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def without_keys(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in KEPT_BACK}
