"""Fetching one commit of a git repository into a plain directory, by the `git` command."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.masking import masked

LIMIT_S = 120.0
# Git can be told by a URL to run a program (ext::); a topology must not.
_SAFE = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh", "GIT_CONFIG_NOSYSTEM": "1"}


class FetchFailed(Unavailable):
    """A repository could not be fetched; the message names it without any password."""


def fetch_into(
    target: Path, source: str, ref: str, env: Mapping[str, str], *, accept: Callable[[Path, str], None]
) -> None:
    """Put `ref` of `source` at `target`, replacing what is there only when all went well.

    `accept` sees the new directory and its commit first, and refuses by raising.
    """
    if source.startswith("-") or ref.startswith("-"):
        raise FetchFailed(f"`{masked(source)}` at `{ref}` looks like an option, not like a repository.")
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=target.parent))
    try:
        commit = _checkout(work, source, ref or "HEAD", env)
        shutil.rmtree(work / ".git")
        accept(work, commit)
        _put(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _checkout(work: Path, source: str, ref: str, env: Mapping[str, str]) -> str:
    _git(["init", "-q"], work, env)
    try:
        _git(["fetch", "-q", "--depth", "1", source, ref], work, env)
    except FetchFailed:
        # Some servers hand out a bare commit only with its history; asking for everything tells the two apart.
        _git(["fetch", "-q", source, "+refs/*:refs/theirs/*"], work, env)
        _git(["update-ref", "FETCH_HEAD", _found(ref, work, env)], work, env)
    _git(["-c", "advice.detachedHead=false", "checkout", "-q", "--detach", "FETCH_HEAD"], work, env)
    return _git(["rev-parse", "HEAD"], work, env).strip()


def _found(ref: str, work: Path, env: Mapping[str, str]) -> str:
    return _git(
        ["rev-parse", "--verify", "-q", f"{ref}^{{commit}}"], work, env, what=f"there is no `{ref}` in it"
    ).strip()


def _git(args: list[str], work: Path, env: Mapping[str, str], *, what: str = "") -> str:
    given = {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes", **env, **_SAFE}
    try:
        # Its own group, for git starts helpers, and they would keep the pipes open.
        running = subprocess.Popen(
            ["git", *args], cwd=work, env=given, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError:
        raise FetchFailed("The `git` command is not installed.", hint="Install git, or use local topologies.") from None
    with running:
        try:
            said, complained = running.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            raise FetchFailed(f"`git {args[0]}` took longer than {LIMIT_S:g} s.") from None
    if running.returncode != 0:
        lines = complained.decode("utf-8", "replace").strip().splitlines()
        raise FetchFailed(what or masked(lines[-1] if lines else f"`git {args[0]}` failed"))
    return said.decode("utf-8", "replace")


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
