"""`lamp daemon restart`: a new daemon, the same agents and runs."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lamp_program import here, lamp, until

from lamplighter.adapters.control import ask
from lamplighter.app.membership import SAVED_COPY
from lamplighter.app.service_units import is_service

CITY = """\
[workspace]
name = "town"
[session]
provider = "subprocess"
[daemon]
shutdown_timeout = "2s"
[api]
port = {port}
[[agents]]
name = "mayor"
start_command = "exec sleep 600"
"""
SLOW = '[automation]\nexec = "echo $$ > {root}/begun; until test -e {root}/go; do sleep 0.05; done"\ngate = "manual"\n'


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    (root / "city.toml").write_text(CITY.format(port=0))
    folder = root / ".gc" / "formulas" / "automations" / "slow"
    folder.mkdir(parents=True)
    (folder / "automation.toml").write_text(SLOW.format(root=root))
    yield root
    assert here("stop", "--city", str(root)).code == 0


def mayor(root: Path) -> object:
    (row,) = here("agent", "list", "--json", "--city", str(root)).json
    return row["pid"] if row["state"] == "running" else None


def run_of(root: Path) -> dict[str, object]:
    (row,) = here("run", "list", "--json", "--city", str(root)).json
    found: dict[str, object] = row
    return found


def test_agents_and_runs_under_way_are_kept_by_a_daemon_restart_and_not_by_a_restart(town: Path) -> None:
    first = lamp("daemon", "start", "--json", cwd=town).json["pid"]
    agent = until(lambda: mayor(town))
    assert here("automation", "run", "slow", "--city", str(town)).code == 0
    begun = until(lambda: (town / "begun").exists() and (town / "begun").read_text())
    said = lamp("daemon", "restart", "--json", cwd=town)
    assert said.code == 0, said
    assert (said.json["before"], said.json["agents"]) == (first, 1)
    assert said.json["pid"] != first
    assert said.json["console"].startswith("http://")
    assert here("daemon", "status", "--json", "--city", str(town)).json["pid"] == said.json["pid"]
    assert until(lambda: mayor(town)) == agent
    (town / "go").touch()
    until(lambda: run_of(town)["state"] == "succeeded")
    assert (town / "begun").read_text() == begun, "the command ran on; it was not begun again"
    told = lamp("restart", cwd=town)
    assert told.code == 0, told
    assert "Its agent was stopped and is started anew; `lamp daemon restart` would have kept it." in told.out
    assert until(lambda: mayor(town)) != agent


def test_a_daemon_restart_starts_a_daemon_where_none_runs_or_one_is_leaving(town: Path) -> None:
    said = lamp("daemon", "restart", cwd=town)
    assert said.code == 0, said
    assert "No daemon ran; the city runs in the background now" in said.out
    agent = until(lambda: mayor(town))
    assert ask(town / ".gc" / "controller.sock", "leave")["agents"] == 1
    again = lamp("daemon", "restart", cwd=town)
    assert again.code == 0, again
    assert until(lambda: mayor(town)) == agent


def test_a_daemon_restart_that_could_not_start_again_ends_nothing(town: Path) -> None:
    first = lamp("daemon", "start", "--json", cwd=town).json["pid"]
    copy = town / ".gc" / f"{SAVED_COPY}.1"
    copy.touch()
    said = lamp("daemon", "restart", cwd=town)
    assert said.code != 0
    assert Path(f"/proc/{first}").exists()
    copy.unlink()


def test_a_daemon_restart_is_refused_while_the_files_want_what_its_agents_cannot_have(town: Path) -> None:
    first = lamp("daemon", "start", "--json", cwd=town).json["pid"]
    good = (town / "city.toml").read_text()
    (town / "city.toml").write_text(good.replace('provider = "subprocess"', 'provider = "fail"'))
    at = ("--city", str(town))
    until(lambda: here("daemon", "status", "--json", *at).json["config_error"])
    said = lamp("daemon", "restart", cwd=town)
    assert said.code != 0
    assert "session.provider: cannot change while the city runs; `lamp restart` restarts it" in said.err
    assert here("daemon", "status", "--json", *at).json["pid"] == first
    (town / "city.toml").write_text(good)


def test_a_start_tells_where_the_console_is_and_once_that_its_port_was_taken(town: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (town / "city.toml").write_text(CITY.format(port=port))
        said = lamp("daemon", "start", cwd=town)
        assert said.code == 0, said
        assert "Console: http://127.0.0.1:" in said.out
        assert f"not {port}: another program has that port" in said.err
        again = lamp("daemon", "restart", cwd=town)
        assert "Console: http://127.0.0.1:" in again.out
        assert "another program" not in again.err, "it is told once"


def test_only_the_process_of_the_service_manager_begins_again_by_itself() -> None:
    assert is_service({"SYSTEMD_EXEC_PID": "4711"}, 4711)
    assert is_service({"XPC_SERVICE_NAME": "city.lamplighter.town-3vkq8w"}, 4711)
    assert not is_service({"SYSTEMD_EXEC_PID": "1"}, 4711), "a program below a service inherits its variable"
    assert not is_service({}, 4711)


def test_a_service_begins_again_as_the_same_process(town: Path) -> None:
    starts = 'import os,sys; os.environ["SYSTEMD_EXEC_PID"]=str(os.getpid()); os.execv(sys.executable,sys.argv[1:])'
    daemon = subprocess.Popen(
        [sys.executable, "-c", starts, sys.executable, "-m", "lamplighter", "--city", str(town), "daemon", "run"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        agent = until(lambda: (town / ".gc" / "controller.sock").exists() and mayor(town))
        said = lamp("daemon", "restart", "--json", cwd=town)
        assert said.code == 0, said
        assert (said.json["pid"], said.json["before"]) == (daemon.pid, daemon.pid)
        assert until(lambda: mayor(town)) == agent
        assert here("stop", "--city", str(town)).code == 0
        assert daemon.wait(60) == 0
    finally:
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()
