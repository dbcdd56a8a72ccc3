"""A daemon killed again and again beside agents in tmux, while other clients of its server come and go."""

import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crew import JobPool
from test_killed_controller import AGENT, alive, starts, wait_for

from lamplighter.adapters.files.city import CityPaths
from lamplighter.app.sessions import tmux_socket
from lamplighter.testing.processes import Children

CITY = '[workspace]\nname = "town"\n[session]\nprovider = "tmux"\n[api]\nport = 0\n[daemon]\nmax_restarts = 0\n'
HOLDER = "lamp-line-"


@dataclass(frozen=True)
class Server:
    """The tmux server of a city, asked by a process of its own."""

    socket: Path

    def ask(self, *words: str) -> list[str]:
        asked = ["tmux", "-S", str(self.socket), *words]
        return subprocess.run(asked, check=False, capture_output=True, text=True).stdout.splitlines()

    @property
    def pid(self) -> str:
        return " ".join(self.ask("display-message", "-p", "#{pid}"))

    def holders(self) -> list[str]:
        """With how many clients are attached to each."""
        told = self.ask("list-sessions", "-F", "#{session_name} #{session_attached}")
        return [line for line in told if line.startswith(HOLDER)]

    def has_one_line(self) -> bool:
        return [line.partition(" ")[2] for line in self.holders()] == ["1"]

    def processes(self) -> list[int]:
        """The server itself and its clients, by the socket they were called with."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and os.fsencode(self.socket) in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found


@contextlib.contextmanager
def visitors(server: Server) -> Iterator[None]:
    """Clients of the server that come and go all the time."""
    script = 'while :; do tmux -S "$0" list-sessions; done'
    silent = subprocess.DEVNULL
    visiting = subprocess.Popen(["/bin/sh", "-c", script, str(server.socket)], stdout=silent, stderr=silent)
    try:
        yield
    finally:
        visiting.kill()
        visiting.wait()


def beside_agents_in_tmux(city: Path, processes: Children, kills: int, counts: dict[str, Any]) -> Server:
    """`counts` takes what came of it, before it is judged; the last daemon is dead at the end, its agents live."""
    names = [f"a{number}" for number in range(3 + kills // 4)]  # one that ends often is relit late
    (city / "starts").mkdir()
    agents = (f"[[agents]]\nname = \"{name}\"\nstart_command = '''{AGENT.format(name=name)}'''\n" for name in names)
    (city / "city.toml").write_text(CITY + "".join(agents))
    server = Server(tmux_socket(CityPaths(city), os.environ))
    chance, crew, servers, most = random.Random(5281), JobPool.hired(processes), set(), 0
    crew.live("one", city, "up")
    crew.up("one")
    wait_for(lambda: all(starts(city, name) for name in names), "not all were started")
    for turn in range(kills):
        name = names[turn % len(names)]
        before = starts(city, name)
        os.kill(before[-1], signal.SIGUSR1)
        wait_for(lambda name=name, before=before: len(starts(city, name)) > len(before), "it was not relit")
        if chance.random() < 0.7:  # else it is killed in the midst of something
            wait_for(server.has_one_line, f"one line: {server.holders()}")
        servers.add(server.pid)
        with visitors(server):
            crew.kill("one")
            crew.live("one", city, "up")
            crew.up("one")
        servers.add(server.pid)
        most = max(most, len(server.holders()))
    wait_for(server.has_one_line, f"one line: {server.holders()}")
    crew.kill("one")
    servers.add(server.pid)
    lives = {name: starts(city, name) for name in names}
    counts |= {
        "kills": kills + 1,
        "servers": len(servers),
        "starts": sum(map(len, lives.values())),
        "at work": sum(alive(pid) for pids in lives.values() for pid in pids),
        "most lines": most,
    }
    assert counts == counts | {"servers": 1, "starts": kills + len(names), "at work": len(names)}
    assert most <= 2, "the dead one's and the new one's"
    return server
