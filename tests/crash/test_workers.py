"""Workers beside a controller, and alone: who takes what, who stops what, and what becomes of what a dead one held."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from automation_watch import all_ended, look, rows, wait_until
from workers import checkout, on_postgres, start

from lamplighter.domain.runs.model import Run
from lamplighter.store.engine.postgres_liveness import key_of
from lamplighter.store.tx import Tx
from lamplighter.testing.processes import Child, Children

Lamp = Callable[..., "subprocess.CompletedProcess[str]"]
RIG = '\n[[rigs]]\nname = "web"\npath = "web"\n'


@pytest.fixture
def town(city: Path, postgres_url: str) -> Path:
    """Its rig `web` is not on the controller's machine."""
    on_postgres(city, postgres_url, RIG)
    return city


def define(lamp: Lamp, name: str, command: str, *more: str) -> None:
    done = lamp("automation", "create", name, "--exec", command, "--manual", *more)
    assert done.returncode == 0, done.stderr


def fire(lamp: Lamp, name: str, *more: str) -> str:
    done = lamp("automation", "run", name, "--json", *more)
    assert done.returncode == 0, done.stderr
    found: str = json.loads(done.stdout)["id"]
    return found


def run_of(town: Path, run: str) -> Run:
    found = look(town, lambda tx: tx.runs.get(run))
    assert found is not None
    return found


def nodes(lamp: Lamp) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(lamp("status", "--json").stdout)["nodes"]}


def is_running(run: str) -> Callable[[Tx], bool]:
    return lambda tx: tx.runs.states([run])[run][0].value == "running"


def has_ended(run: str) -> Callable[[Tx], bool]:
    return lambda tx: tx.runs.states([run])[run][0].value not in {"queued", "enriching", "ready", "running"}


def held_up(town: Path, lamp: Lamp, processes: Children, environment: dict[str, str]) -> tuple[Child, str]:
    """A worker, and its run, whose command waits until somebody opens the FIFO `go`."""
    os.mkfifo(town / "go")
    define(lamp, "slow", "cat go > /dev/null; echo $LAMP_RUN_ID >> done.log")
    worker = start(processes, environment, town, "worker")
    run = fire(lamp, "slow")
    wait_until(town, is_running(run))
    return worker, run


def test_on_sqlite_a_worker_is_refused_with_the_way_out(lamp: Lamp) -> None:
    done = lamp("worker")
    assert (done.returncode, "Workers need PostgreSQL." in done.stderr) == (2, True)
    assert "up` runs the pipeline itself" in done.stderr


@pytest.mark.usefixtures("town")
@pytest.mark.parametrize(
    ("said", "code", "told"),
    [
        (("--rig", "web"), 2, "`web` is not NAME=PATH"),
        (("--rig", "web=/nowhere/at/all"), 2, "is not a directory"),
        (("--rig", "wbe=/tmp"), 3, "did you mean `web`?"),
        (("--rig", "web=/tmp", "--rig", "web=/"), 2, "given twice"),
        (("--name", "a b"), 2, "is not a name"),
        (("--name", ""), 2, "is empty"),
    ],
)
def test_what_a_worker_is_told_wrongly_is_said(lamp: Lamp, said: tuple[str, ...], code: int, told: str) -> None:
    done = lamp("worker", *said)
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr


def test_a_worker_alone_takes_what_is_fired_and_leaves_in_good_order(
    town: Path, lamp: Lamp, processes: Children, environment: dict[str, str]
) -> None:
    worker = start(processes, environment, town, "worker")
    define(lamp, "greet", "echo hello")
    run = fire(lamp, "greet", "--wait")
    assert (run_of(town, run).state, run_of(town, run).output_tail) == ("succeeded", "hello\n")
    (node,) = nodes(lamp).values()
    assert (node["state"], [one["pid"] for one in node["processes"]]) == ("alive", [worker.process.pid])
    define(lamp, "long", "echo begun; sleep 4799")
    long = fire(lamp, "long")
    wait_until(town, is_running(long))
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(timeout=180) == 0
    assert (run_of(town, long).state, run_of(town, long).reason) == ("failed", "interrupted")
    (node,) = nodes(lamp).values()
    assert node["state"] == "stopped"
    assert rows(town, "SELECT id FROM owners") == []


