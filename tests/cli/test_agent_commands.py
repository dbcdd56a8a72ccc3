"""`lamp start`, `stop`, `daemon`, `agent`, `session`, `hook`, `mail`: on real sessions, with a daemon and without."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, Said, here, lamp, until

from lamplighter.adapters.control import ask
from lamplighter.adapters.files.log_file import LONGEST
from lamplighter.kit.errors import Unavailable

HEAD = '[workspace]\nname = "{name}"\n[session]\nprovider = "{provider}"\n[daemon]\nshutdown_timeout = "2s"\n'
MAYOR = '[[agents]]\nname = "mayor"\nstart_command = "echo I rule; exec sleep 600"\n'
DEPUTY = '[[agents]]\nname = "deputy"\nstart_command = "exec sleep 600"\n'
PROVIDERS = ["subprocess", "tmux"]

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes cities; whatever they run is stopped at the end."""
    made: list[Path] = []

    def city(text: str = MAYOR, *, name: str = "town", provider: str = "subprocess") -> Path:
        root = tmp_path / name
        assert here("init", str(root)).code == 0
        (root / "city.toml").write_text(HEAD.format(name=name, provider=provider) + text)
        made.append(root)
        return root

    yield city
    for root in made:
        said = here("stop", "--city", str(root))
        assert said.code == 0, said


def agents(root: Path) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in here("agent", "list", "--json", "--city", str(root)).json}


def problems(root: Path) -> dict[str, str]:
    found: dict[str, str] = here("status", "--json", "--city", str(root)).json["controller"]["problems"]
    return found


def config_error(root: Path) -> str | None:
    told: str | None = here("status", "--json", "--city", str(root)).json["controller"]["config_error"]
    return told


def alive(pid: object) -> bool:
    assert isinstance(pid, int)
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_one_pass_starts_what_is_wanted_and_leaves_and_a_second_starts_nothing(make: Make, provider: str) -> None:
    root = make(provider=provider)
    said = lamp("start", cwd=root)
    assert (said.code, said.out) == (
        0,
        "Started agent `mayor` (initial start).\nCity started: started 1; 1 agent runs.\n",
    ), said
    pid = agents(root)["mayor"]["pid"]
    assert alive(pid)
    assert lamp("start", cwd=root).out == "City started: nothing was to be done; 1 agent runs.\n"
    assert agents(root)["mayor"]["pid"] == pid
    stopped = lamp("stop", cwd=root)
    assert (stopped.code, stopped.out) == (0, "Stopped agent `mayor`.\nCity stopped.\n")
    until(lambda: not alive(pid))
    assert agents(root)["mayor"]["state"] == "stopped"
    assert lamp("stop", cwd=root).out == "The city was not running.\n"


CREW = """
[[agents]]
name = "mayor"
start_command = "exec sleep 600"
idle_timeout = "1ms"
env = {{ FOO = "{foo}" }}
{orphan}
[[agents]]
name = "crew"
start_command = "exec sleep 600"
[agents.pool]
min = 0
max = 3
check = "echo {size}"
"""


def test_one_pass_restarts_drift_stops_surplus_and_orphans_and_a_second_does_nothing(make: Make) -> None:
    root = make(CREW.format(foo=1, orphan=DEPUTY, size=2))
    assert lamp("start", cwd=root).out.endswith("City started: started 4; 4 agents run.\n")
    before = agents(root)
    text = (root / "city.toml").read_text()
    new = text.replace('FOO = "1"', 'FOO = "2"').replace("echo 2", "echo 1").replace(DEPUTY, "")
    (root / "city.toml").write_text(new)
    said = lamp("start", "--json", cwd=root).json
    assert [one["agent"] for one in said["restarted"]] == ["mayor"]
    assert "env" in said["restarted"][0]["reason"]
    surplus, orphan = sorted(said["stopped"], key=lambda one: str(one["agent"]))
    assert (surplus["agent"][:5], surplus["reason"]) == ("crew-", "surplus")
    assert orphan == {"agent": "deputy", "reason": "not in the configuration"}
    assert (said["started"], said["left"], said["running"]) == ([], [], 2)
    after = agents(root)
    assert after["mayor"]["pid"] != before["mayor"]["pid"]
    (stayed,) = {"crew-1", "crew-2"} - {surplus["agent"]}
    assert after[stayed]["pid"] == before[stayed]["pid"]
    assert lamp("start", cwd=root).out == "City started: nothing was to be done; 2 agents run.\n"
    assert agents(root)["mayor"]["pid"] == after["mayor"]["pid"]


