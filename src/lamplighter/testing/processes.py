"""Other processes for tests: a script in an interpreter of its own that speaks line by line."""

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
        """The next line it says, empty when it has ended; the test's own time limit bounds the wait."""
        return self.out.readline().rstrip("\n")

    def say(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone; what it had said can still be read."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self.out.close()
        assert self.process.stdin is not None
        self.process.stdin.close()


class Children:
    """Starts scripts and sees to it that none outlives the test."""

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
