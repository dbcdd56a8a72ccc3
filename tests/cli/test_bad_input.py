"""Bad input and bad surroundings: one clear sentence, the right exit code, nothing lost."""

import fcntl
import json
import os
import pwd
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, here, lamp, one_sentence

from lamplighter.store.engine import sqlite_connection
from lamplighter.store.engine.schema import PROGRAM
from lamplighter.testing.processes import Child, Children, children

Nobody = Callable[..., "subprocess.CompletedProcess[str]"]
NOBODY = pwd.getpwnam("nobody").pw_uid
# The program itself may lie where nobody can read, and it loads its parts as it needs them: so each is used once, on a
# city of its own, before the process becomes nobody.
AS_NOBODY = f"""
import contextlib, io, os, sys
from lamplighter.cli.main import run
scratch, *arguments = sys.argv[1:]
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    for line in (["init", scratch], ["event", "emit", "a.b"], ["event", "list"], ["start"], ["status"], ["stop"],
                 ["bead", "show", "nope-1"]):
        run([*line, "--city", scratch])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
sys.exit(run(arguments))
"""

# Where the tests are not root's, nobody cannot be asked in: the server takes itself for somebody else instead.
SERVE = """
import asyncio, os, sys
from pathlib import Path
from lamplighter.adapters.control_server import ControlServer
os.geteuid = lambda: int(sys.argv[2])
async def serve():
    await ControlServer(Path(sys.argv[1]) / ".gc" / "controller.sock", {}).start()
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(serve())
"""
ASK_AS_NOBODY = f"""
import os, socket, sys
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
client = socket.socket(socket.AF_UNIX)
client.settimeout(30)
client.connect(sys.argv[1])
client.sendall(b'{{"verb": "stop"}}' + bytes([10]))
print(client.recv(4096).decode())
"""


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(("LAMP_", "GC_")):
            monkeypatch.delenv(name)
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    assert here("event", "emit", "test.kept", "--city", str(root)).code == 0
    return root


@pytest.fixture
def database(town: Path) -> Path:
    return town / ".gc" / "lamp.db"


@pytest.fixture
def processes() -> Iterator[Children]:
    with children() as started:
        yield started


def up(processes: Children, city: Path) -> Child:
    daemon = processes.start(sys.executable, "-m", "lamplighter", "up", "--city", str(city), env=ENVIRONMENT)
    while not (line := daemon.line()).startswith("The lamps are lit"):
        assert line, "it ended"
    return daemon


def kept(town: Path) -> int:
    return len(here("event", "list", "--type", "test.kept", "--json", "--city", str(town)).json)