def test_one_pass_leaves_who_is_draining_because_a_person_asked_and_says_so(make: Make) -> None:
    root = make()
    assert lamp("start", cwd=root).code == 0
    assert here("agent", "drain", "mayor", "--city", str(root)).code == 0
    said = lamp("start", cwd=root)
    assert said.out == "Left agent `mayor` draining: person.\nCity started: left 1; 0 agents run.\n"


def test_one_pass_with_a_command_that_does_not_exist_says_so_and_fails_and_starts_the_others(make: Make) -> None:
    root = make(
        '[[agents]]\nname = "lost"\nprovider = "ghost"\n' + MAYOR + '[providers.ghost]\ncommand = "no-such-1"\n'
    )
    said = lamp("start", cwd=root)
    assert said.code == 1
    assert "Problem in agent lost: Agent `lost` needs `no-such-1`, which is not on the path." in said.out
    assert agents(root)["mayor"]["state"] == "running"
    assert lamp("daemon", "start", cwd=root).code == 0
    until(lambda: problems(root))
    told = here("status", "--city", str(root)).out
    assert re.search(r"Problem in agent lost +Agent `lost` needs `no-such-1`, which is not on the path\.", told), told


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_daemon_in_the_background_keeps_agents_and_takes_them_down(make: Make, provider: str) -> None:
    root = make(provider=provider)
    assert lamp("daemon", "status", cwd=root).code == 1
    assert lamp("daemon", "start", cwd=root).code == 0
    again = lamp("daemon", "start", cwd=root)
    assert (again.code, "already runs this city" in again.err) == (4, True)
    assert lamp("up", cwd=root).code == 4, "two controllers"
    until(lambda: agents(root)["mayor"]["state"] == "running")
    pid = agents(root)["mayor"]["pid"]
    assert isinstance(pid, int)
    os.kill(pid, 9)
    until(lambda: agents(root)["mayor"]["pid"] not in {None, pid})
    assert lamp("daemon", "status", "--json", cwd=root).json["problems"] == {}
    assert "agent.started" in lamp("daemon", "logs", "-n", "5", cwd=root).out
    pid = agents(root)["mayor"]["pid"]
    assert lamp("stop", cwd=root).code == 0
    assert not alive(pid)
    assert not (root / ".gc/controller.sock").exists()
    assert not (root / ".gc/daemon.pid").exists()


# Reads nothing of what it is told on standard input, and leaves what it starts to itself.
DEAF_PROVIDER = """#!/bin/sh
home=$(dirname "$0")/kept; mkdir -p "$home"
case $1 in
start) setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! >"$home/$2.pid" ;;
stop) [ -f "$home/$2.pid" ] && kill "$(cat "$home/$2.pid")"; rm -f "$home/$2."*; exit 0 ;;
process-alive) kill -0 "$(cat "$home/$2.pid")" 2>/dev/null && echo true || echo false ;;
list-running) cd "$home" && for file in *.pid; do [ -f "$file" ] && echo "${file%.pid}"; done; exit 0 ;;
set-meta) case $3 in LAMP_*_ID) cat >"$home/$2.$3" ;; esac ;;
get-meta) cat "$home/$2.$3" 2>/dev/null; exit 0 ;;
*) exit 2 ;;
esac
"""


