"""Worktrees of runs, with real git repositories."""

import asyncio
import os
import shutil
import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lamplighter.adapters.git.command import Git
from lamplighter.adapters.git.worktrees import GitWorktrees
from lamplighter.ports.worktrees import Changes, DoesNotApply, GitFailed, Kept, NoWorktree, Removed, Worktree

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
}
WHO = ["-c", "user.name=Ada", "-c", "user.email=ada@example.test", "-c", "commit.gpgsign=false"]


def git(where: Path, *args: str) -> str:
    done = subprocess.run(["git", *WHO, *args], cwd=where, env=ENV, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(where: Path, name: str, text: str = "x\n") -> str:
    (where / name).parent.mkdir(parents=True, exist_ok=True)
    (where / name).write_text(text)
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", f"change {name}")
    return git(where, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "rig"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    commit(path, "sub/lamp.py", "one\ntwo\n")
    return path


@pytest.fixture
def worktrees(tmp_path: Path) -> GitWorktrees:
    return GitWorktrees(tmp_path / "city/.gc/worktrees", Git(ENV | {"GIT_DIR": "/nonexistent"}))


@pytest.fixture
async def worktree(worktrees: GitWorktrees, repository: Path) -> Worktree:
    return await worktrees.ensure("run_1", repository)


def test_path_and_branch_follow_from_the_run(worktree: Worktree, tmp_path: Path, repository: Path) -> None:
    assert worktree.path == tmp_path / "city/.gc/worktrees/run_1"
    assert worktree.branch == "lamp/run_1"
    assert git(worktree.path, "branch", "--show-current") == "lamp/run_1"
    assert (worktree.path / "sub/lamp.py").read_text() == "one\ntwo\n"
    assert git(repository, "branch", "--show-current") == "main"
    assert git(repository, "status", "--porcelain") == ""


async def test_a_rig_below_the_top_of_its_repository_works_below_the_top(
    worktrees: GitWorktrees, repository: Path
) -> None:
    made = await worktrees.ensure("run_1", repository / "sub")
    assert made.work_dir == made.path / "sub"
    assert made.repository == repository


async def test_making_it_again_finds_it_and_keeps_what_is_in_it(
    worktrees: GitWorktrees, worktree: Worktree, repository: Path
) -> None:
    (worktree.path / "new.py").write_text("work\n")
    tip = commit(worktree.path, "done.py")
    commit(repository, "later.py")
    assert await worktrees.ensure("run_1", repository) == worktree
    assert (worktree.path / "new.py").exists()
    assert git(worktree.path, "rev-parse", "HEAD") == tip


@pytest.mark.parametrize("cut", ["base", "branch", "directory gone", "record only", "half a checkout", "locked"])
async def test_a_start_that_was_cut_off_is_taken_up(
    worktrees: GitWorktrees, repository: Path, tmp_path: Path, cut: str
) -> None:
    path = tmp_path / "city/.gc/worktrees/run_1"
    begun = git(repository, "rev-parse", "HEAD")
    git(repository, "update-ref", "refs/lamplighter/base/run_1", "HEAD")
    if cut != "base":
        git(repository, "branch", "lamp/run_1")
    if cut in {"directory gone", "half a checkout", "locked"}:
        git(repository, "worktree", "add", "-q", str(path), "lamp/run_1")
        (path / "sub/lamp.py").unlink()
    if cut == "directory gone":
        shutil.rmtree(path)
    if cut == "record only":
        (path / "sub").mkdir(parents=True)
        (path / ".git").write_text("gitdir: /nonexistent\n")
    if cut == "locked":
        git(repository, "worktree", "lock", "--reason", "initializing", str(path))
    commit(repository, "later.py")
    made = await worktrees.ensure("run_1", repository)
    assert (made.path / "sub/lamp.py").read_text() == "one\ntwo\n"
    assert not (made.path / "later.py").exists()
    assert git(made.path, "rev-parse", "HEAD") == begun
    assert git(repository, "worktree", "list").count("run_1") >= 1
    assert await worktrees.changes(made) == Changes()


async def test_what_differs_is_counted(worktrees: GitWorktrees, worktree: Worktree) -> None:
    assert (await worktrees.changes(worktree)).none
    commit(worktree.path, "sub/lamp.py", "one\n2\nthree\n")
    (worktree.path / "blob").write_bytes(bytes(range(256)))
    git(worktree.path, "add", "-A")
    (worktree.path / "ünï code\n.txt").write_text("new\n")
    changes = await worktrees.changes(worktree)
    assert changes == Changes(commits=1, files=2, insertions=2, deletions=1, untracked=1)
    assert str(changes) == "1 commit, 2 files changed, +2 -1, 1 new file"
    assert str(Changes()) == "no changes"


async def test_what_is_clean_and_merged_is_removed_with_its_branch(
    worktrees: GitWorktrees, worktree: Worktree, repository: Path
) -> None:
    commit(worktree.path, "done.py")
    git(repository, "merge", "-q", "lamp/run_1")
    assert await worktrees.release(worktree) == Removed()
    assert not worktree.path.exists()
    assert "lamp/run_1" not in git(repository, "branch", "--list")
    assert git(repository, "for-each-ref", "refs/lamplighter") == ""
    assert await worktrees.release(worktree) == Removed(), "it may be repeated"
    assert await worktrees.all() == []


async def test_a_run_that_did_nothing_leaves_nothing(worktrees: GitWorktrees, worktree: Worktree) -> None:
    assert await worktrees.release(worktree) == Removed()


async def test_ignored_files_are_no_reason_to_keep_it(
    worktrees: GitWorktrees, worktree: Worktree, repository: Path
) -> None:
    (repository / ".git/info/exclude").write_text("cache/\n")
    (worktree.path / "cache").mkdir()
    (worktree.path / "cache/x").write_text("x")
    assert await worktrees.release(worktree) == Removed()


@pytest.mark.parametrize("untracked", [True, False])
async def test_what_is_uncommitted_is_kept(worktrees: GitWorktrees, worktree: Worktree, *, untracked: bool) -> None:
    (worktree.path / ("new.py" if untracked else "sub/lamp.py")).write_text("changed\n")
    kept = await worktrees.release(worktree)
    assert isinstance(kept, Kept)
    assert kept.why == "uncommitted"
    assert not kept.changes.none
    assert [one.run for one in await worktrees.all()] == ["run_1"]


async def test_what_is_committed_but_not_merged_is_kept(worktrees: GitWorktrees, worktree: Worktree) -> None:
    commit(worktree.path, "done.py")
    kept = await worktrees.release(worktree)
    assert isinstance(kept, Kept)
    assert (kept.why, kept.changes.commits) == ("unmerged", 1)


async def test_a_branch_pushed_under_its_own_name_is_not_merged_by_that(
    worktrees: GitWorktrees, worktree: Worktree, repository: Path, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(repository, "remote", "add", "origin", str(tmp_path / "remote.git"))
    commit(worktree.path, "done.py")
    git(worktree.path, "push", "-q", "origin", "lamp/run_1")
    assert isinstance(await worktrees.release(worktree), Kept)
    git(worktree.path, "push", "-q", "origin", "lamp/run_1:refs/heads/main")
    git(repository, "fetch", "-q")
    assert await worktrees.release(worktree) == Removed()


async def test_commits_that_hang_on_no_branch_are_kept(worktrees: GitWorktrees, worktree: Worktree) -> None:
    git(worktree.path, "checkout", "-q", "--detach")
    commit(worktree.path, "loose.py")
    assert isinstance(await worktrees.release(worktree), Kept)


async def test_a_branch_that_the_agent_made_itself_keeps_its_commits(
    worktrees: GitWorktrees, worktree: Worktree, repository: Path
) -> None:
    git(worktree.path, "checkout", "-q", "-b", "feature")
    tip = commit(worktree.path, "done.py")
    assert await worktrees.release(worktree) == Removed()
    assert git(repository, "rev-parse", "feature") == tip


async def test_discarding_takes_the_directory_and_leaves_unmerged_commits(
    worktrees: GitWorktrees, worktree: Worktree, repository: Path
) -> None:
    tip = commit(worktree.path, "done.py")
    (worktree.path / "half.py").write_text("half\n")
    await worktrees.discard(worktree)
    await worktrees.discard(worktree)
    assert not worktree.path.exists()
    assert git(repository, "rev-parse", "lamp/run_1") == tip


async def test_a_removal_that_was_cut_off_is_finished(
    worktrees: GitWorktrees, worktree: Worktree, repository: Path
) -> None:
    shutil.rmtree(worktree.path)
    assert await worktrees.release(worktree) == Removed()
    assert "run_1" not in git(repository, "worktree", "list")
    assert git(repository, "for-each-ref", "refs/lamplighter") == ""


async def test_worktrees_of_several_repositories_are_listed_by_run(
    worktrees: GitWorktrees, worktree: Worktree, tmp_path: Path, repository: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(repository, other)
    git(other, "worktree", "prune")
    second = await worktrees.ensure("run_2", other)
    (worktree.path.parent / "run_3").mkdir()
    found = await worktrees.all()
    assert [(one.run, one.repository) for one in found] == [("run_1", repository), ("run_2", other)]
    assert await worktrees.release(replace(found[1], work_dir=second.work_dir)) == Removed()


async def test_worktrees_of_other_people_that_are_away_are_not_forgotten(
    worktrees: GitWorktrees, worktree: Worktree, repository: Path, tmp_path: Path
) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "stick"), "-b", "theirs")
    (tmp_path / "stick").rename(tmp_path / "pocket")
    assert await worktrees.release(worktree) == Removed()
    await worktrees.ensure("run_2", repository)
    assert "stick" in git(repository, "worktree", "list")


async def test_a_branch_that_a_person_looks_at_stays(
    worktrees: GitWorktrees, worktree: Worktree, repository: Path
) -> None:
    git(worktree.path, "checkout", "-q", "--detach")
    git(repository, "checkout", "-q", "lamp/run_1")
    assert await worktrees.release(worktree) == Removed()
    assert git(repository, "branch", "--show-current") == "lamp/run_1"


async def test_a_bare_repository_with_worktrees_is_understood(
    worktrees: GitWorktrees, repository: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "main"), "main")
    await worktrees.ensure("run_1", tmp_path / "main")
    found = await worktrees.all()
    assert [one.repository for one in found] == [tmp_path / "bare.git"]
    assert await worktrees.release(found[0]) == Removed()


async def test_a_directory_without_a_repository_has_no_worktree(worktrees: GitWorktrees, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(NoWorktree, match="not in a git repository"):
        await worktrees.ensure("run_1", plain)
    git(plain, "init", "-q")
    with pytest.raises(NoWorktree, match="no commit"):
        await worktrees.ensure("run_1", plain)


@pytest.mark.parametrize("run", ["", "..", "../x", "a/b", "-x", "a b", "x" * 101])
async def test_a_run_id_that_is_no_name_is_refused(worktrees: GitWorktrees, repository: Path, run: str) -> None:
    with pytest.raises(NoWorktree):
        await worktrees.ensure(run, repository)


async def test_a_git_that_hangs_is_ended_with_its_children(
    worktrees: GitWorktrees, repository: Path, tmp_path: Path
) -> None:
    """The hook holds the pipe open for as long as it lives."""
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\nexec > {tmp_path}/pipe\necho started\nexec sleep 300\n")
    hook.chmod(0o755)
    making = asyncio.create_task(worktrees.ensure("run_1", repository))
    assert await heard(pipe) == b"started\n"
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    assert await heard(pipe) == b"", "nobody holds the other end any more"
    os.close(pipe)
    hook.unlink()
    made = await worktrees.ensure("run_1", repository)
    assert git(made.path, "status", "--porcelain") == ""


async def test_a_git_that_takes_too_long_has_failed(repository: Path) -> None:
    with pytest.raises(GitFailed, match="took longer than 0 s"):
        await Git(ENV, limit=timedelta(0))(repository, "status")


async def heard(pipe: int) -> bytes:
    """The next that is said on the pipe; nothing once it is closed at its other end."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pipe, ready.set)
    try:
        async with asyncio.timeout(30):
            await ready.wait()
    finally:
        loop.remove_reader(pipe)
    return os.read(pipe, 100)


async def test_all_that_was_changed_is_shown_as_a_patch_and_the_index_stays(
    worktrees: GitWorktrees, worktree: Worktree
) -> None:
    commit(worktree.path, "done.txt", "committed\n")
    (worktree.path / "sub/lamp.py").write_text("one\ntwo\nthree\n")
    (worktree.path / "new.bin").write_bytes(b"\x00\xff\n")
    before = git(worktree.path, "status", "--porcelain")
    patch = await worktrees.patch(worktree)
    assert all(name in patch for name in ("done.txt", "sub/lamp.py", "+three", "new.bin"))
    assert git(worktree.path, "status", "--porcelain") == before
    assert not list((await worktrees._git_dir(worktree)).glob("lamplighter*patch"))


async def test_changes_are_taken_over_uncommitted_once(
    worktrees: GitWorktrees, worktree: Worktree, repository: Path
) -> None:
    commit(worktree.path, "done.txt", "committed\n")
    (worktree.path / "sub/lamp.py").write_text("one\ntwo\nthree\n")
    (worktree.path / "new.bin").write_bytes(b"\x00\xff\n")
    head = git(repository, "rev-parse", "HEAD")
    assert await worktrees.apply(worktree)
    assert (repository / "sub/lamp.py").read_text() == "one\ntwo\nthree\n"
    assert (repository / "new.bin").read_bytes() == b"\x00\xff\n"
    assert git(repository, "rev-parse", "HEAD") == head
    assert not await worktrees.apply(worktree), "a second time they are there already"
    assert await worktrees.discard(worktree) == worktree.branch, "its commit is on no other branch"
    assert not worktree.path.exists()


async def test_changes_that_do_not_fit_change_nothing(
    worktrees: GitWorktrees, worktree: Worktree, repository: Path
) -> None:
    (worktree.path / "sub/lamp.py").write_text("one\nTWO\n")
    (worktree.path / "new.txt").write_text("new\n")
    (repository / "sub/lamp.py").write_text("a person's own\n")
    with pytest.raises(DoesNotApply, match="do not fit") as told:
        await worktrees.apply(worktree)
    assert worktree.branch in (told.value.hint or "")
    assert (repository / "sub/lamp.py").read_text() == "a person's own\n"
    assert not (repository / "new.txt").exists()


async def test_nothing_is_taken_over_from_a_worktree_that_changed_nothing_or_is_gone(
    worktrees: GitWorktrees, worktree: Worktree
) -> None:
    assert await worktrees.patch(worktree) == ""
    assert not await worktrees.apply(worktree)
    assert await worktrees.discard(worktree) is None
    assert await worktrees.discard(worktree) is None
    with pytest.raises(NoWorktree, match="is not there"):
        await worktrees.apply(worktree)
