"""Commands that agents call wait for a database that is away for a while."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from lamp_program import ENVIRONMENT, lamp, one_sentence

from lamplighter.testing.cutting_proxy import cutting_proxy
from lamplighter.testing.postgres import Cluster


@pytest.fixture
def door() -> Iterator[Path]:
    """Where a server will be reached, once something listens there."""
    with tempfile.TemporaryDirectory(prefix="lamp-door-", dir="/tmp") as home:  # a socket's path must be short
        yield Path(home)


@pytest.fixture
def town(tmp_path: Path, postgres: Cluster, postgres_url: str, door: Path) -> Path:
    root = tmp_path / "town"
    assert lamp("init", str(root), cwd=tmp_path, env={"LAMP_STORE_URL": postgres_url}).code == 0
    url = postgres_url.replace(str(postgres.home), str(door))
    with (root / "city.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[store]\nurl = "{url}"\n')
    return root


def calling(stack: ExitStack, town: Path, *arguments: str) -> "subprocess.Popen[str]":
    return stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-m", "lamplighter", *arguments],
            cwd=town,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )


def test_what_agents_call_waits_says_so_and_is_done_once_when_the_database_is_back(
    town: Path, door: Path, postgres: Cluster, postgres_url: str
) -> None:
    with ExitStack() as stack:
        commands = [
            (["event", "emit", "deploy.finished"], 0),
            (["bead", "create", "a thing to do"], 0),
            (["mail", "send", "human", "done"], 0),
            (["run", "complete", f"run_{0:026}", "--outcome", "succeeded"], 3),
        ]
        waiting = [calling(stack, town, *arguments) for arguments, _ in commands]
        for process in waiting:
            assert process.stderr is not None
            assert "Waiting for it, up to 60 s in all." in process.stderr.readline()
        stack.enter_context(cutting_proxy(door, postgres.home))
        assert [process.wait(60) for process in waiting] == [code for _, code in commands]
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute("SELECT type, count(*) FROM events GROUP BY type").fetchall()
    assert {str(kind): count for kind, count in rows} == {
        "deploy.finished": 1,
        "bead.created": 2,  # a message is a bead too
        "mail.sent": 1,
    }


def test_the_wait_can_be_set_and_ends_as_unavailable(town: Path) -> None:
    said = lamp("event", "emit", "deploy.finished", cwd=town, env={"LAMP_STORE_WAIT": "0s"})
    assert "cannot be reached" in one_sentence(said, 5)
    said = lamp("event", "emit", "deploy.finished", cwd=town, env={"LAMP_STORE_WAIT": "soon"})
    assert "LAMP_STORE_WAIT" in one_sentence(said, 2)
