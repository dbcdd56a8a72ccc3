"""A city that a real `lamp up` serves, and the system's Chromium."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Browser, Page, Playwright

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
PATIENCE_MS = 90_000
AGENT = "sh -c 'echo ready; while read line; do echo heard $line; done'"
ASKER = (
    'sh -c \'until [ -e ask ]; do sleep 0.1; done; echo rm -rf build; echo -n \\"Delete it? (y/n) \\"; '
    "read line; echo said $line; exec sleep 999'"
)
CITY = f"""
[workspace]
name = "town"

[session]
provider = "subprocess"

[api]
port = 0

[[notifications.destinations]]
name = "desk"
kind = "command"
command = "cat >> told.json"

[[agents]]
name = "watchman"
start_command = "{AGENT}"

[[agents]]
name = "asker"
start_command = "{ASKER}"
"""


def chromium() -> str:
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    raise AssertionError(
        "The tests of the console need Chromium and it was not found; install Debian's package `chromium`, "
        "then run make test again."
    )


@contextmanager
def launched(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
    try:
        yield browser
    finally:
        browser.close()


@dataclass
class Town:
    root: Path
    url: str = ""
    link_printed: str = ""
    """The link to its console that `lamp up` printed; it signs in once."""

    def lamp(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "lamplighter", "--city", str(self.root), *words],
            capture_output=True, text=True, check=False, timeout=180,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def ask(self, path: str, body: object) -> dict[str, Any]:
        """Over HTTP, which is faster than a command."""
        return self._asked("POST", path, json=body)

    def read(self, path: str) -> dict[str, Any]:
        return self._asked("GET", path)

    def _asked(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        token = (self.root / ".gc" / "owner.token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        to = f"{self.url}/api/v1{path}"
        answer = httpx2.request(method, to, headers=headers, timeout=180, trust_env=False, **more)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def connect(self, name: str) -> dict[str, str]:
        """Make a connection; the headers that prove its deliveries."""
        secret = self.ask("/connections", {"name": name, "provider": "bearer"})["secret"]
        return {"Authorization": f"Bearer {secret}"}

    def deliver(self, connection: str, proof: dict[str, str], body: object) -> str:
        """The id of the delivery."""
        to = f"{self.url}/hooks/{connection}"
        answer = httpx2.post(to, headers=proof, json=body, timeout=180, trust_env=False)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def create(self, name: str, command: str) -> None:
        self.ask("/automations", {"name": name, "gate": "manual", "exec": command})

    def run(self, name: str) -> str:
        """The id of the new run."""
        return str(self.ask(f"/automations/{name}/run", {})["id"])

    def link(self) -> str:
        return self.lamp("open", "--print")

    def release(self, name: str) -> None:
        (self.root / name).touch()


def a_town(root: Path) -> Town:
    command = [sys.executable, "-m", "lamplighter", "init", str(root), "--name", "town"]
    subprocess.run(command, check=True, capture_output=True, timeout=180)
    (root / "city.toml").write_text(CITY)
    filed = root / ".gc" / "formulas" / "automations" / "filed" / "automation.toml"
    filed.parent.mkdir(parents=True)
    filed.write_text("# a file that people wrote\n\n[automation]\ngate = 'manual'\nexec = 'true'\n")
    stand_in(root)
    return Town(root)


def stand_in(root: Path) -> Path:
    """A script under the name of a preset's program, which speaks and reports as that does; no account is needed."""
    program = root / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{(HERE.parents[1] / 'tools' / 'pretend_agent.py').read_text()}")
    program.chmod(0o755)
    return program


def fill(town: Town) -> None:
    """`quick` ends at once; `wait` prints 80 lines, then a line for each file `more`, until there is `done`."""
    wait = (
        'i=0; while [ $i -lt 80 ]; do i=$((i+1)); echo "line $i"; done; '
        "while [ ! -e done ]; do if [ -e more ]; then rm more; echo one more; fi; sleep 0.05; done; "
        "rm done; echo the end"
    )
    town.create("quick", "printf '\\033[32mlit\\033[0m\\n'")
    town.create("wait", f"cd {town.root}; {wait}")
    town.create("breaks", "echo no >&2; exit 3")


@contextmanager
def up(town: Town) -> Iterator[str]:
    """Runs the city; gives the link to its console that `lamp up` prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lamplighter", "--city", str(town.root), "up"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PATH": f"{town.root}/bin:{os.environ['PATH']}"},
    )  # fmt: skip
    try:
        link = ""
        for line in process.stdout or ():
            if "/sign-in/" in line:
                link = line.strip()
            if line.startswith("Stop:"):
                break
        assert link, "lamp up did not print the console's address"
        town.url = link.partition("/sign-in/")[0]
        yield link
    finally:
        process.terminate()
        process.wait(timeout=180)
        if process.stdout is not None:
            process.stdout.close()


@dataclass
class Watched:
    """What a page said and asked for that it should not have."""

    url: str
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> Page:
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda said: self.errors.append(said.text) if said.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda asked: None if self._own(asked) else self.foreign.append(asked.url))
        return page

    def _own(self, asked: Any) -> bool:
        return str(asked.url).startswith((self.url, "data:"))


def browser_files() -> None:
    """The browser files of others, which are made when the package is built; here in case it was built before them."""
    build = Path(__file__).parents[2] / "tools" / "browser" / "build.py"
    subprocess.run([sys.executable, str(build)], check=True, timeout=300)
