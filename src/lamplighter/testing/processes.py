"""Child processes for tests: a script in its own interpreter, which is talked to line by line."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class Child:
    def __init__(self, *command: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    @property
    def out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def line(self) -> str:
        """The next line of its output, empty if it has ended; only the test's own time limit bounds the wait."""
        return self.out.readline().rstrip("\n")

    def say(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """Send SIGKILL and wait for the end; earlier output can still be read."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self.out.close()
        assert self.process.stdin is not None
        self.process.stdin.close()


class Children:
    """Starts processes and kills those that still run at `close`, so that none outlives the test."""

    def __init__(self) -> None:
        self._started: list[Child] = []

    def start(self, *command: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Child:
        child = Child(*command, cwd=cwd, env=env)
        self._started.append(child)
        return child

    def script(self, path: Path, *arguments: str) -> Child:
        return self.start(sys.executable, str(path), *arguments)

    def close(self) -> None:
        for child in reversed(self._started):
            child.close()


@contextmanager
def children() -> Iterator[Children]:
    kept = Children()
    try:
        yield kept
    finally:
        kept.close()