def test_a_provider_script_that_reads_no_input_and_leaves_helpers_keeps_agents_running(
    make: Make, tmp_path: Path
) -> None:
    script = tmp_path / "deaf.sh"
    script.write_text(DEAF_PROVIDER)
    script.chmod(0o755)
    root = make(MAYOR, provider=f"exec:{script}")
    assert lamp("daemon", "start", cwd=root).code == 0
    until(lambda: agents(root)["mayor"]["state"] == "running")
    assert problems(root) == {}
    stopped = lamp("stop", cwd=root)
    assert (stopped.code, stopped.err) == (0, "")
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_command_before_the_start_may_leave_a_helper_behind(make: Make) -> None:
    root = make(MAYOR + 'pre_start = ["setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! >helper"]\n')
    assert (
        lamp("start", cwd=root).out
        == "Started agent `mayor` (initial start).\nCity started: started 1; 1 agent runs.\n"
    )
    helper = int((root / "helper").read_text())
    assert alive(helper)
    os.kill(helper, 9)


def test_a_daemon_that_cannot_run_says_why_at_once(make: Make) -> None:
    root = make()
    (root / "city.toml").write_text("[broken")
    said = lamp("daemon", "start", cwd=root)
    assert said.code == 5
    assert "is not valid TOML" in said.err
    (root / "city.toml").write_text(HEAD.format(name="town", provider="subprocess"))


def test_bad_names_are_a_line_each_in_a_log_that_is_put_aside_while_the_daemon_runs(make: Make) -> None:
    root = make()
    log = root / ".gc" / "daemon.log"
    assert lamp("daemon", "start", cwd=root).code == 0
    os.truncate(log, LONGEST)
    for number in range(60):
        name = {"name": f"\0\x1b[2J\n{number}"}
        reply = ask(root / ".gc/controller.sock", "do", operation="agent.kill", ask=name, actor={"name": "me"})
        assert reply["problem"]["type"] == "not_found"
    with pytest.raises(Unavailable, match="the verbs are stop, leave, status, wake, reload, traces, do"):
        ask(root / ".gc/controller.sock", "kill")
    assert log.with_name("daemon.log.1").stat().st_size >= LONGEST
    written = log.read_text()
    assert 0 < written.count("control.refused") < 60
    assert "Traceback" not in written
    assert not {"\0", "\x1b"} & set(written)
    assert "control.refused" in lamp("daemon", "logs", "-n", "3", cwd=root).out


def test_a_daemon_whose_log_finds_no_room_goes_on(make: Make) -> None:
    root = make()
    with open("/dev/full", "w") as full:  # noqa: PTH123  a device
        process = subprocess.Popen(
            [sys.executable, "-m", "lamplighter", "daemon", "run"], cwd=root, stdout=full, stderr=full
        )
    try:
        until(lambda: agents(root)["mayor"]["state"] == "running")
        assert lamp("stop", cwd=root).code == 0
        process.wait(60)
    finally:
        process.kill()


def test_an_unwritable_log_is_told(make: Make) -> None:
    root = make()
    (root / ".gc/daemon.log").mkdir()
    said = lamp("daemon", "start", cwd=root)
    assert (said.code, "cannot be written" in said.err) == (5, True)


def test_a_file_where_a_session_s_directory_must_be_hinders_no_agent(make: Make) -> None:
    root = make(MAYOR + DEPUTY)
    (root / ".gc/sessions").mkdir()
    (root / ".gc/sessions/gc-town-mayor").write_text("in the way")
    (root / ".gc/sessions/gc-town-mayor").chmod(0o400)
    assert lamp("daemon", "start", cwd=root).code == 0
    until(lambda: {row["state"] for row in agents(root).values()} == {"running"})
    assert sorted(path.name for path in (root / ".gc/sessions").iterdir()) == ["gc-town-deputy", "gc-town-mayor"]