def test_a_run_goes_to_the_node_that_holds_its_rig(
    town: Path, tmp_path: Path, lamp: Lamp, processes: Children, environment: dict[str, str]
) -> None:
    start(processes, environment, town, "up")
    other, web = checkout(town, tmp_path / "barn"), tmp_path / "project"
    web.mkdir()
    start(processes, environment, other, "worker", "--name", "barn", "--rig", f"web={web}")
    assert {name: row["rigs"] for name, row in nodes(lamp).items()}["barn"] == ["web"]
    define(lamp, "where", "pwd", "--rig", "web")
    run = fire(lamp, "where:rig:web", "--wait")
    row = run_of(town, run)
    assert (row.state, row.output_tail, row.node) == ("succeeded", f"{web}\n", "barn")
    assert "barn" in lamp("status").stdout


def test_without_a_node_that_holds_it_a_run_waits_and_doctor_says_for_what(
    town: Path, tmp_path: Path, lamp: Lamp, processes: Children, environment: dict[str, str]
) -> None:
    other, web = checkout(town, tmp_path / "barn"), tmp_path / "project"
    web.mkdir()
    held = ("worker", "--name", "barn", "--rig", f"web={web}")
    worker = start(processes, environment, other, *held)
    start(processes, environment, town, "up")
    worker.kill()
    wait_until(town, lambda tx: [node.state.value for node in tx.nodes.all() if node.name == "barn"] == ["lost"])
    define(lamp, "where", "pwd", "--rig", "web")
    run = fire(lamp, "where:rig:web")
    told = lamp("doctor")
    assert "Node barn (rig web) is lost." in told.stdout
    assert "1 item waits for rig web" in told.stdout
    start(processes, environment, other, *held)
    wait_until(town, has_ended(run))
    assert run_of(town, run).node == "barn"


def test_another_process_of_the_node_goes_on_at_once_with_what_a_killed_one_held(
    town: Path, lamp: Lamp, processes: Children, environment: dict[str, str]
) -> None:
    first, run = held_up(town, lamp, processes, environment)
    start(processes, environment, town, "worker")
    with (town / "go").open("w"):  # opens once the command has opened its end
        first.kill()
        wait_until(town, lambda tx: any(event.type == "run_adopted" for event in tx.runs.events(run)))
    wait_until(town, has_ended(run))
    assert run_of(town, run).state == "succeeded"
    assert (town / "done.log").read_text().split() == [run]


