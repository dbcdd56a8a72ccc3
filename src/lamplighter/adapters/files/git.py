"""Fetches one commit of a git repository into a plain directory, with the `git` command."""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from lamplighter.adapters.files.fetch_failed import FetchFailed
from lamplighter.adapters.git.command import Git
from lamplighter.kit.errors import LampError
from lamplighter.kit.masking import masked
from lamplighter.ports.worktrees import GitFailed

LIMIT = timedelta(seconds=120)
# A URL can make git run a program (ext::); the URL of a topology must not.
_SAFE = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh", "GIT_CONFIG_NOSYSTEM": "1"}
_POINTERS = frozenset({
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_QUARANTINE_PATH",
})  # fmt: skip


def fetch_into(
    target: Path, source: str, ref: str, env: Mapping[str, str], *, accept: Callable[[Path, str], None]
) -> None:
    """Put `ref` of `source` at `target`, replacing what is there only when everything succeeded. Raises FetchFailed.

    `accept` gets the new directory and its commit before that, and refuses them by raising.
    """
    if source.startswith("-") or ref.startswith("-"):
        raise FetchFailed(f"`{masked(source)}` at `{ref}` looks like an option, not like a repository.")
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=target.parent))
    try:
        commit = _checkout(work, source, ref or "HEAD", _git(env))
        shutil.rmtree(work / ".git")
        accept(work, commit)
        _put(work, target)
    except GitFailed as error:
        raise FetchFailed(masked(error.said)) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _checkout(work: Path, source: str, ref: str, git: Git) -> str:
    git.run(work, "init", "-q")
    try:
        git.run(work, "fetch", "-q", "--depth", "1", source, ref)
    except GitFailed:
        # Some servers give a commit by its id only with its history. Fetch all to tell that from a missing ref.
        git.run(work, "fetch", "-q", source, "+refs/*:refs/theirs/*")
        git.run(work, "update-ref", "FETCH_HEAD", _found(ref, work, git))
    git.run(work, "-c", "advice.detachedHead=false", "checkout", "-q", "--detach", "FETCH_HEAD")
    return git.run(work, "rev-parse", "HEAD").strip()


def _found(ref: str, work: Path, git: Git) -> str:
    try:
        return git.run(work, "rev-parse", "--verify", "-q", f"{ref}^{{commit}}").strip()
    except GitFailed as error:
        raise FetchFailed(f"there is no `{ref}` in it") from error


def _git(env: Mapping[str, str]) -> Git:
    """Keeps the user's GIT_ variables, such as how to reach a server, but none that point to another repository."""
    if shutil.which("git", path=env.get("PATH")) is None:
        raise FetchFailed("The `git` command is not installed.", hint="Install git, or use local topologies.")
    own = {name: value for name, value in env.items() if name.startswith("GIT_") and name not in _POINTERS}
    return Git(env, limit=LIMIT, more={"GIT_SSH_COMMAND": "ssh -oBatchMode=yes", **own, **_SAFE})


def _put(work: Path, target: Path) -> None:
    old = target.with_name(f".old-{target.name}")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    try:
        work.rename(target)
    except OSError as error:
        if old.exists():
            old.rename(target)
        raise LampError(f"{target} could not be put in place: {error.strerror}.") from error
    shutil.rmtree(old, ignore_errors=True)