@pytest.mark.parametrize(("provider", "folder"), [("subprocess", "sessions"), ("tmux", "sessions-tmux")])
def test_outputs_that_cannot_be_written_are_told_and_the_agents_start_as_soon_as_they_can_be(
    make: Make, provider: str, folder: str
) -> None:
    root = make(MAYOR + DEPUTY, provider=provider)
    blocked = root / ".gc" / folder
    blocked.write_text("in the way")
    assert lamp("daemon", "start", cwd=root).code == 0
    until(lambda: f"{blocked} cannot be" in here("status", "--city", str(root)).out)
    blocked.unlink()
    until(lambda: {row["state"] for row in agents(root).values()} == {"running"})
    assert not [name for name in problems(root) if name.startswith("agent ")]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_two_cities_with_like_names_never_touch_each_other(make: Make, provider: str) -> None:
    foo, foo_bar = make(name="foo", provider=provider), make(name="foo-bar", provider=provider)
    for root in (foo, foo_bar):
        assert lamp("daemon", "start", cwd=root).code == 0
        until(lambda root=root: agents(root)["mayor"]["state"] == "running")
    pid = agents(foo_bar)["mayor"]["pid"]
    (foo / "city.toml").write_text(HEAD.format(name="foo", provider=provider))
    until(lambda: agents(foo) == {})
    assert lamp("stop", cwd=foo).code == 0
    assert agents(foo_bar)["mayor"]["pid"] == pid
    assert alive(pid)


def test_a_city_file_that_a_full_disk_left_empty_stops_no_agent(make: Make) -> None:
    root = make(name="town", provider="tmux")
    (root / "city.toml").write_text(MAYOR)  # nothing in it that the defaults would contradict
    assert lamp("daemon", "start", cwd=root).code == 0
    until(lambda: agents(root)["mayor"]["state"] == "running")
    pid = agents(root)["mayor"]["pid"]
    (root / "city.toml").write_text("")
    until(lambda: "empty" in (config_error(root) or ""))
    assert agents(root)["mayor"] | {"state": "running", "pid": pid} == agents(root)["mayor"]


def test_a_configuration_that_breaks_while_the_city_runs_is_told_and_the_agents_run_on(make: Make) -> None:
    root = make()
    assert lamp("daemon", "start", cwd=root).code == 0
    until(lambda: agents(root)["mayor"]["state"] == "running")
    pid = agents(root)["mayor"]["pid"]
    good = (root / "city.toml").read_text()
    (root / "city.toml").write_text(good.replace("[[agents]]", "[[agnets]]"))
    until(lambda: "agnets" in (config_error(root) or ""))
    status = here("status", "--json", "--city", str(root)).json
    assert [(row["name"], row["pid"]) for row in status["agents"]] == [("mayor", pid)]
    deputy = '[[agents]]\nname = "deputy"\nstart_command = "sleep 600"\n'
    (root / "city.toml").write_text(good + deputy)
    until(lambda: agents(root).get("deputy", {}).get("state") == "running")
    assert agents(root)["mayor"]["pid"] == pid


@pytest.mark.parametrize("provider", PROVIDERS)
def test_words_to_an_agent(make: Make, provider: str) -> None:
    body = "start_command = '''echo ready; while read -r line; do echo \"heard $line\"; done'''\n"
    root = make('[[agents]]\nname = "mayor"\n' + body, provider=provider)

    def call(*words: str) -> Said:
        return here(*words, "--city", str(root))

    assert lamp("daemon", "start", cwd=root).code == 0
    until(lambda: "ready" in call("agent", "peek", "mayor").out)
    assert call("agent", "nudge", "mayor", "light", "the", "lamps").code == 0
    until(lambda: "heard light the lamps" in call("agent", "logs", "mayor").out)
    assert call("agent", "drain", "mayor").code == 0
    until(lambda: agents(root)["mayor"]["state"] == "draining")
    assert call("agent", "undrain", "mayor").code == 0
    until(lambda: agents(root)["mayor"]["state"] == "running")
    before = agents(root)["mayor"]["session_id"]
    assert call("agent", "restart", "mayor").code == 0
    assert agents(root)["mayor"]["session_id"] != before
    assert call("agent", "kill", "mayor").code == 0
    until(lambda: agents(root)["mayor"]["state"] == "running")

    def story() -> list[str]:
        return [action["message"] for action in call("agent", "show", "mayor", "--json").json["actions"]]

    until(lambda: "wanted again" in story())  # put on record a moment after it runs again
    assert story() == [
        "initial start", "asked by human", "asked by human", "restart requested by human",
        "restart requested by human", "killed by human", "wanted again",
    ]  # fmt: skip
    assert call("agent", "suspend", "mayor").code == 0
    until(lambda: agents(root)["mayor"]["pid"] is None)
    assert call("agent", "nudge", "mayor", "hello").code == 4
    assert call("agent", "resume", "mayor").code == 0
    until(lambda: agents(root)["mayor"]["state"] == "running")
    rows = call("session", "list", "--all", "--json").json
    assert [row["state"] for row in rows] == ["running", "ended", "ended", "ended"]
    shown = call("session", "show", str(rows[-1]["id"]), "--json").json
    assert (shown["agent"], shown["end_reason"]) == ("mayor", "restart requested by human")
    assert call("agent", "show", "nobody").code == 3


