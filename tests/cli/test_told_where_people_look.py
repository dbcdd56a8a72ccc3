"""What needs a person is told by the command they call; a reader that leaves early is no error."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here, lamp

CITY = """
[workspace]
name = "town"

[api]
port = PORT

[session]
provider = "subprocess"

[daemon]
max_restarts = 1

[[rigs]]
name = "shop"
path = "shop"

[[agents]]
name = "mayor"
start_command = "COMMAND"

[[agents]]
name = "clerk"
dir = "shop"
start_command = "sleep 300"
"""


def made(root: Path, *, port: int = 0, command: str = "sleep 300") -> Path:
    (root / "shop").mkdir(parents=True)
    (root / "city.toml").write_text(CITY.replace("PORT", str(port)).replace("COMMAND", command))
    assert here("init", str(root)).code == 0
    return root


def doctor(root: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = lamp("doctor", "--json", cwd=root).json
    return found


def test_a_taken_port_is_told_by_status_and_doctor(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        town = made(tmp_path / "town", port=port)
        assert lamp("daemon", "start", cwd=town).code == 0
        try:
            controller = lamp("status", "--json", cwd=town).json["controller"]
            problems = [one for one in doctor(town) if one["level"] == "problem"]
        finally:
            assert lamp("stop", cwd=town).code == 0
    told = controller["problems"]["api"]
    assert f"port {port}" in told
    assert controller["api"] in told
    assert [one["detail"] for one in problems] == [f"api: {told}"]
    assert "[api] port" in problems[0]["advice"]


def test_the_default_port_is_nobodys_choice_and_doctor_only_notes_that_it_was_taken(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with suppress(OSError):  # another city may have it already
            stack.enter_context(socket.create_server(("127.0.0.1", 5267)))
        town = made(tmp_path / "town")
        file = town / "city.toml"
        file.write_text(file.read_text().replace("[api]\nport = 0\n", ""))
        assert lamp("daemon", "start", cwd=town).code == 0
        try:
            controller = lamp("status", "--json", cwd=town).json["controller"]
            found = doctor(town)
        finally:
            assert lamp("stop", cwd=town).code == 0
    assert controller["problems"] == {}
    assert [one["level"] for one in found if f"the API is at {controller['api']}" in one["detail"]] == ["note"]


@pytest.mark.parametrize("port", ["free", "any"])
def test_a_port_that_was_to_be_had_is_no_problem(tmp_path: Path, port: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        number = other.getsockname()[1] if port == "free" else 0
    town = made(tmp_path / "town", port=number)
    assert lamp("daemon", "start", cwd=town).code == 0
    try:
        assert lamp("status", "--json", cwd=town).json["controller"]["problems"] == {}
    finally:
        assert lamp("stop", cwd=town).code == 0


def test_doctor_names_a_quarantined_agent_and_what_lifts_it(tmp_path: Path) -> None:
    town = made(tmp_path / "town", command="false")
    lamp("start", cwd=town)
    try:
        (told,) = [one for one in doctor(town) if one["check"] == "agents"]
        assert lamp("doctor", cwd=town).code == 1
        assert told["level"] == "problem"
        assert "mayor" in told["detail"]
        assert "quarantined until 20" in told["detail"]
        assert "lamp agent unquarantine mayor" in told["advice"]
        assert lamp("agent", "unquarantine", "mayor", cwd=town).code == 0
        assert [one for one in doctor(town) if one["check"] == "agents"] == []
    finally:
        assert lamp("stop", cwd=town).code == 0


def test_doctor_advises_nothing_that_a_copy_refuses(tmp_path: Path) -> None:
    town = made(tmp_path / "town")
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(town), str(copy)], check=True)
    advice = [one["advice"] for one in doctor(copy) if one["advice"]]
    assert any("lamp init --new-id" in one for one in advice)
    assert not [one for one in advice if "lamp up" in one or "lamp start" in one]


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("suspend",), {"mayor", "shop/clerk"}),
        (("rig", "suspend", "shop"), {"shop/clerk"}),
        (("agent", "suspend", "mayor"), {"mayor"}),
    ],
    ids=["the city", "a rig", "an agent"],
)
def test_a_suspension_without_a_daemon_names_the_agents_that_go_on(
    tmp_path: Path, arguments: tuple[str, ...], left: set[str]
) -> None:
    town = made(tmp_path / "town")
    assert lamp(*arguments, cwd=town).err == "", "nothing runs yet"
    back = [word.replace("suspend", "resume") for word in arguments]
    assert lamp(*back, cwd=town).code == 0
    assert lamp("start", cwd=town).code == 0
    try:
        said = lamp(*arguments, cwd=town)
        assert said.code == 0
        assert all(f"`{name}`" in said.err for name in left), said
        assert not [name for name in {"mayor", "shop/clerk"} - left if f"`{name}`" in said.err]
        assert "`lamp start`" in said.err
        assert lamp("start", cwd=town).code == 0
        states = {row["name"]: row["state"] for row in lamp("agent", "list", "--json", cwd=town).json}
        assert {name for name, state in states.items() if state != "running"} == left, "as it was said"
    finally:
        assert lamp("stop", cwd=town).code == 0


@pytest.mark.parametrize("buffered", [True, False], ids=["at the end", "in the middle"])
def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path, buffered: bool) -> None:  # noqa: FBT001  a parameter
    read, write = os.pipe()
    os.close(read)
    unbuffered = {} if buffered else {"PYTHONUNBUFFERED": "1"}
    plain = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONUNBUFFERED"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lamplighter", "--help"], cwd=tmp_path, env=plain | unbuffered,
            stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=180,
        )  # fmt: skip
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
