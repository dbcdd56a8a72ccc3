"""A city in a directory of its own for a drill, run by a daemon with limits of its own, and counted from outside."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LAMP = [sys.executable, "-m", "lamplighter"]
AUTOMATIONS = ".gc/formulas/automations"


def environment() -> dict[str, str]:
    """This process's, without what would lead `lamp` to another city."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("LAMP_", "GC_"))}


def wait_for(what: str, check: Callable[[], bool], *, seconds: float) -> float:
    """How long it took; fails when that is more than `seconds`."""
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < seconds, what
        time.sleep(0.1)
    return round(time.monotonic() - began, 2)


class Town:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.daemon: subprocess.Popen[bytes] | None = None
        subprocess.run([*LAMP, "init", str(root)], check=True, env=environment(), capture_output=True)

    def lamp(self, *arguments: str, seconds: float = 60) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*LAMP, *arguments, "--city", str(self.root)],
            check=False, capture_output=True, text=True, timeout=seconds, env=environment(),
        )  # fmt: skip

    def call(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Without waiting for its end."""
        silent = subprocess.DEVNULL
        return subprocess.Popen(
            [*LAMP, *arguments, "--city", str(self.root)], env=environment(), stdout=silent, stderr=silent
        )

    def json(self, *arguments: str) -> Any:
        done = self.lamp(*arguments, "--json")
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    def configure(self, text: str) -> None:
        head = '[workspace]\nname = "town"\n[session]\nprovider = "subprocess"\n[api]\nport = 0\n'
        (self.root / "city.toml").write_text(head + text)

    def automate(self, name: str, text: str) -> None:
        folder = self.root / AUTOMATIONS / name
        folder.mkdir(parents=True)
        (folder / "automation.toml").write_text(f"[automation]\n{text}")

    def up(self, prelude: str = "", *, within: tuple[str, ...] = (), seconds: float = 180) -> int:
        """Its process, once it answers; `prelude` is what a shell does first, such as setting its limits."""
        script = f'{prelude}\nexec "$0" -m lamplighter up --city "$1"'
        with (self.root / "log").open("ab") as log:
            self.daemon = subprocess.Popen(
                [*within, "/bin/sh", "-c", script, sys.executable, str(self.root)],
                env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        wait_for(f"it did not come up: {self.said()}", lambda: self.status().get("running") is True, seconds=seconds)
        return int(self.status()["pid"])

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.lamp("daemon", "status", "--json").stdout or "{}")
        return found

    def said(self) -> str:
        return (self.root / "log").read_text(errors="replace")

    def runs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json("run", "list", "--limit", "1000")
        return found

    def lines(self, name: str) -> list[str]:
        path = self.root / name
        return path.read_text().split() if path.exists() else []

    def close(self) -> None:
        if self.daemon is None:
            return
        if self.daemon.poll() is None:
            self.daemon.send_signal(signal.SIGTERM)
            try:
                self.daemon.wait(120)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
        self.daemon.wait()


def processes_of(word: str) -> set[int]:
    """Those that were called with exactly this as their last argument, and live."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if len(words) == 3 and words[1] == word.encode():  # the program, the argument, the end
                found.add(int(entry.name))
    return found


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