def test_a_daemon_that_does_not_answer_hinders_neither_looks_nor_agents_that_speak_of_themselves(make: Make) -> None:
    root = make(provider="subprocess")
    city = ("--city", str(root))
    assert lamp("daemon", "start", cwd=root).code == 0
    until(lambda: agents(root)["mayor"]["state"] == "running")
    before = agents(root)["mayor"]
    daemon = here("status", "--json", *city).json["controller"]["pid"]
    _stop_between_writes(daemon, root)
    try:
        assert {key: agents(root)["mayor"][key] for key in ("state", "pid")} == {
            "state": "running",
            "pid": before["pid"],
        }
        status = here("status", "--json", *city).json
        assert here("agent", "peek", "mayor", *city).out == "I rule\n"
        assert here("agent", "drain-check", "mayor", *city).code == 1
        assert here("agent", "drain-ack", "mayor", *city).code == 0
        assert here("agent", "drain", "mayor", *city).code == 0
    finally:
        os.kill(daemon, signal.SIGCONT)
    assert (status["controller"]["running"], status["controller"]["pid"]) == (True, daemon)
    assert "did not answer" in status["controller"]["problems"]["control"]
    assert [row["name"] for row in status["agents"]] == ["mayor"]
    until(lambda: agents(root)["mayor"]["session_id"] not in {None, before["session_id"]})


def _stop_between_writes(daemon: int, root: Path) -> None:
    """Stop the process while it does not hold the database: what it holds, nobody else could write to."""

    def stopped() -> bool:
        os.kill(daemon, signal.SIGSTOP)
        if all(_is_free(root / ".gc" / name) for name in ("lamp.db-turn", "lamp.db-writing")):
            return True
        os.kill(daemon, signal.SIGCONT)
        return False

    until(stopped)