class TestConfiguration:
    @pytest.mark.parametrize("text", ["[workspace\n", 'name = "x', "\x00", "[workspace]\nname = 5\n", "a = 1\na = 2\n"])
    def test_broken_toml_is_told_with_its_file(self, town: Path, text: str) -> None:
        (town / "city.toml").write_text(text, encoding="utf-8")
        for command in (["up"], ["start"], ["init"]):
            said = here(*command, "--city", str(town))
            assert said.code == 2, said
            assert "city.toml" in said.err
            assert "Traceback" not in said.err

    def test_stopping_needs_no_configuration(self, town: Path) -> None:
        (town / "city.toml").write_text("[broken", encoding="utf-8")
        assert here("stop", "--city", str(town)).code == 0

    def test_bytes_that_are_no_text_are_told(self, town: Path) -> None:
        (town / "city.toml").write_bytes(b"\xff\xfe[workspace]")
        said = here("start", "--city", str(town))
        assert said.code == 2
        assert "Traceback" not in said.err

    def test_a_store_nobody_knows_is_told_without_its_password(self, town: Path) -> None:
        text = '[workspace]\nname = "t"\n[store]\nurl = "mysql://u:hush@h/d"\n'
        (town / "city.toml").write_text(text, encoding="utf-8")
        said = here("event", "list", "--city", str(town))
        assert said.code == 2
        assert "hush" not in said.err

    def test_a_server_that_is_away_is_told_without_its_password(
        self, town: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LAMP_STORE_URL", "postgresql://u:hush@/d?host=/nonexistent")
        for command in (["event", "list"], ["up"], ["store", "migrate"]):
            assert "hush" not in one_sentence(here(*command, "--city", str(town)), 5)

    @pytest.mark.parametrize("content", [b"", b"\xff\xff", b"../../etc\n"])
    def test_a_spoiled_city_id_is_told(self, town: Path, content: bytes) -> None:
        (town / ".gc" / "city-id").write_bytes(content)
        assert "city-id" in one_sentence(here("event", "list", "--city", str(town)), 5)


class TestDatabase:
    def test_a_missing_one_is_told(self, town: Path, database: Path) -> None:
        database.unlink()
        assert "lamp init" in one_sentence(here("event", "list", "--city", str(town)), 5)

    @pytest.mark.parametrize("content", [b"this is no database at all" * 200, b"SQLite format 3\x00" + b"\xaa" * 8000])
    def test_one_that_is_none_is_told(self, town: Path, database: Path, content: bytes) -> None:
        for extra in database.parent.glob("lamp.db-*"):
            extra.unlink()
        database.write_bytes(content)
        for command in (["event", "list"], ["event", "emit", "a.b"], ["start"], ["up"]):
            assert "damaged" in one_sentence(here(*command, "--city", str(town)), 5)
        assert database.read_bytes() == content

    def test_a_damaged_page_is_told(self, town: Path, database: Path) -> None:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        content = bytearray(database.read_bytes())
        content[4096:] = b"\xaa" * (len(content) - 4096)
        database.write_bytes(content)
        one_sentence(here("event", "list", "--city", str(town)), 5)

    def test_a_newer_one_is_told_and_left_alone(self, town: Path, database: Path) -> None:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("UPDATE schema_level SET version = ?, oldest = ?", (PROGRAM + 5, PROGRAM + 5))
            connection.execute(f"PRAGMA user_version = {PROGRAM + 5}")
            connection.commit()
        for command in (["event", "list"], ["event", "emit", "a.b"], ["up"], ["store", "migrate"], ["status"]):
            assert "Upgrade lamplighter" in one_sentence(here(*command, "--city", str(town)), 4)

    def test_one_without_a_schema_is_told(self, town: Path, database: Path) -> None:
        for extra in database.parent.glob("lamp.db*"):
            extra.unlink()
        database.touch()
        assert "store migrate`" in one_sentence(here("event", "list", "--city", str(town)), 5)
        assert "--new-database" in one_sentence(here("store", "migrate", "--city", str(town)), 5)
        assert here("init", "--new-database", str(town)).code == 0
        assert here("event", "list", "--city", str(town)).code == 0

    def test_a_locked_one_is_told_and_can_still_be_read(
        self, town: Path, database: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_connection, "BUSY_SECONDS", 0.05)
        monkeypatch.setenv("LAMP_STORE_WAIT", "0s")
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert "locked" in one_sentence(here("event", "emit", "a.b", "--city", str(town)), 5)
            assert kept(town) == 1
        assert here("event", "emit", "a.b", "--city", str(town)).code == 0

    def test_a_stopped_process_that_holds_the_turn_is_told(
        self, town: Path, database: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_connection, "BUSY_SECONDS", 0.05)
        monkeypatch.setenv("LAMP_STORE_WAIT", "0s")
        with database.with_name("lamp.db-writing").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            assert "locked" in one_sentence(here("event", "emit", "a.b", "--city", str(town)), 5)

    def test_a_full_one_is_told_and_keeps_what_it_has(self, town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        prepare = sqlite_connection._prepare

        def small(connection: sqlite3.Connection, *, read_only: bool) -> None:
            prepare(connection, read_only=read_only)
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")

        monkeypatch.setattr(sqlite_connection, "_prepare", small)
        monkeypatch.setenv("LAMP_STORE_WAIT", "0s")
        payload = json.dumps("x" * 100_000)
        assert "full" in one_sentence(here("event", "emit", "a.b", "--payload", payload, "--city", str(town)), 5)
        monkeypatch.undo()
        assert kept(town) == 1


class TestDisk:
    """As root no mode binds, so these run as another user there."""

    @pytest.fixture
    def nobody(self, town: Path, tmp_path: Path) -> Nobody:
        """Runs `lamp` on the town, which is made nobody's own, as nobody."""
        _give(town, NOBODY)
        _let_others_through(town.parent)

        def call(*arguments: str) -> "subprocess.CompletedProcess[str]":
            return subprocess.run(
                [sys.executable, "-c", AS_NOBODY, str(tmp_path / "scratch"), *arguments, "--city", str(town)],
                cwd="/", env=ENVIRONMENT, check=False, capture_output=True, text=True, timeout=180,
            )  # fmt: skip

        return call

    def told(self, done: "subprocess.CompletedProcess[str]") -> str:
        assert done.returncode == 5, done
        assert "Traceback" not in done.stderr, done.stderr
        assert done.stderr.startswith("error: "), done.stderr
        return done.stderr

    def test_a_city_of_ones_own_works(self, nobody: Nobody) -> None:
        done = nobody("event", "emit", "a.b")
        assert done.returncode == 0, done.stderr

    def test_a_read_only_database_is_told(self, database: Path, nobody: Nobody) -> None:
        database.chmod(0o400)
        assert "cannot be written" in self.told(nobody("event", "emit", "a.b"))
        database.chmod(0o600)
        assert nobody("event", "emit", "a.b").returncode == 0

    def test_a_read_only_city_is_told(self, town: Path, nobody: Nobody) -> None:
        modes = {path: path.stat().st_mode for path in [town, *town.rglob("*")]}
        for path in modes:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            for command in (["event", "emit", "a.b"], ["up"], ["start"], ["init", str(town / "new")]):
                self.told(nobody(*command))
            assert not (town / "new").exists()
        finally:
            for path, mode in modes.items():
                path.chmod(mode)
        assert kept(town) == 1

    def test_a_closed_city_is_told(self, town: Path, nobody: Nobody) -> None:
        _give(town, os.geteuid())
        (town / ".gc").chmod(0o700 if os.geteuid() == 0 else 0)
        try:
            for command in (["status"], ["event", "list"], ["stop"], ["up"]):
                self.told(nobody(*command))
        finally:
            (town / ".gc").chmod(0o700)

    def test_the_doctor_of_a_closed_city_makes_the_checks_it_can(self, town: Path, nobody: Nobody) -> None:
        _give(town, os.geteuid())
        (town / ".gc").chmod(0o700 if os.geteuid() == 0 else 0)
        try:
            done = nobody("doctor", "--json")
        finally:
            (town / ".gc").chmod(0o700)
        found = json.loads(done.stdout)
        assert done.returncode == 1
        refused = [one for one in found if "ermission denied" in one["detail"]]
        assert {one["check"] for one in refused} >= {"structure", "controller", "formulas"}
        assert all("user" in one["advice"] for one in refused), refused
        assert {one["check"] for one in found if one["level"] == "ok"} >= {"config", "disk"}


def _give(town: Path, user: int) -> None:
    if os.geteuid() == 0:
        for path in [town, *town.rglob("*")]:
            os.chown(path, user, user)


def _let_others_through(directory: Path) -> None:
    top = Path(tempfile.gettempdir())
    for parent in [directory, *directory.parents]:
        if parent.stat().st_uid == os.geteuid() and top in parent.parents:
            parent.chmod(parent.stat().st_mode | 0o055)


class TestController:
    def test_a_second_one_is_refused_and_the_first_goes_on(self, town: Path, processes: Children) -> None:
        first = up(processes, town)
        for command in ("up", "start"):
            assert str(first.process.pid) in one_sentence(lamp(command, "--city", str(town), cwd=town), 4)
        assert here("status", "--city", str(town), "--json").json["controller"]["pid"] == first.process.pid
        assert here("stop", "--city", str(town)).code == 0
        assert first.process.wait(timeout=180) == 0

    def test_stale_socket_pid_file_and_lock_file_stop_nobody(self, town: Path, processes: Children) -> None:
        runtime = town / ".gc"
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(runtime / "controller.sock"))
        (runtime / "daemon.pid").write_text("1\n", encoding="ascii")
        (runtime / "controller.lock").write_text("1\n", encoding="ascii")
        assert here("status", "--city", str(town), "--json").json["controller"]["running"] is False
        assert here("stop", "--city", str(town)).out.strip() == "The city was not running."
        daemon = up(processes, town)
        assert (runtime / "daemon.pid").read_text(encoding="ascii").strip() == str(daemon.process.pid)
        assert (runtime / "controller.sock").stat().st_mode & 0o777 == 0o600
        assert here("stop", "--city", str(town)).code == 0
        assert daemon.process.wait(timeout=180) == 0
        assert not (runtime / "daemon.pid").exists()
        assert not (runtime / "controller.sock").exists()

    def test_what_stands_in_the_sockets_place_is_told(self, town: Path) -> None:
        (town / ".gc" / "controller.sock").mkdir()
        assert "controller.sock" in one_sentence(lamp("up", "--city", str(town), cwd=town), 5)

    def test_a_very_deep_city_with_spaces_and_unicode_works(self, tmp_path: Path, processes: Children) -> None:
        deep = tmp_path / ("d" * 80) / "ein schöner Ort" / ("e" * 80) / "town"
        assert lamp("init", str(deep), "--name", "deep", cwd=tmp_path).code == 0
        daemon = up(processes, deep)
        assert here("status", "--city", str(deep), "--json").json["controller"]["pid"] == daemon.process.pid
        assert here("stop", "--city", str(deep)).code == 0
        assert daemon.process.wait(timeout=180) == 0

    @pytest.mark.parametrize(
        "garbage",
        [b"\n", b"not json\n", b"[]\n", b"{}\n", b'{"verb": "burn"}\n', b'{"verb": ["stop"]}\n', b"\xff\xfe\n",
         b"x" * 200_000 + b"\n", b"[" * 60_000 + b"\n", b""],
    )  # fmt: skip
    def test_garbage_to_the_socket_gets_an_error_and_harms_nobody(
        self, town: Path, processes: Children, garbage: bytes
    ) -> None:
        daemon = up(processes, town)
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(30)
            client.connect(str(town / ".gc" / "controller.sock"))
            try:
                client.sendall(garbage)
                client.shutdown(socket.SHUT_WR)
            except BrokenPipeError:
                pass  # it had enough and said so
            assert b'"error"' in client.recv(4096)
        assert here("status", "--city", str(town), "--json").json["controller"]["pid"] == daemon.process.pid

    def test_another_user_is_refused(self, town: Path, processes: Children) -> None:
        stranger = os.geteuid() + 1 if os.geteuid() else None
        code = SERVE if stranger else None
        daemon = processes.start(sys.executable, "-c", code, str(town), str(stranger)) if code else up(processes, town)
        assert stranger is None or daemon.line() == "ready"
        path = town / ".gc" / "controller.sock"
        _let_others_through(path.parent)
        path.chmod(0o666)  # so that only the check of the peer stands guard
        done = subprocess.run(
            [sys.executable, "-c", ASK_AS_NOBODY, str(path)], capture_output=True, text=True, check=True, timeout=60
        )
        assert "only the user who runs the city" in done.stdout
        assert daemon.process.poll() is None

    def test_a_lost_proof_of_life_makes_it_start_anew(self, town: Path, processes: Children, postgres_url: str) -> None:
        import psycopg

        config = (town / "city.toml").read_text(encoding="utf-8")
        patrol = config.replace('patrol_interval = "30s"', 'patrol_interval = "50ms"')
        (town / "city.toml").write_text(f'{patrol}\n[store]\nurl = "{postgres_url}"\n', encoding="utf-8")
        assert here("init", str(town)).code == 0
        daemon = up(processes, town)
        tail = processes.start(
            sys.executable, "-m", "lamplighter", "event", "tail", "--type", "controller.started", "--after", "0",
            "--count", "2", "--json", "--city", str(town), env=ENVIRONMENT,
        )  # fmt: skip
        first = json.loads(tail.line())
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = %s AND datname = current_database()",
                ("lamplighter proof of life",),
            )
        second = json.loads(tail.line())
        assert second["payload"]["pid"] == first["payload"]["pid"] == daemon.process.pid
        assert here("stop", "--city", str(town)).code == 0
        assert daemon.process.wait(timeout=180) == 0


class TestPayload:
    @pytest.mark.parametrize("text", ["", "{", "nothing", "NaN", "[Infinity]", "{'a': 1}", "[" * 100_000])
    def test_one_that_is_not_json_is_an_error(self, town: Path, text: str) -> None:
        assert "not JSON" in one_sentence(here("event", "emit", "a.b", "--payload", text, "--city", str(town)), 2)
        assert here("event", "list", "--type", "a.b", "--json", "--city", str(town)).json == []

    def test_one_beyond_the_limit_is_an_error(self, town: Path) -> None:
        text = json.dumps("ü" * 600_000, ensure_ascii=False)
        assert "at most" in one_sentence(here("event", "emit", "a.b", "--payload", text, "--city", str(town)), 2)

    def test_bytes_that_are_no_text_are_an_error(self, town: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "lamplighter", "event", "emit", "a.b", "--message", b"\xff", "--city", str(town)],
            env=ENVIRONMENT, capture_output=True, check=False, timeout=180,
        )  # fmt: skip
        assert done.returncode == 2
        assert b"UTF-8" in done.stderr
        assert b"Traceback" not in done.stderr
