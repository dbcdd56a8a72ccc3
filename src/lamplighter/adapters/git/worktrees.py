"""Git worktrees of runs; path and branch follow from the run's id, so that an interrupted start can be resumed."""

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from lamplighter.adapters.git.command import Git
from lamplighter.ports.worktrees import Changes, DoesNotApply, GitFailed, Kept, NoWorktree, Removed, Worktree

BRANCHES = "lamp"
_BASES = "refs/lamplighter/base"
_READY = "lamplighter-ready"
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{0,99}")


class GitWorktrees:
    """Worktrees below one directory, of any number of repositories.

    The commit where a run began is kept as a ref of its repository. `ensure` returns a worktree only once a mark file
    in its git directory says that it is complete; one without the mark was interrupted, and is made anew.
    """

    def __init__(self, root: Path, git: Git) -> None:
        self._root = root
        self._git = git

    async def ensure(self, run: str, directory: Path) -> Worktree:
        worktree = await self._planned(run, directory)
        if not await self._whole(worktree):
            await self._sweep(worktree)
            await self._make(worktree)
        return worktree

    async def changes(self, worktree: Worktree) -> Changes:
        base = await self._base(worktree)
        where = worktree.path
        counted = [line.split("\t") for line in _entries(await self._git(where, "diff", "--numstat", "-z", base))]
        rows = [row for row in counted if len(row) == 3]  # a rename's two names are separate entries
        return Changes(
            commits=int(await self._git(where, "rev-list", "--count", f"{base}..HEAD")),
            files=len(rows),
            insertions=sum(_count(row[0]) for row in rows),
            deletions=sum(_count(row[1]) for row in rows),
            untracked=len(_entries(await self._git(where, "ls-files", "--others", "--exclude-standard", "-z"))),
        )

    async def release(self, worktree: Worktree) -> Removed | Kept:
        if await self._whole(worktree):
            why = await self._would_lose(worktree)
            if why:
                return Kept(worktree, why, await self.changes(worktree))
        await self._sweep(worktree)
        await self._drop_branch(worktree)
        return Removed()

    async def discard(self, worktree: Worktree) -> str | None:
        await self._sweep(worktree)
        await self._drop_branch(worktree)
        left = await self._exists(worktree.repository, f"refs/heads/{worktree.branch}")
        return worktree.branch if left else None

    async def size(self, worktree: Worktree) -> int | None:
        return await asyncio.to_thread(_size, worktree.path)

    async def shed(self, worktree: Worktree) -> list[str]:
        removed = []
        for path in await asyncio.to_thread(_made_by_setup, worktree.path):
            if await self._git.ok(worktree.path, "check-ignore", "--quiet", str(path)):
                await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
                removed.append(str(path.relative_to(worktree.path)))
        return removed

    async def patch(self, worktree: Worktree) -> str:
        async with self._patched(worktree) as file:
            return await asyncio.to_thread(file.read_text, encoding="utf-8", errors="replace")

    async def apply(self, worktree: Worktree) -> bool:
        async with self._patched(worktree) as file:
            if not await asyncio.to_thread(lambda: file.stat().st_size):
                return False
            where = worktree.repository
            try:
                await self._git(where, "apply", "--whitespace=nowarn", str(file))
            except GitFailed as error:
                if await self._git.ok(where, "apply", "--check", "--reverse", str(file)):
                    return False
                raise DoesNotApply(worktree, error.said.removeprefix("error: ")) from error
            return True

    @contextlib.asynccontextmanager
    async def _patched(self, worktree: Worktree) -> AsyncIterator[Path]:
        """A file with the patch. It is made with an index of its own: that of the worktree stays as the agent left it.

        Raises NoWorktree.
        """
        if not await self._whole(worktree):
            raise NoWorktree(
                f"The worktree of run {worktree.run} is not there: {worktree.path}.",
                hint="It was removed, or is on another node: `lamp run show` names that.",
            )
        home = await self._git_dir(worktree)
        index, file = home / "lamplighter-index", home / "lamplighter.patch"
        git = self._git.with_index(index)
        try:
            with contextlib.suppress(FileNotFoundError):  # so that unchanged files need not be read
                await asyncio.to_thread(shutil.copyfile, home / "index", index)
            await git(worktree.path, "add", "--all")
            base = await self._base(worktree)
            await git(worktree.path, "diff", "--cached", "--binary", "--no-color", f"--output={file}", base)
            yield file
        finally:
            index.unlink(missing_ok=True)
            file.unlink(missing_ok=True)

    async def all(self) -> Sequence[Worktree]:
        found = await asyncio.to_thread(lambda: sorted(self._root.iterdir()) if self._root.is_dir() else [])
        known = [await self._found(path) for path in found if _RUN.fullmatch(path.name) and path.is_dir()]
        return [worktree for worktree in known if worktree is not None]

    # ── making ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _planned(self, run: str, directory: Path) -> Worktree:
        if not _RUN.fullmatch(run):
            raise NoWorktree(f"`{run}` cannot name a worktree.")
        try:
            top = Path((await self._git(directory, "rev-parse", "--show-toplevel")).rstrip("\n"))
            inside = (await self._git(directory, "rev-parse", "--show-prefix")).rstrip("\n")
        except GitFailed as error:
            raise NoWorktree(
                f"{directory} is not in a git repository.", hint='Set `[runs] isolation = "none"` to work in place.'
            ) from error
        path = self._root / run
        return Worktree(run, path, f"{BRANCHES}/{run}", top, path / inside)

    async def _make(self, worktree: Worktree) -> None:
        """Sets the base ref first. A branch left by an earlier attempt is checked out as it is."""
        repository = worktree.repository
        if not await self._git.ok(repository, "rev-parse", "--verify", "-q", "HEAD^{commit}"):
            raise NoWorktree(f"{repository} has no commit yet.", hint="Make a first commit, or work in place.")
        if not await self._exists(repository, _base_ref(worktree)):
            await self._git(repository, "update-ref", _base_ref(worktree), "HEAD")
        worktree.path.parent.mkdir(parents=True, exist_ok=True)
        if await self._exists(repository, f"refs/heads/{worktree.branch}"):
            where: tuple[str, ...] = (str(worktree.path), worktree.branch)
        else:
            where = ("--no-track", "-b", worktree.branch, str(worktree.path), _base_ref(worktree))
        await self._git(repository, "worktree", "add", "-q", *where)
        worktree.work_dir.mkdir(parents=True, exist_ok=True)  # it is missing if nothing in it was ever committed
        (await self._git_dir(worktree) / _READY).touch()

    async def _whole(self, worktree: Worktree) -> bool:
        if not (worktree.path / ".git").is_file():
            return False
        with contextlib.suppress(GitFailed):
            return (await self._git_dir(worktree) / _READY).exists()
        return False

    async def _git_dir(self, worktree: Worktree) -> Path:
        return Path((await self._git(worktree.path, "rev-parse", "--absolute-git-dir")).rstrip("\n"))

    async def _sweep(self, worktree: Worktree) -> None:
        """Remove the directory and git's record of it, whichever of the two exists.

        `git worktree prune` would also drop the records of other people's worktrees that are only temporarily missing.
        """
        await self._git.ok(worktree.repository, "worktree", "remove", "--force", "--force", str(worktree.path))
        await asyncio.to_thread(shutil.rmtree, worktree.path, ignore_errors=True)

    # ── ending ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _would_lose(self, worktree: Worktree) -> str:
        if await self._git(worktree.path, "status", "--porcelain", "--untracked-files=all"):
            return "uncommitted"
        head_kept = await self._elsewhere(worktree, await self._commit(worktree.path, "HEAD"))
        return "" if head_kept and await self._merged(worktree) else "unmerged"

    async def _merged(self, worktree: Worktree) -> bool:
        if not await self._exists(worktree.repository, f"refs/heads/{worktree.branch}"):
            return True
        tip = await self._commit(worktree.repository, f"refs/heads/{worktree.branch}")
        return await self._elsewhere(worktree, tip)

    async def _elsewhere(self, worktree: Worktree, commit: str) -> bool:
        """Whether a branch other than the run's own, local or remote-tracking, contains the commit."""
        refs = await self._git(
            worktree.repository,
            "for-each-ref",
            "--contains",
            commit,
            "--format=%(refname)",
            "refs/heads",
            "refs/remotes",
        )
        return any(not ref.endswith(f"/{worktree.branch}") for ref in refs.split())

    async def _drop_branch(self, worktree: Worktree) -> None:
        """Delete the run's branch and base ref, unless the branch is unmerged or a person has it checked out."""
        repository = worktree.repository
        if not await self._merged(worktree):
            return
        there = await self._exists(repository, f"refs/heads/{worktree.branch}")
        gone = not there or await self._git.ok(repository, "branch", "-q", "-D", worktree.branch)
        if gone and await self._exists(repository, _base_ref(worktree)):
            await self._git(repository, "update-ref", "-d", _base_ref(worktree))

    # ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _found(self, path: Path) -> Worktree | None:
        try:
            common = (await self._git(path, "rev-parse", "--path-format=absolute", "--git-common-dir")).rstrip("\n")
        except GitFailed:
            return None
        shared = Path(common)
        repository = shared.parent if shared.name == ".git" else shared  # a bare repository is its own git directory
        return Worktree(path.name, path, f"{BRANCHES}/{path.name}", repository, path)

    async def _base(self, worktree: Worktree) -> str:
        """The commit where the run began; HEAD when its ref is gone, so that only uncommitted changes count."""
        known = await self._exists(worktree.repository, _base_ref(worktree))
        return await self._commit(worktree.repository, _base_ref(worktree)) if known else "HEAD"

    async def _commit(self, where: Path, ref: str) -> str:
        return (await self._git(where, "rev-parse", "--verify", f"{ref}^{{commit}}")).strip()

    async def _exists(self, repository: Path, ref: str) -> bool:
        return await self._git.ok(repository, "rev-parse", "--verify", "-q", f"{ref}^{{commit}}")


