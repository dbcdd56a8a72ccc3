"""Worktrees that are made ready before an agent starts in them: files, shared directories, ports, a setup command."""

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from loops_city import Loops, open_loops
from test_agent_runs import begin, finished, types
from test_verified_runs import WAIT, claim, repository

from lamplighter.adapters.files.workspaces import LocalWorkspaceFiles
from lamplighter.domain.city.run_sections import RigWorkspace
from lamplighter.domain.city.sections import Retention
from lamplighter.domain.runs.model import Grade, RunState
from lamplighter.domain.runs.ports import Block, free_block
from lamplighter.ports.workspaces import Laying
from lamplighter.services.runs import review
from lamplighter.store.url import Place


@pytest.fixture
async def loops(place: Place, tmp_path: Path) -> AsyncIterator[Loops]:
    async with open_loops(place, tmp_path) as found:
        await asyncio.to_thread(repository, tmp_path / "web")
        yield found


def furnished(loops: Loops, **keys: Any) -> None:
    (rig,) = loops.city.rigs
    loops.city = replace(loops.city, rigs=(replace(rig, workspace=RigWorkspace(**keys)),))
    loops.parts.active.swap(loops.city, loops.rules)


async def add(loops: Loops, name: str, script: str, **keys: Any) -> str:
    await loops.add(name, rig="web", agent={"prompt": script, "preset": "shell"}, **keys)
    return f"{name}:rig:web"


TESTS = """
import os, socket, sys, unittest
class Lamps(unittest.TestCase):
    def test_all_is_there(self):
        self.assertIn("/.venv/", sys.prefix + "/")
        self.assertEqual(open(".env").read(), "OIL=yes\\n")
        with socket.socket() as served:
            served.bind(("127.0.0.1", int(os.environ["LAMP_PORT_BASE"])))
"""


async def test_a_repository_s_own_tests_run_in_fresh_worktrees_two_at_once(loops: Loops) -> None:
    """With a virtual environment, an untracked file and a port."""
    web = loops.root / "web"
    (web / ".env").write_text("OIL=yes\n")
    furnished(
        loops,
        setup="python3 -m venv --without-pip .venv && mkdir -p .deps && touch .deps/$LAMP_RUN_ID",
        copy=(".env",), cache=(".deps",), ports=3, teardown='rm -r .venv; touch "$LAMP_RIG_DIR/left.$LAMP_RUN_ID"',
    )  # fmt: skip
    (loops.root / "test_lamps.py").write_text(TESTS)
    script = f'echo "$LAMP_PORT_BASE" > "$LAMP_CITY/port.$LAMP_RUN_ID"; {WAIT}'
    verify = 'cp "$LAMP_CITY/test_lamps.py" . && .venv/bin/python -m unittest -q test_lamps; code=$?; rm test_lamps.py'
    name = await add(loops, "tests", script, overlap="allow", verify=f"{verify}; rm -r __pycache__; exit $code")
    first, second = await begin(loops, name), await begin(loops, name)
    for run in (first, second):
        await loops.until(lambda run=run: _exists(loops.root / f"port.{run}"))
    await claim(loops, first)
    await claim(loops, second)
    rows = [await finished(loops, first), await loops.get(second)]
    assert [(row.state, row.grade) for row in rows] == [(RunState.SUCCEEDED, Grade.VERIFIED)] * 2, [
        (one.reason, one.error, one.output_tail) for one in rows
    ]
    blocks = [Block.of(row.ports or "") for row in rows]
    assert not blocks[0].meets(blocks[1])
    assert {int((loops.root / f"port.{run}").read_text()) for run in (first, second)} == {one.base for one in blocks}
    assert {path.name for path in (loops.root / ".gc/cache/web/.deps").iterdir()} == {first, second}
    for run in (first, second):
        assert (web / f"left.{run}").exists()
        happened = await types(loops, run)
        assert happened.count("setup_done") == happened.count("teardown_done") == 1
        assert not (loops.root / ".gc" / "worktrees" / run).exists(), "what was laid out is no work of the run"
    assert await loops.runner.kept() == []


async def test_a_setup_that_fails_ends_the_run_with_its_output_and_is_not_tried_again(loops: Loops) -> None:
    furnished(loops, setup="echo no oil; exit 6")
    name = await add(loops, "tests", "touch ran", retry=2)
    row = await loops.work(name)
    assert (row.state, row.reason, row.stage, row.exit_code) == (RunState.FAILED, "setup", "setup", 6)
    assert row.output_tail.strip() == "no oil"
    assert "exit code 6" in row.error
    assert "setup_failed" in await types(loops, row.id)
    assert len(await loops.store.read(lambda tx: tx.runs.page())) == 1
    assert not (loops.root / ".gc" / "worktrees" / row.id).exists()


