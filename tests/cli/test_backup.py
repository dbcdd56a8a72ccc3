"""A backup made while the city is written to is one moment of it, and a city restored from it answers the same."""

import io
import json
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from lamp_program import here, lamp, one_sentence

from lamplighter.domain.beads.model import NewBead
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.services.beads import changes
from lamplighter.services.context import acting
from lamplighter.store.tx import Tx
from lamplighter.store.url import Place, open_direct, parse_store_url

PLAIN = '[workspace]\nname = "town"\n\n[api]\nport = 0\n'
A_SECOND = 50


@pytest.fixture(params=["sqlite", "postgres"])
def town(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "town"
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    root.mkdir()
    (root / "city.toml").write_text(f'{PLAIN}\n[store]\nurl = "{url}"\n')
    assert here("init", str(root)).code == 0
    return root


def place_of(root: Path) -> Place:
    text = (root / "city.toml").read_text()
    return parse_store_url(text.rpartition('url = "')[2].partition('"')[0], root / ".gc")


@contextmanager
def written_to(root: Path) -> Iterator[list[int]]:
    """Two beads in one transaction, fifty times a second, as long as the block lasts."""
    store = open_direct(place_of(root), (root / ".gc/city-id").read_text().splitlines()[0])
    ids, stop, done = IdSource(SystemClock()), threading.Event(), [0]

    def pair(tx: Tx) -> None:
        ctx = acting("writer", datetime.now(UTC), ids)
        for half in ("left", "right"):
            changes.create(tx, NewBead(f"{half} {done[0]}"), prefix="gc", ctx=ctx)

    def write() -> None:
        begun = time.monotonic()
        while not stop.is_set():
            store.transact(pair)
            done[0] += 1
            stop.wait(max(0.0, begun + done[0] / A_SECOND - time.monotonic()))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()
        store.close()


def shown(root: Path, subject: str, name: str) -> Any:
    return here(subject, "show", name, "--json", "--city", str(root)).json


@pytest.mark.timeout(900)
def test_under_fifty_writes_a_second_it_is_one_moment_and_every_show_is_equal(town: Path, tmp_path: Path) -> None:
    at = ("--city", str(town))
    (town / "notes").mkdir()
    (town / "notes" / "plan.md").write_text("light them all")
    assert here("automation", "create", "hello", "--exec", "echo hi", "--daily", "08:30", *at).code == 0
    assert here("automation", "run", "hello", *at).code == 0
    with written_to(town) as done:
        while done[0] < A_SECOND:
            time.sleep(0.01)
        said = lamp("backup", str(tmp_path / "saved"), cwd=town)
        assert said.code == 0, said
        count = done[0]
        while done[0] < count + A_SECOND // 2:
            time.sleep(0.01)
    again = tmp_path / "again"
    restored = here("restore", str(tmp_path / "saved"), str(again))
    assert restored.code == 0, restored
    beads = here("bead", "list", "--limit", "1000", "--json", "--city", str(again)).json
    assert len(beads) >= A_SECOND
    halves: dict[str, list[str]] = {"left": [], "right": []}
    for half, _, number in (bead["title"].partition(" ") for bead in beads):
        if half in halves:  # the run has a bead too
            halves[half].append(number)
    assert sorted(halves["left"]) == sorted(halves["right"])
    runs = [one["id"] for one in here("run", "list", "--json", "--city", str(again)).json]
    assert len(runs) == 1
    at_first = {one["id"]: one for one in here("bead", "list", "--limit", "1000", "--json", *at).json}
    assert [at_first[bead["id"]] for bead in beads] == beads
    every = [("bead", bead["id"]) for bead in beads[::10]] + [("run", one) for one in runs] + [("automation", "hello")]
    assert [shown(town, *one) for one in every] == [shown(again, *one) for one in every]
    assert (again / "notes" / "plan.md").read_text() == "light them all"
    assert "is still in" in restored.out
    assert "lamp init --new-id" in one_sentence(lamp("up", cwd=again), 4)


@pytest.fixture
def quiet_town(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    (root / "city.toml").write_text(PLAIN)
    return root


def test_the_file_is_its_owners_and_holds_no_key_no_rig_and_no_other_backup(quiet_town: Path, tmp_path: Path) -> None:
    root = quiet_town
    (root / "city.toml").write_text(f'{PLAIN}\n[[rigs]]\nname = "shop"\npath = "shop"\n')
    for folder in ("shop", "own/.git", "agents"):
        (root / folder).mkdir(parents=True)
        (root / folder / "file").write_text("x")
    (root / "agents" / "link").symlink_to("file")
    (root / ".gc" / "artifacts").mkdir()
    (root / ".gc" / "artifacts" / "report").write_text("all is well")
    for name in ("run.key", "owner.token"):
        (root / ".gc" / name).write_text("secret")
    first = lamp("backup", cwd=root)
    assert first.code == 0, first
    second = lamp("backup", "next.tar.gz", "--artifacts", "--json", cwd=root).json
    assert second["left_out"] == ["own", "shop"]
    file = Path(second["file"])
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        names = set(archive.getnames())
    assert names == {
        "manifest.json", "lamp.db", "city/city.toml", "city/agents/file", "city/agents/link", "city/.gc/.gitignore",
        "city/.gc/city-id", "city/.gc/formulas/feature.formula.toml", "city/.gc/artifacts/report",
    }  # fmt: skip
    again = tmp_path / "again"
    assert here("restore", str(file), str(again)).code == 0
    assert (again / "agents" / "link").readlink() == Path("file")
    assert (again / ".gc" / "artifacts" / "report").read_text() == "all is well"
    assert (again / ".gc").stat().st_mode & 0o777 == 0o700
    assert "is there already" in one_sentence(lamp("backup", "next.tar.gz", cwd=root), 4)


def test_what_is_no_backup_is_refused_and_nothing_is_overwritten(quiet_town: Path, tmp_path: Path) -> None:
    file = tmp_path / "saved"
    assert here("backup", str(file), "--city", str(quiet_town)).code == 0
    again = tmp_path / "again"
    again.mkdir()
    (again / "mine").write_text("mine")
    one_sentence(here("restore", str(file), str(again)), 4)
    assert [one.name for one in again.iterdir()] == ["mine"]
    one_sentence(here("restore", str(tmp_path / "none"), str(tmp_path / "b")), 3)
    (tmp_path / "rubbish").write_bytes(b"rubbish" * 100)
    one_sentence(here("restore", str(tmp_path / "rubbish"), str(tmp_path / "b")), 2)
    (tmp_path / "cut").write_bytes(file.read_bytes()[:-2000])
    one_sentence(here("restore", str(tmp_path / "cut"), str(tmp_path / "b")), 2)
    assert not (tmp_path / "b").exists()


def test_an_archive_never_writes_outside_the_city(quiet_town: Path, tmp_path: Path) -> None:
    file, bad = tmp_path / "saved", tmp_path / "bad"
    assert here("backup", str(file), "--city", str(quiet_town)).code == 0
    with tarfile.open(file) as before, tarfile.open(bad, "w:gz") as after:
        for entry in before:
            after.addfile(entry, before.extractfile(entry))
        link = tarfile.TarInfo("city/out")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        after.addfile(link)
        evil = tarfile.TarInfo("city/out/evil")
        evil.size = 4
        after.addfile(evil, io.BytesIO(b"evil"))
    assert "outside the city" in one_sentence(here("restore", str(bad), str(tmp_path / "b")), 2)
    assert not (tmp_path / "evil").exists()


def test_a_backup_of_a_newer_program_is_refused(quiet_town: Path, tmp_path: Path) -> None:
    file, newer = tmp_path / "saved", tmp_path / "newer"
    assert here("backup", str(file), "--city", str(quiet_town)).code == 0
    with tarfile.open(file) as before, tarfile.open(newer, "w:gz") as after:
        for entry in before:
            content = before.extractfile(entry)
            assert content is not None
            body = content.read()
            if entry.name == "manifest.json":
                body = json.dumps(json.loads(body) | {"schema": 10_000}).encode()
                entry.size = len(body)
            after.addfile(entry, io.BytesIO(body))
    assert "newer program" in one_sentence(here("restore", str(newer), str(tmp_path / "b")), 4)


def test_a_purge_leaves_no_worktree_in_a_repository_and_names_the_branches_that_stay(
    quiet_town: Path, tmp_path: Path
) -> None:
    def git(*words: str, at: Path = tmp_path / "rig") -> str:
        who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
        return subprocess.run(["git", *who, *words], cwd=at, check=True, capture_output=True, text=True).stdout

    (tmp_path / "rig").mkdir()
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    trees = quiet_town / ".gc" / "worktrees"
    for run in ("run_merged", "run_ahead"):
        git("worktree", "add", "-q", "-b", f"lamp/{run}", str(trees / run))
    git("commit", "-q", "--allow-empty", "-m", "work", at=trees / "run_ahead")
    (trees / "run_merged" / "loose").touch()
    done = lamp("uninstall", "--purge", "--yes", "--json", cwd=quiet_town)
    assert done.code == 0, done
    assert not (quiet_town / ".gc").exists()
    assert git("worktree", "list").count("\n") == 1, "the checkout itself is all that git knows of"
    assert git("branch", "--format=%(refname:short)").split() == ["lamp/run_ahead", "main"]
    [told] = [one for one in done.json["left"] if "branch" in one]
    assert f"{tmp_path / 'rig'}: the branch lamp/run_ahead, with commits" in told


@pytest.mark.timeout(900)
def test_uninstalled_a_city_is_stopped_and_its_files_stay_until_they_are_to_go(quiet_town: Path) -> None:
    assert lamp("daemon", "start", cwd=quiet_town).code == 0
    done = lamp("uninstall", "--json", cwd=quiet_town).json
    assert done["stopped"]
    assert any("--purge" in one for one in done["left"])
    assert (quiet_town / ".gc" / "lamp.db").exists()
    asked = lamp("uninstall", "--purge", cwd=quiet_town)  # nobody answers
    assert asked.code != 0
    assert (quiet_town / ".gc").exists()
    said = lamp("uninstall", "--purge", "--yes", cwd=quiet_town)
    assert said.code == 0, said
    assert "was not running" in said.out
    assert not (quiet_town / ".gc").exists()
    assert (quiet_town / "city.toml").exists()
