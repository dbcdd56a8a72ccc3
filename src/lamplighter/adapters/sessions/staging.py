"""Prepares a start on this machine: copies the overlay and files, runs shell commands."""

import os
import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from lamplighter.adapters.processes.child import Call, NotStarted, Output, TookTooLong, run_child
from lamplighter.domain.sessions.model import SessionSpec
from lamplighter.kit.errors import LampError
from lamplighter.ports.sessions import StartFailed

_OUTPUT_KEPT = 500


class SetupFailed(LampError):
    """A set-up step failed; the caller decides whether the start goes on."""


def copy_in(spec: SessionSpec) -> None:
    """Prepare the working directory; the overlay never overwrites existing files."""
    work_dir = Path(spec.work_dir)
    work_dir.mkdir(parents=True, exist_ok=True)
    if spec.setup.overlay_dir:
        _overlay(Path(spec.setup.overlay_dir), work_dir)
    for item in spec.setup.copy_files:
        copy_file(Path(item.source), work_dir, item.destination)


def copy_file(source: Path, work_dir: Path, destination: str) -> None:
    """Copy a file or tree to a place inside the working directory. Raises SetupFailed for a place outside it."""
    target = inside(work_dir, destination or source.name)
    if target == source.resolve():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


def inside(work_dir: Path, destination: str) -> Path:
    target = (work_dir / destination).resolve()
    if not target.is_relative_to(work_dir.resolve()):
        raise SetupFailed(
            f"`{destination}` leads out of the working directory {work_dir}.", hint="Give a path inside it."
        )
    return target


def check_command(spec: SessionSpec) -> None:
    """Raises StartFailed for a program that cannot be found, which would otherwise look like a crash just after."""
    if not spec.command:
        raise StartFailed(spec.name, "it has no command")
    program = spec.command[0]
    found = shutil.which(program, path=spec.env.get("PATH", os.defpath))
    if found is None and not (Path(spec.work_dir) / program).is_file():
        raise StartFailed(
            spec.name, f"there is no program `{program}`", hint="Is it installed, and on the agent's PATH?"
        )


async def run(command: str, *, work_dir: str, env: Mapping[str, str], within: timedelta) -> None:
    """Run one shell command; at the limit it is ended with all it started. Raises SetupFailed with its last output."""
    call = Call(
        ("/bin/sh", "-c", command), work_dir, env, within, output=Output.END, longest_output=_OUTPUT_KEPT
    )  # fmt: skip
    try:
        ended = await run_child(call)
    except NotStarted as error:
        raise SetupFailed(f"`{command}` did not start: {error.reason}.", hint=error.hint) from error
    except TookTooLong:
        raise SetupFailed(f"`{command}` took longer than {within.total_seconds():g} s.") from None
    if ended.exit_code:
        said = ended.output.decode(errors="replace").strip()
        raise SetupFailed(f"`{command}` ended with status {ended.exit_code}: {said}")


def _overlay(source: Path, work_dir: Path) -> None:
    for path in sorted(source.rglob("*")):
        target = work_dir / path.relative_to(source)
        if path.is_dir():
            target.mkdir(exist_ok=True, parents=True)
        elif not target.exists() and not target.is_symlink():
            shutil.copy2(path, target, follow_symlinks=False)