async def test_a_run_for_which_there_are_not_enough_ports_says_so(loops: Loops) -> None:
    furnished(loops, ports=20_000)
    row = await loops.work(await add(loops, "greedy", "touch ran"))
    assert (row.state, row.reason, row.session_id) == (RunState.FAILED, "setup", None)
    assert "there are no 20000 free ports" in row.error


async def test_a_setup_has_its_time_limit_and_ends_when_the_run_is_canceled(loops: Loops) -> None:
    furnished(loops, setup="sleep 4711", setup_timeout=timedelta(seconds=1))
    row = await loops.work(await add(loops, "slow", "true"))
    assert (row.reason, row.exit_code) == ("setup", None)
    assert "time limit" in row.error
    furnished(loops, setup="sleep 4711")
    run = await loops.fire(await add(loops, "canceled", "true"))

    async def sets_up() -> bool:
        await loops.parts.dispatcher.tick()
        return f"{run}.setup" in await loops.runner.kept()

    await loops.until(sets_up)
    await loops.store.transact(review.cancel, run, ctx=loops.context)
    assert (await finished(loops, run)).state is RunState.CANCELED
    assert loops.sleepers() == []
    assert await loops.runner.kept() == []


async def test_a_teardown_has_its_time_limit_and_changes_nothing_about_the_run(loops: Loops) -> None:
    furnished(loops, teardown="sleep 4712", teardown_timeout=timedelta(milliseconds=300))
    run = await begin(loops, await add(loops, "slow", WAIT))
    await claim(loops, run)
    assert (await finished(loops, run)).state is RunState.SUCCEEDED
    (told,) = [
        event.data for event in await loops.store.read(lambda tx: tx.runs.events(run)) if event.type == "teardown_done"
    ]
    assert told is not None
    assert (told["ok"], told["why"]) == (False, "it was killed at its time limit")
    assert loops.sleepers() == []
    assert await loops.runner.kept() == []


def test_files_are_laid_and_taken_out_again_and_what_is_there_stays(tmp_path: Path) -> None:
    source, target = tmp_path / "rig", tmp_path / "tree"
    for folder in (source, target, source / "keys", target / "own"):
        folder.mkdir()
    (source / ".env").write_text("a")
    (source / "keys" / "one").write_text("k")
    files = LocalWorkspaceFiles(tmp_path / "cache")
    laying = Laying("web", source, target, (".env", "keys/one", "missing"), ("deps", "own"))
    left = files.lay(laying)
    assert [one.partition(":")[0] for one in left] == ["missing", "own"]
    assert files.lay(laying) == left, "may be repeated"
    (target / "deps" / "lib").touch()
    (target / ".env").write_text("changed")
    files.clear(laying)
    files.clear(laying)
    assert sorted(path.name for path in target.iterdir()) == [".env", "keys", "own"], "what was changed stays"
    assert (tmp_path / "cache" / "web" / "deps" / "lib").exists()


def test_blocks_of_ports_do_not_meet_and_what_is_in_use_is_seen(tmp_path: Path) -> None:
    taken = [Block(20_000, 10), Block(20_015, 2)]
    assert free_block(5, taken) == Block(20_010, 5)
    assert free_block(10, taken) == Block(20_020, 10)
    assert free_block(10, taken, busy={20_020}) == Block(20_030, 10)
    assert free_block(10, [Block(20_000, 10_000)]) is None
    assert free_block(20_000, []) is None
    assert Block.of(str(Block(20_010, 5))) == Block(20_010, 5)
    with socket.socket() as served:
        served.bind(("127.0.0.1", 0))
        served.listen()
        assert not LocalWorkspaceFiles(tmp_path).are_free(served.getsockname()[1], 1)


OWN = """
[workspace]
setup = "echo by the repository > made; echo mine > $LAMP_RIG_DIR/setup.log"
teardown = "echo $LAMP_RUN_ID >> $LAMP_RIG_DIR/left.log; rm -f made"
copy = [".env"]
ports = 2
"""


def commits(place: Path, name: str, text: str) -> None:
    (place / name).write_text(text)
    for words in (["add", "-A"], ["commit", "-q", "-m", name]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=place, check=True)


