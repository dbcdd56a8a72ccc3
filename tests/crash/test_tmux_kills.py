"""The daemon is killed while its agents are in tmux: the server outlives it, and nothing of it is left in the end."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from test_killed_controller import wait_for
from tmux_storms import beside_agents_in_tmux

from lamplighter.testing.processes import Children

Lamp = Callable[..., "subprocess.CompletedProcess[str]"]
KILLS = 4


def test_a_tmux_server_outlives_killed_daemons_and_a_stop_leaves_nothing(
    city: Path, lamp: Lamp, processes: Children
) -> None:
    try:
        server = beside_agents_in_tmux(city, processes, KILLS, {})
        assert len(server.holders()) == 1
    finally:
        assert lamp("stop").returncode == 0
    wait_for(lambda: not server.processes(), "a process of tmux is left")