def _is_free(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("running", [True, False])
def test_with_a_broken_city_toml_agents_are_seen_and_speak_of_themselves(make: Make, running: bool) -> None:  # noqa: FBT001
    root = make()
    city = ("--city", str(root))
    assert lamp("daemon", "start", cwd=root).code == 0
    until(lambda: agents(root)["mayor"]["state"] == "running")
    before = agents(root)["mayor"]["session_id"]
    if not running:
        os.kill(here("status", "--json", *city).json["controller"]["pid"], signal.SIGKILL)
        until(lambda: not here("status", "--json", *city).json["controller"]["running"])
    good = (root / "city.toml").read_text()
    (root / "city.toml").write_text("[broken")
    assert agents(root)["mayor"]["session_id"] == before
    assert here("agent", "drain-check", "mayor", *city).code == 1
    assert here("agent", "drain", "mayor", *city).code == 0
    assert here("agent", "drain-check", "mayor", *city).code == 0
    assert here("agent", "drain-ack", "mayor", *city).code == 0
    said = here("agent", "suspend", "mayor", *city)
    assert (said.code, "Nothing was changed" in said.err) == (2, True)
    (root / "city.toml").write_text(good)


def test_an_agent_that_crashes_again_and_again_is_quarantined_and_a_person_lifts_it(make: Make) -> None:
    root = make('[[agents]]\nname = "weak"\nstart_command = "echo no oil; exit 1"\n')
    text = (root / "city.toml").read_text()
    (root / "city.toml").write_text(text.replace("[daemon]\n", "[daemon]\nmax_restarts = 2\n"))
    assert lamp("daemon", "start", cwd=root).code == 0
    until(lambda: agents(root)["weak"]["state"] == "quarantined")
    row = agents(root)["weak"]
    assert row["quarantined_until"]
    assert row["starts_in_window"] == 2
    assert lamp("restart", cwd=root).code == 0
    assert agents(root)["weak"]["state"] == "quarantined", "it outlives the daemon"
    starts = len(here("agent", "show", "weak", "--json", "--city", str(root)).json["starts"])
    assert here("agent", "unquarantine", "weak", "--city", str(root)).code == 0
    until(lambda: len(here("agent", "show", "weak", "--json", "--city", str(root)).json["starts"]) > starts)


def test_from_inside_a_session_the_identity_comes_from_the_environment(make: Make) -> None:
    inside = (
        "lamp hook > hook; lamp mail inbox --json > inbox; lamp prime > prime; lamp agent drain-check; "
        "echo $? > drain; lamp mail send human done; lamp agent drain-ack > ack; touch finished; exec sleep 600"
    )
    root = make(f"[[agents]]\nname = \"mayor\"\nstart_command = '''{inside}'''\n")
    city = ("--city", str(root))
    assert here("bead", "create", "dig", "--assignee", "mayor", *city).code == 0
    assert here("mail", "send", "mayor", "be", "quick", *city).code == 0
    assert here("mail", "send", "nobody", "hello", *city).code == 3
    assert lamp("start", cwd=root).code == 0
    until((root / "finished").exists)
    assert "dig" in (root / "hook").read_text()
    assert [row["title"] for row in json.loads((root / "inbox").read_text())] == ["be quick"]
    assert "You are an agent of the city `town`" in (root / "prime").read_text()
    assert (root / "drain").read_text() == "1\n"
    assert (root / "ack").read_text() == "mayor has finished.\n"
    (message,) = here("mail", "inbox", "--json", *city).json
    assert (message["from"], message["title"]) == ("mayor", "done")
    assert "done" in here("mail", "read", message["id"], *city).out
    assert here("mail", "check", *city).code == 1


def test_what_a_suspended_agent_is_told_is_nothing(make: Make) -> None:
    root = make('[[agents]]\nname = "mayor"\nstart_command = "sleep 600"\nsuspended = true\n')
    city = ("--city", str(root))
    assert here("bead", "create", "dig", "--assignee", "mayor", *city).code == 0
    assert (here("hook", "mayor", *city).code, here("prime", "mayor", *city).out) == (1, "")
    said = here("hook", "mayor", "--inject", *city)
    assert (said.code, said.out) == (0, "")


def test_a_unit_kills_only_the_daemon_and_revives_only_after_failure(make: Make, tmp_path: Path) -> None:
    root = make()
    done = subprocess.run(
        [sys.executable, "-m", "lamplighter", "daemon", "install", "--json", "--city", str(root)],
        env=ENVIRONMENT | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "PATH": str(tmp_path / "empty")},
        check=True, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    said = json.loads(done.stdout)
    unit = Path(said["path"])
    text = unit.read_text()
    assert unit.is_relative_to(tmp_path / "config/systemd/user")
    assert "\nKillMode=process\n" in text
    assert "\nRestart=on-failure\n" in text
    assert str(tmp_path / "empty") in text, "the PATH of whoever installs it"
    assert [line.split()[0] for line in said["left"]] == ["systemctl", "systemctl"], "to be run by hand"
    subprocess.run(
        [sys.executable, "-m", "lamplighter", "daemon", "uninstall", "--city", str(root)],
        env=ENVIRONMENT | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "PATH": str(tmp_path / "empty")},
        check=True, capture_output=True, timeout=180,
    )  # fmt: skip
    assert not unit.exists()