async def test_a_repository_says_how_it_is_made_ready_only_where_its_rig_allows_it(loops: Loops) -> None:
    web = loops.root / "web"
    commits(web, ".lamplighter.toml", OWN)
    (web / ".env").write_text("OIL=yes\n")
    script = f'cat made .env > "$LAMP_CITY/seen.$LAMP_RUN_ID" 2>/dev/null; echo rm -rf > .lamplighter.toml; {WAIT}'
    name = await add(loops, "light", script)
    for keys, seen in (
        ({}, ""),
        ({"from_repository": True}, "by the repository\nOIL=yes\n"),
        ({"from_repository": True, "setup": "echo by the rig > made"}, "by the rig\nOIL=yes\n"),
    ):
        furnished(loops, **keys)
        run = await begin(loops, name)
        await loops.until(lambda run=run: _exists(loops.root / f"seen.{run}"))
        await claim(loops, run)
        row = await finished(loops, run)
        assert (row.state, (loops.root / f"seen.{run}").read_text()) == (RunState.SUCCEEDED, seen)
        assert ("workspace_read" in await types(loops, run)) is bool(keys)
    assert len((web / "left.log").read_text().split()) == 2, "what was read first holds for the teardown, too"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[workspace]\nset_up = 'x'\n", ".lamplighter.toml: workspace.set_up: is not a setting; did you mean `setup`?"),
        ("[workspace]\nports = 'many'\n", ".lamplighter.toml: workspace.ports: must be a whole number"),
        ("[workspace]\nfrom_repository = true\n", ".lamplighter.toml: workspace.from_repository: is not a setting"),
        ("[workspace]\ncopy = ['../secret']\n", ".lamplighter.toml: workspace.copy: `../secret` is not a path below"),
        ("[rigs]\n", ".lamplighter.toml: rigs: is not a setting"),
        ("= [", ".lamplighter.toml"),
    ],
)
async def test_what_is_wrong_in_it_is_told_with_file_and_key(loops: Loops, text: str, told: str) -> None:
    commits(loops.root / "web", ".lamplighter.toml", text)
    furnished(loops, from_repository=True)
    run = await loops.work(await add(loops, "light", "true"))
    assert (run.state, run.reason) == (RunState.FAILED, "setup")
    assert told in run.error


async def test_worktrees_lose_their_dependencies_and_then_go_until_they_are_small_enough(loops: Loops) -> None:
    commits(loops.root / "web", ".gitignore", "node_modules\n")
    big = "head -c 300000 /dev/urandom"
    script = f"mkdir -p node_modules kept/target; {big} > node_modules/x; {big} > kept/target/x; exit 1"
    furnished(loops)
    name = await add(loops, "light", script)
    rows = [await loops.work(name) for _ in range(2)]
    places = [Path((row.worktree or {})["path"]) for row in rows]
    upkeep = loops.parts.upkeep()
    sizes = [await loops.parts.agents.places.size(row) for row in rows]
    assert min(sizes) > 600_000
    assert "retention_worktree_size" in {
        phase.name for phase in upkeep.of_node(replace(loops.city, retention=Retention(worktrees_mb=1)))
    }
    assert await upkeep.bound_worktrees(sum(sizes)) == 0
    assert await upkeep.bound_worktrees(sum(sizes) - 1) == 1
    assert [(place / "node_modules").exists() for place in places] == [False, True], "of the oldest first"
    assert (places[0] / "kept/target/x").exists(), "git does not ignore it: it may be work"
    assert await upkeep.bound_worktrees(500_000) == 2
    assert [place.exists() for place in places] == [False, True]
    assert not (places[1] / "node_modules").exists()
    assert await upkeep.bound_worktrees(0) == 1
    assert await loops.store.read(lambda tx: tx.runs.worktrees(limit=9)) == []


async def _exists(path: Path) -> bool:
    return path.exists()


def test_a_file_of_the_repository_that_is_named_to_be_copied_is_told_and_stays(tmp_path: Path) -> None:
    rig, worktree = tmp_path / "rig", tmp_path / "worktree"
    for place in (rig, worktree):  # as a checkout makes it: the same text, at another time
        place.mkdir()
        (place / "settings.json").write_text("{}")
    (rig / ".env").write_text("A=1")
    os.utime(rig / "settings.json", (1, 1))
    files = LocalWorkspaceFiles(tmp_path / "cache")
    laying = Laying("web", rig, worktree, (".env", "settings.json"), ())
    for _ in range(2):
        assert files.lay(laying) == ["settings.json: the worktree has one of its own"]
    files.clear(laying)
    assert [one.name for one in worktree.iterdir()] == ["settings.json"]
