"""The daemon killed fifty times beside agents in tmux, while other clients of the server come and go."""

import subprocess
from pathlib import Path

from drill_city import LAMP, environment, wait_for
from tmux_storms import beside_agents_in_tmux

from lamplighter.testing.processes import Children

KILLS = 50


def test_kills_beside_agents_in_tmux(city: Path, processes: Children, counts: dict[str, object]) -> None:
    try:
        server = beside_agents_in_tmux(city, processes, KILLS, counts)
    finally:
        subprocess.run([*LAMP, "stop", "--city", str(city)], check=True, env=environment(), capture_output=True)
    counts["left"] = len(server.holders())
    wait_for("a process of tmux is left", lambda: not server.processes(), seconds=60)