def cut_off(url: str, owner: str) -> None:
    """The connection that holds the owner's proof of life breaks; its process lives on."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND ((classid::bigint << 32) | objid::bigint) = %s AND mode = 'ExclusiveLock'",
            (key_of(owner),),
        ).fetchone()
        assert row == (True,)


@pytest.mark.parametrize("beside", [0, 1])
def test_a_worker_that_is_taken_for_dead_ends_nothing_of_what_others_took_over(
    town: Path, lamp: Lamp, processes: Children, environment: dict[str, str], postgres_url: str, beside: int
) -> None:
    first, run = held_up(town, lamp, processes, environment)
    for _ in range(beside):
        start(processes, environment, town, "worker")
    owner = run_of(town, run).lease.owner
    assert owner is not None
    with (town / "go").open("w"):
        cut_off(postgres_url, owner)
        wait_until(town, lambda tx: any(event.type == "run_adopted" for event in tx.runs.events(run)))
        wait_until(town, lambda tx: len(tx.owners.all()) == 1 + beside and all(
            one.id != owner and one.node is not None for one in tx.owners.all()))  # fmt: skip
    wait_until(town, has_ended(run))
    assert (run_of(town, run).state, run_of(town, run).reason) == ("succeeded", "")
    assert (town / "done.log").read_text().split() == [run]
    assert first.process.poll() is None


def test_a_lost_nodes_run_fails_and_a_retry_starts_it_elsewhere(
    town: Path, tmp_path: Path, lamp: Lamp, processes: Children, environment: dict[str, str]
) -> None:
    said = (town / "city.toml").read_text().replace('patrol_interval = "30s"', 'patrol_interval = "100ms"')
    (town / "city.toml").write_text(f'{said}\n[workers]\nlost_after = "1ms"\n')
    define(lamp, "slow", "test -e over || { touch begun; sleep 4799; }")
    barn = checkout(town, tmp_path / "barn")
    worker = start(processes, environment, barn, "worker", "--name", "barn")
    run = fire(lamp, "slow")
    wait_until(town, is_running(run))
    (town / "over").touch()
    start(processes, environment, town, "worker", "--name", "farm")
    worker.kill()
    wait_until(town, has_ended(run))
    assert (run_of(town, run).state, run_of(town, run).reason) == ("failed", "node_lost")
    assert [row["status"] for row in rows(town, "SELECT status FROM trigger_events")] == ["failed"]
    assert lamp("run", "retry", run).returncode == 0
    wait_until(town, all_ended)
    (again,) = [row for row in look(town, lambda tx: tx.runs.page()) if row.retries == run]
    assert (again.state, again.node) == ("succeeded", "farm")
    start(processes, environment, barn, "worker", "--name", "barn")  # it comes back, and ends what is left of it
    homes = barn / ".gc" / "commands"
    wait_until(town, lambda _tx: not list(homes.iterdir()))


def test_a_machine_set_up_anew_takes_its_old_name_once_its_old_runs_are_given_up(
    town: Path, lamp: Lamp, processes: Children, environment: dict[str, str]
) -> None:
    define(lamp, "slow", "echo $$ > pid; exec sleep 4799")
    named = ("worker", "--name", "farm")
    worker = start(processes, environment, town, *named)
    run = fire(lamp, "slow")
    wait_until(town, is_running(run))
    worker.kill()
    (town / ".gc" / "node-id").unlink()  # as if it were another directory
    refused = lamp(*named)
    assert (refused.returncode, "belongs to another node" in refused.stderr) == (4, True)
    with (town / "city.toml").open("a", encoding="utf-8") as file:
        file.write('\n[workers]\nlost_after = "1ms"\n')
    start(processes, environment, town, *named)
    assert run_of(town, run).reason == "node_lost"
    assert nodes(lamp)["farm"]["state"] == "alive"
    homes = town / ".gc" / "commands"
    wait_until(town, lambda _tx: not list(homes.iterdir()))


def test_a_run_is_canceled_from_anywhere_and_its_own_node_ends_it(
    town: Path, tmp_path: Path, lamp: Lamp, processes: Children, environment: dict[str, str]
) -> None:
    start(processes, environment, town, "up")
    barn, web = checkout(town, tmp_path / "barn"), tmp_path / "project"
    web.mkdir()
    start(processes, environment, barn, "worker", "--name", "barn", "--rig", f"web={web}")
    define(lamp, "slow", "echo $$ > pid; exec sleep 4799", "--rig", "web")
    run = fire(lamp, "slow:rig:web")
    wait_until(town, is_running(run))
    assert lamp("run", "cancel", run).returncode == 0
    assert run_of(town, run).state == "canceled"
    homes = barn / ".gc" / "commands"
    wait_until(town, lambda _tx: not list(homes.iterdir()))


def test_stopping_the_city_leaves_workers_and_their_runs_alone(
    town: Path, lamp: Lamp, processes: Children, environment: dict[str, str]
) -> None:
    os.mkfifo(town / "go")
    with (town / "city.toml").open("a", encoding="utf-8") as file:
        file.write('\n[session]\nprovider = "subprocess"\n\n[runs]\nisolation = "none"\n')
    worker = start(processes, environment, town, "worker")
    created = lamp(
        "automation", "create", "agent", "--manual", "--preset", "shell", "--mode", "full_access", "--prompt",
        "cat go; lamp run complete --outcome succeeded --summary Lit.",
    )  # fmt: skip
    assert created.returncode == 0, created.stderr
    run = fire(lamp, "agent")
    wait_until(town, lambda tx: bool(tx.sessions.of_run(run)))
    start(processes, environment, town, "up")
    with (town / "go").open("w"):
        assert lamp("stop").returncode == 0
        assert run_of(town, run).state == "running"
    wait_until(town, has_ended(run))
    assert (run_of(town, run).state, run_of(town, run).summary) == ("succeeded", "Lit.")
    assert worker.process.poll() is None


def test_two_nodes_do_not_share_a_name(
    town: Path, tmp_path: Path, lamp: Lamp, processes: Children, environment: dict[str, str]
) -> None:
    start(processes, environment, town, "worker", "--name", "east")
    barn = checkout(town, tmp_path / "barn")
    second = start(processes, environment, barn, "worker", "--name", "east")
    assert second.process.wait(timeout=180) == 4
    third = lamp("worker", "--name", "west")
    assert (third.returncode, "is node `east` already" in third.stderr) == (4, True)
