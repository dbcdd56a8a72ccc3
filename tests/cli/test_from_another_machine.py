"""Commands about a city on another machine: every subject asked there as here, and what cannot be, refused by name."""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from lamp_program import ENVIRONMENT, Said, here, lamp, one_sentence

from lamplighter.adapters.control import ask
from lamplighter.cli.base import ONLY_HERE
from lamplighter.cli.main import root
from lamplighter.cli.operations import operation_of
from lamplighter.services import table

CITY = """
[workspace]
name = "town"

[[agents]]
name = "lighter"
start_command = "sleep 600"
suspended = true
"""
Ask = Callable[..., Said]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A city whose daemon runs, with something of most kinds in it."""
    place = tmp_path_factory.mktemp("there") / "town"
    assert here("init", str(place)).code == 0
    (place / "city.toml").write_text(CITY)
    (place / "project").mkdir()
    try:
        assert lamp("daemon", "start", cwd=place).code == 0
        yield place
    finally:
        assert here("stop", "--city", str(place)).code == 0


def address(town: Path) -> str:
    return str(ask(town / ".gc/controller.sock", "status")["api"])


@pytest.fixture(params=["here", "there"])
def at(request: pytest.FixtureRequest, town: Path) -> Ask:
    """Calls a command about the city: by its directory, or by its address and a token."""
    where = ["--city", str(town)]
    if request.param == "there":
        where = ["--url", address(town), "--token-file", str(town / ".gc/owner.token")]
    return lambda line, *more: here(*line.split(), *more, *where)


def done(said: Said) -> Said:
    assert said.code == 0, said
    return said


def test_automations_and_runs(at: Ask) -> None:
    done(at("automation create lamps --manual --exec", "echo lit; exit $(cat bad 2>/dev/null || echo 0)"))
    assert "lamps" in [one["name"] for one in done(at("automation list --json")).json]
    ran = done(at("automation run lamps --wait"))
    assert "lit\n" in ran.out
    assert "succeeded after" in ran.out
    newest = done(at("run list --limit 1 --json")).json[0]
    assert done(at("run show last --json")).json["id"] == newest["id"]
    assert done(at("run logs last")).out == "lit\n"
    assert "succeeded" in done(at("run watch last")).out
    watched = [json.loads(line) for line in done(at("run follow last --json")).out.splitlines()]
    assert "lit\n" in "".join(one["text"] for one in watched if one["kind"] == "output")
    assert one_sentence(at("run cancel last"), 4)
    assert at("automation check").code == 1
    for verb in ("disable", "enable", "suspend", "resume", "show", "explain", "history", "export", "notes"):
        done(at(f"automation {verb} lamps"))
    done(at("automation edit lamps --set", "timeout=10m"))
    assert done(at("automation delete lamps")).out == "Deleted lamps.\n"
    assert "lamps" in one_sentence(at("automation show lamps"), 3)


def test_beads_mail_and_events(at: Ask) -> None:
    bead = done(at("bead create --json", "Light the lamps")).json["id"]
    for line in (
        f"bead show {bead}",
        f"bead claim {bead}",
        f"bead update {bead} --title Oil",
        "bead list",
        "bead ready",
    ):
        done(at(line))
    assert done(at(f"bead close {bead} --json")).json["status"] == "closed"
    done(at("mail send human Come here"))
    assert at("mail check human").code == 0
    letter = done(at("mail inbox human --json")).json[0]["id"]
    assert "Come here" in done(at(f"mail read {letter}")).out
    assert one_sentence(at(f"mail archive {letter}"), 4)  # reading did
    assert at("mail check human").code == 1
    done(at("event emit deploy.done --payload", '{"n": 1}'))
    last = done(at("event list --limit 1 --json")).json[0]
    assert last["payload"] == {"n": 1}
    tail = done(at(f"event tail --after {last['seq'] - 1} --type deploy.done --count 1 --json"))
    assert json.loads(tail.out)["seq"] == last["seq"]


def test_the_city_its_agents_rigs_and_configuration(at: Ask, town: Path) -> None:
    status = done(at("status --json")).json
    assert (status["city"], status["controller"]["running"]) == ("town", True)
    assert "town runs" in done(at("status")).out
    assert [one["name"] for one in done(at("agent list --json")).json] == ["lighter"]
    done(at("agent show lighter"))
    assert "was suspended already" in done(at("agent suspend lighter")).out
    assert one_sentence(at("agent nudge lighter wake"), 4)
    assert one_sentence(at("agent show nobody"), 3)
    done(at("prime lighter"))
    assert at("hook lighter").code == 1
    done(at("pause"))
    assert "pause" in done(at("resume")).out
    done(at("config show"))
    done(at("config check"))
    done(at("config explain workspace.name"))
    done(at("rig list"))
    assert "no directory" in one_sentence(at(f"rig add {town}/nothing"), 2)
    done(at("configuration create shop --preset claude"))
    done(at("configuration show shop"))
    done(at("configuration delete shop"))
    for line in ("simulate --days 1", "cost", "node list", "login list", "session list", "worktree list",
                 "outbox list", "notify list", "notify log", "inbox", "formula list",
                 "configuration list", "doctor --json"):  # fmt: skip
        done(at(line))


def test_people_tokens_and_records(at: Ask) -> None:
    done(at("member add ben --role member"))
    made = done(at("token create laptop --member ben --json")).json
    assert [one["id"] for one in done(at("token list --json")).json if one["name"] == "laptop"][-1] == made["id"]
    done(at(f"token revoke {made['id']}"))
    assert "ben is an admin" in done(at("member role ben admin")).out
    assert "ben is no member any more" in done(at("member remove ben")).out
    assert len(done(at("audit list --limit 3 --json")).json) == 3
    assert len(done(at("audit export")).out.splitlines()) >= 4


def test_what_is_printed_is_the_same(town: Path) -> None:
    done(here("automation", "create", "same", "--manual", "--exec", "true", "--city", str(town)))
    done(here("automation", "run", "same", "--wait", "--city", str(town)))
    there = ["--url", address(town), "--token-file", str(town / ".gc/owner.token")]
    for line in ("run show last --json", "automation show same", "run list --query state:succeeded --json",
                 "event list --limit 2 --json", "run show run_nothing --json", "automation show saem",
                 "event emit run.started", "run list --query stat:x"):  # fmt: skip
        words = line.split()
        answers = [here(*words, *there), here(*words, "--city", str(town))]
        named = re.compile(r"`lamp --(city|url) \S+ ")  # each tells commands that name the city as it was named
        assert len({(one.code, one.out, named.sub("`lamp ", one.err)) for one in answers}) == 1, (line, answers)


# ── what is refused ───────────────────────────────────────────────────────────────────────────────────────────────


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        elif command is not None:
            yield (*path, name), command


OF_NO_CITY = {"context", "completion", "version"}


def test_every_command_can_be_asked_there_or_has_its_reason() -> None:
    for path, command in commands(root):
        name = operation_of(command)
        refused = ONLY_HERE.get(path[0]) or ONLY_HERE.get(" ".join(path[:2]))
        has_route = name is not None and table.find(name).http is not None
        assert has_route or refused or path[0] in OF_NO_CITY, path
        assert not (has_route and refused), path


@pytest.mark.parametrize(
    ("line", "named"),
    [("up", "up"), ("init x", "init"), ("daemon logs", "daemon logs"), ("agent attach lighter", "agent attach"),
     ("open", "open"), ("backup x", "backup"), ("stop", "stop"),
     ("run take run_1", "run take")],
)  # fmt: skip
def test_what_cannot_be_asked_there_is_refused_by_name(
    line: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMP_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("LAMP_TOKEN", "x")
    told = one_sentence(here(*line.split()), 2)
    assert f"`lamp {named}`" in told
    assert "named by LAMP_URL" in told
    assert list(tmp_path.iterdir()) == []


def test_the_token_says_who_acts_there(town: Path) -> None:
    said = here("event", "emit", "a.b", "--actor", "ben", "--url", address(town), "--token", "x")
    assert "the token says who acts" in one_sentence(said, 2)


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A server that says the same to everybody, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    caller, _ = listener.accept()
                except OSError:
                    return
                with caller:
                    caller.recv(65536)
                    caller.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(60)


PROBLEM = json.dumps({"type": "unavailable", "title": "StoreUnavailable", "detail": "The database is away.",
                      "hint": "Wait.", "status": 503})  # fmt: skip
ANSWERS = {
    "not a city": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/html\r\n\r\nhi", "not a city's API"),
    "cut": (b"", "was cut before the answer came"),
    "503": (b"HTTP/1.1 503 X\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\n\r\n%s"
            % (len(PROBLEM), PROBLEM.encode()), "The database is away."),
}  # fmt: skip


@pytest.mark.parametrize("how", list(ANSWERS))
def test_an_answer_that_is_none_is_told_in_a_sentence(how: str) -> None:
    answer, told = ANSWERS[how]
    with answering(answer) as url:
        assert told in one_sentence(here("run", "list", "--url", url, "--token", "x"), 5)
        assert (
            told in one_sentence(here("event", "tail", "--after", "0", "--url", url, "--token", "x"), 5)
            or how[0] == "n"
        )


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--url", "http://127.0.0.1:1", "--token", "x"], 5, "Nothing answers at http://127.0.0.1:1"),
        (["--url", "http://no-such-host.invalid", "--token", "x"], 5, "is not known"),
        (["--url", "127.0.0.1:8787", "--token", "x"], 2, "does not begin with http"),
        (["--url", "http://127.0.0.1:1", "--token-file", "/nothing"], 3, "no file /nothing"),
        (["--url", "http://127.0.0.1:1", "--token-file", "/dev/null"], 2, "no token in /dev/null"),
        (["--url", "http://127.0.0.1:1", "--city", "town"], 2, "--city and --url"),
        (["--context", "nothing"], 3, "no context `nothing`"),
        (["--context", "local", "--token", "x"], 2, "takes no token"),
    ],
)
def test_a_city_that_cannot_be_reached_is_told_in_a_sentence(
    words: list[str], code: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert told in one_sentence(here("run", "list", *words), code)


def test_a_wrong_token_and_an_address_with_a_path_too_many(town: Path) -> None:
    url = address(town)
    assert "lamp context add" in one_sentence(here("run", "list", "--url", url, "--token", "lamp_pat_x"), 1)
    owner = ["--token-file", str(town / ".gc/owner.token")]
    assert "does not know what is asked" in one_sentence(here("run", "list", "--url", f"{url}/lamp", *owner), 5)


# ── contexts ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_contexts(town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    file, token = tmp_path / "config/lamplighter/contexts.json", str(town / ".gc/owner.token")
    assert here("context", "list").out.startswith("No contexts.")
    done(here("context", "add", "far", address(town) + "/", "--token-file", token))
    assert file.stat().st_mode & 0o777 == 0o600
    assert one_sentence(here("context", "add", "far", "http://x", "--token", "x"), 4)
    assert one_sentence(here("context", "add", "local", "http://x", "--token", "x"), 2)
    assert one_sentence(here("context", "add", "other", "ftp://x", "--token", "x"), 2)
    secret = Path(token).read_text().strip()
    shown = done(here("context", "list")).out + done(here("context", "list", "--json")).out
    assert secret not in shown
    assert one_sentence(here("run", "list"), 3)  # no city is around, and none is in use
    done(here("run", "list", "--context", "far"))
    done(here("run", "list", "--url", address(town)))  # with the token that is kept for it
    done(here("context", "use", "far"))
    done(here("run", "list"))
    done(here("run", "list", "--city", str(town)))
    assert "the context `far`" in one_sentence(here("stop"), 2)
    done(here("context", "use", "local"))
    assert one_sentence(here("run", "list"), 3)
    done(here("context", "use", "far"))
    file.chmod(0o644)
    assert "others may read it" in one_sentence(here("run", "list"), 2)
    file.chmod(0o600)
    done(here("context", "remove", "far"))
    assert json.loads(file.read_text()) == {"current": None, "contexts": {}}
    file.write_text("[]")
    assert "not a file of contexts" in one_sentence(here("run", "list"), 2)


def test_a_token_comes_from_standard_input_or_the_environment(town: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    secret = (town / ".gc/owner.token").read_bytes()
    call = [sys.executable, "-m", "lamplighter", "run", "list", "--url", address(town), "--token", "-"]
    env = ENVIRONMENT | {"XDG_CONFIG_HOME": str(tmp_path)}
    for given, code in ((secret, 0), (b"", 2)):
        said = subprocess.run(call, input=given, env=env, capture_output=True, check=False, timeout=180, cwd=tmp_path)
        assert said.returncode == code, said
    known = {"LAMP_URL": address(town), "LAMP_TOKEN": secret.decode().strip()}
    assert lamp("run", "list", cwd=tmp_path, env=known).code == 0
    assert "LAMP_CITY and LAMP_URL" in one_sentence(
        lamp("run", "list", cwd=tmp_path, env=known | {"LAMP_CITY": "/"}), 2
    )
