"""Builds sessions on this machine: finds programs and branches, writes hook files and the programs' own files."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from lamplighter.adapters.files import conversations
from lamplighter.adapters.files.seeding import write_seeds
from lamplighter.domain.city.build import Built, CannotBuild, Surroundings, built
from lamplighter.domain.city.hooks import HookFile, hook_files, hooks_of
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import Agent
from lamplighter.domain.city.variables import Branches, rig_of, session_name, work_dir
from lamplighter.domain.sessions.model import NOTHING, SessionSpec
from lamplighter.domain.sessions.presets.model import Place, Preset
from lamplighter.domain.sessions.resuming import may_go_on
from lamplighter.kit.clock import Clock
from lamplighter.kit.records import record

_OWN = "lamp"


@record
class FileWorkshop:
    """`runtime` is the city's `.gc`; `env` is that of the process that starts sessions."""

    runtime: Path
    env: Mapping[str, str]
    clock: Clock
    setup_env: Mapping[str, str] = field(default_factory=lambda: NOTHING)

    def build(self, loaded: LoadedCity, agent: Agent, instance: str) -> SessionSpec:
        place = work_dir(loaded.city, agent)
        self._need_rig(loaded, agent)
        parent = {**self.env, "PATH": with_own(self.env.get("PATH", os.defpath))}
        path = agent.env.get("PATH", parent["PATH"])
        around = Surroundings(
            parent=parent,
            installed=lambda command: shutil.which(command, path=path) is not None,
            files_dir=str(self.runtime / "agents" / session_name(loaded.city, instance)),
            now=self.clock.now(),
            branches=branches_of(place),
            in_repository=_git_dir(place) is not None,
            before=self._before(session_name(loaded.city, instance), str(place)),
            as_root=os.geteuid() == 0,
            setup_env=self.setup_env,
        )
        made = built(loaded, agent, instance, around)
        try:
            self._lay_out(loaded, agent, made, around.files_dir)
            self._note(made, Path(around.files_dir))
        except OSError as error:
            raise CannotBuild(
                f"Agent `{instance}` cannot be prepared: {error.filename}: {error.strerror}.",
                hint="Check the owner, mode and disk of that place.",
            ) from error
        return made.spec

    def _before(self, session: str, place: str) -> Callable[[Preset, Mapping[str, str]], str]:
        def found(preset: Preset, env: Mapping[str, str]) -> str:
            before = conversations.kept(self.runtime / "agents" / session)
            if before is None or preset.conversations is None:
                return ""
            if not may_go_on(before, program=preset.name, work_dir=place, now=self.clock.now()):
                return ""
            return conversations.find(preset.conversations, before, env)

        return found

    def _note(self, made: Built, files_dir: Path) -> None:
        before = conversations.kept(files_dir) if made.goes_on else None
        conversed = made.begun or before
        if conversed is not None:
            conversations.keep(files_dir, conversed.started(self.clock.now()))

    def _need_rig(self, loaded: LoadedCity, agent: Agent) -> None:
        """Raises CannotBuild when the rig's directory is missing: a start must not create it."""
        rig = rig_of(loaded.city, agent)
        if rig is not None and not loaded.city.rig_path(rig).is_dir():
            raise CannotBuild(
                f"Agent `{agent.qualified_name}` cannot start: the directory of rig `{rig.name}`, "
                f"{loaded.city.rig_path(rig)}, is not there.",
                hint="Mend the rig's path in city.toml, or check the project out there.",
            )

    def _lay_out(self, loaded: LoadedCity, agent: Agent, made: Built, files_dir: str) -> None:
        names = hooks_of(loaded.city, agent, made.provider)
        for file in hook_files(names, loaded.city.root, Path(made.spec.work_dir)):
            install(file)
        homes = {
            Place.FILES: Path(files_dir),
            Place.HOME: Path(made.spec.env.get("HOME", str(Path.home()))),
            Place.WORK: Path(made.spec.work_dir),
        }
        write_seeds(made.files, homes, keep_unreadable=True)


def with_own(path: str) -> str:
    """`path`, with this program's directory appended if `lamp` is not on it, because agents call `lamp`."""
    if shutil.which(_OWN, path=path) is not None:
        return path
    return f"{path}:{Path(sys.executable).parent}"


def install(file: HookFile) -> bool:
    """Create the file; False when something exists there, which is left unchanged."""
    file.path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(file.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as writing:
        writing.write(file.content)
    return True


def branches_of(directory: Path) -> Branches:
    """The current and the default branch, read from git's files: a start must not wait for a git process."""
    git = _git_dir(directory)
    if git is None:
        return Branches()
    shared = git / _line(git / "commondir") if (git / "commondir").exists() else git
    default = _branch(_line(shared / "refs/remotes/origin/HEAD"), "ref: refs/remotes/origin/")
    return Branches(_branch(_line(git / "HEAD"), "ref: refs/heads/"), default)


def _git_dir(directory: Path) -> Path | None:
    for place in (directory, *directory.parents):
        git = place / ".git"
        if git.is_dir():
            return git
        if git.is_file():
            return place / _branch(_line(git), "gitdir: ")
    return None


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _branch(line: str, prefix: str) -> str:
    return line.removeprefix(prefix) if line.startswith(prefix) else ""