_DEPENDENCIES = frozenset({
    "node_modules", ".venv", "venv", ".tox", ".nox", "target", ".gradle", "__pycache__", ".mypy_cache", ".pytest_cache",
    ".ruff_cache", ".next", ".turbo", "Pods", "bower_components",
})  # fmt: skip


def _made_by_setup(root: Path) -> list[Path]:
    """Directories below it that hold dependencies or caches; links are left, because what they lead to is shared."""
    found = []
    for folder, names, _files in os.walk(root):
        here = [name for name in names if name in _DEPENDENCIES and not (Path(folder) / name).is_symlink()]
        found += [Path(folder) / name for name in here]
        names[:] = [name for name in names if name not in _DEPENDENCIES and name != ".git"]
    return sorted(found)


def _size(root: Path) -> int | None:
    if not root.is_dir():
        return None
    total = 0
    for folder, _names, files in os.walk(root):
        for name in files:
            with contextlib.suppress(OSError):  # it is gone meanwhile
                total += (Path(folder) / name).lstat().st_blocks * 512
    return total


def _base_ref(worktree: Worktree) -> str:
    return f"{_BASES}/{worktree.run}"


def _entries(text: str) -> list[str]:
    return [entry for entry in text.split("\0") if entry]


def _count(text: str) -> int:
    return int(text) if text.isdigit() else 0  # git prints `-` for a binary file
