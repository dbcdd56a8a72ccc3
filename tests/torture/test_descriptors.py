"""Descriptors run short: a thousand agents under the usual limits and under few, many commands under very few."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from drill_city import Town, descriptors_of, processes_of, wait_for

AGENTS = 1000
KILLED = 50
COMMANDS = 60
NAP = f"98765.{os.getpid()}"
"""What every agent sleeps for: nobody else's processes have it."""


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    found = Town(tmp_path / "town")
    yield found
    found.close()
    for pid in processes_of(NAP):
        os.kill(pid, signal.SIGKILL)


def declare_agents(town: Town) -> None:
    agents = (f'[[agents]]\nname = "a{number:04}"\nstart_command = "sleep {NAP}"\n' for number in range(AGENTS))
    town.configure('[daemon]\npatrol_interval = "5s"\nshutdown_timeout = "10s"\n' + "".join(agents))


def relight(counts: dict[str, object], living: set[int]) -> None:
    """Kill some; all of them are there again, and none of the others was touched."""
    victims = set(random.Random(7).sample(sorted(living), KILLED))
    began = time.monotonic()
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    wait_for("not all were lit again", lambda: len(processes_of(NAP) - victims) >= len(living), seconds=120)
    counts["relit_after_s"] = round(time.monotonic() - began, 2)
    assert living - victims <= processes_of(NAP), "some that nobody killed are gone"


@pytest.mark.parametrize(("name", "limits"), [("usual", "ulimit -Hn 4096; ulimit -Sn 1024"), ("few", "ulimit -n 256")])
def test_a_thousand_agents_live_and_are_lit_again(
    town: Town, counts: dict[str, object], name: str, limits: str
) -> None:
    declare_agents(town)
    pid = town.up(limits, seconds=120)
    counts["up_after_s"] = wait_for("not all came up", lambda: len(processes_of(NAP)) >= AGENTS, seconds=600)
    living = processes_of(NAP)
    assert len(living) == AGENTS
    wait_for("it is still busy", lambda: descriptors_of(pid) < 100, seconds=60)
    counts |= {"limits": name, "agents": len(living), "descriptors": descriptors_of(pid)}
    soft = Path(f"/proc/{living.pop()}/limits").read_text().split("Max open files")[1].split()[0]
    counts["soft_limit_of_an_agent"] = int(soft)
    assert int(soft) == (1024 if name == "usual" else 256), "an agent has not the limit the daemon was started with"

    relight(counts, processes_of(NAP))
    assert town.status()["problems"] == {}
    wait_for("it did not stop", lambda: town.lamp("stop", seconds=300).returncode == 0, seconds=600)
    counts["left"] = len(processes_of(NAP))
    assert counts["left"] == 0


def test_a_city_with_almost_no_descriptors_says_what_it_cannot_start_and_goes_on(
    town: Town, counts: dict[str, object]
) -> None:
    """More than it has are taken away from it, and given back: what runs is supervised all the time."""
    agents = "".join(f'[[agents]]\nname = "a{number}"\nstart_command = "sleep {NAP}"\n' for number in range(5))
    town.configure('[daemon]\npatrol_interval = "2s"\n' + agents)
    pid = town.up("ulimit -n 256")
    wait_for("not all came up", lambda: len(processes_of(NAP)) == 5, seconds=60)

    set_limit(pid, descriptors_of(pid) + 4)
    victim = min(processes_of(NAP))
    os.kill(victim, signal.SIGKILL)
    wait_for("nothing was told", lambda: any(name.startswith("agent") for name in problems(town)), seconds=60)
    assert "too few free file descriptors" in str(town.status()["problems"])
    assert "file descriptors" in town.lamp("doctor").stdout
    assert "agent.start_failed" in town.said()
    counts |= {"living_meanwhile": len(processes_of(NAP)), "problems": sorted(problems(town))}
    assert len(processes_of(NAP)) == 4

    set_limit(pid, 256)
    counts["lit_after_s"] = wait_for("it was not lit again", lambda: len(processes_of(NAP)) == 5, seconds=60)
    wait_for("what is over is still told", lambda: problems(town) == {}, seconds=30)
    assert town.lamp("stop", seconds=120).returncode == 0
    assert processes_of(NAP) == set()


def set_limit(pid: int, most: int) -> None:
    import resource

    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, hard))


def problems(town: Town) -> dict[str, str]:
    found: dict[str, str] = town.status().get("problems", {})
    return found


def test_sixty_commands_under_a_limit_of_64_run_once_each(town: Town, counts: dict[str, object]) -> None:
    town.configure('[daemon]\npatrol_interval = "2s"\n')
    for number in range(COMMANDS):
        text = f'gate = "cooldown"\ninterval = "1h"\nexec = "echo {number} >>lines; sleep 4"\n'
        town.automate(f"nap{number}", text)
    pid = town.up("ulimit -n 64")
    before = descriptors_of(pid)

    def ended() -> bool:
        found = town.runs()
        return len(found) == COMMANDS and all(run["ended_at"] is not None for run in found)

    counts["ended_after_s"] = wait_for("not every run ended", ended, seconds=120)
    states = Counter((run["state"], run["reason"]) for run in town.runs())
    written = Counter(town.lines("lines"))
    counts |= {"runs": {f"{state} {why}": count for (state, why), count in states.items()}, "lines": len(written)}
    assert set(written.values()) == {1}, "a command ran more than once"
    assert sum(count for (state, _), count in states.items() if state == "succeeded") == len(written)
    wait_for("descriptors were lost", lambda: descriptors_of(pid) <= before + 4, seconds=30)
    counts["descriptors"] = descriptors_of(pid)
    assert town.lamp("stop", seconds=120).returncode == 0


def test_a_city_without_a_single_descriptor_rests_until_there_are_some(town: Town, counts: dict[str, object]) -> None:
    """Nobody can even be told so meanwhile; but it does not spin, and nothing that runs is taken for dead."""
    agents = "".join(f'[[agents]]\nname = "a{number}"\nstart_command = "sleep {NAP}"\n' for number in range(5))
    town.configure('[daemon]\npatrol_interval = "1s"\n' + agents)
    pid = town.up("ulimit -n 256")
    wait_for("not all came up", lambda: len(processes_of(NAP)) == 5, seconds=60)
    living, before = processes_of(NAP), cpu_seconds(pid)
    set_limit(pid, 3)  # below all that are open
    callers = [town.call("daemon", "status") for _ in range(5)]
    time.sleep(10)
    counts["cpu_s_of_10"] = round(cpu_seconds(pid) - before, 2)
    set_limit(pid, 256)
    for caller in callers:
        caller.wait(60)
    assert cpu_seconds(pid) - before < 5, "it spins"
    wait_for("it does not answer", lambda: town.status().get("running") is True, seconds=60)
    wait_for("what is over is still told", lambda: problems(town) == {}, seconds=60)
    assert processes_of(NAP) == living
    os.kill(min(living), signal.SIGKILL)
    counts["lit_after_s"] = wait_for("it was not lit again", lambda: len(processes_of(NAP) - living) == 1, seconds=60)
    assert town.lamp("stop", seconds=120).returncode == 0
    assert processes_of(NAP) == set()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
