"""What `lamp doctor` says of programs and of the machine: agent programs, their versions, limits and clocks."""

import re
import resource
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from lamplighter.adapters.processes.child import Call, Output, run_child_here
from lamplighter.adapters.processes.program import script_path
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.model import City
from lamplighter.domain.city.providers import NoProgram, known_providers, program
from lamplighter.domain.city.run_plan import CannotRun, chosen_preset
from lamplighter.kit.errors import LampError
from lamplighter.services.doctor import Finding, Level

VERSION_WITHIN = timedelta(seconds=10)
FEW_FILES = 1024
LONGEST_VERSION = 60
_VERSION = re.compile(r"\d+\.\d+")
BUILT_AFTER = datetime(2026, 1, 1, tzinfo=UTC)
"""No city can be older than the program: a clock before this time is wrong."""


def programs(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001  one shape for all checks
    wanted = {"git": "topologies and worktrees", "tmux": "sessions a person can attach to"}
    path = city.settings.env.get("PATH")
    for name, purpose in wanted.items():
        found = shutil.which(name, path=path)
        if found is None:
            yield Finding("programs", Level.NOTE, f"{name} is not installed.", f"It serves {purpose}.")
        else:
            yield Finding("programs", Level.OK, f"{name} is {found}.")
    yield from _agent_programs(city)


def _agent_programs(city: OpenCity) -> Iterator[Finding]:
    """Each agent program that is installed, with its version, and the one that is taken where none is named."""
    config, env = city.in_force.config.city, city.settings.env
    there = {
        name: found
        for name, one in known_providers(config).items()
        if name != "shell" and (found := shutil.which(one.command, path=env.get("PATH"))) is not None
    }
    versions = _versions(city, set(there.values()))
    for name, found in there.items():
        shown = known_providers(config)[name].display_name or name
        yield Finding("programs", Level.OK, f"{shown} (`{name}`) is {found}: {versions[found]}.")
    yield from _taken(config, lambda command: shutil.which(command, path=env.get("PATH")) is not None)


def _versions(city: OpenCity, paths: set[str]) -> Mapping[str, str]:
    """What each program says of its version; asked side by side, because some take seconds to start."""
    if not paths:
        return {}
    with ThreadPoolExecutor(max_workers=4) as pool:
        return dict(zip(sorted(paths), pool.map(lambda one: _version(city, one), sorted(paths)), strict=True))


def _version(city: OpenCity, path: str) -> str:
    call = Call([path, "--version"], city.paths.root, city.settings.env, VERSION_WITHIN, output=Output.END)
    try:
        ended = run_child_here(call)
    except LampError as error:
        return f"its version is unknown, because it did not answer ({error.message.rstrip('.')})"
    lines = [line.strip() for line in ended.output.decode(errors="replace").splitlines() if line.strip()]
    if ended.exit_code or not lines:
        return f"its version is unknown, because `--version` ended with {ended.exit_code}"
    told = next((line for line in lines if _VERSION.search(line)), lines[0])  # some warn of other things before it
    return "".join(letter for letter in told if letter.isprintable())[:LONGEST_VERSION].rstrip(".")


def _taken(config: City, installed: Callable[[str], bool]) -> Iterator[Finding]:
    try:
        preset = chosen_preset(config, "", installed)
    except CannotRun as error:
        yield Finding("programs", Level.NOTE, f"Runs that name no preset cannot start: {error.message}", error.hint)
    else:
        yield Finding("programs", Level.OK, f"Runs that name no preset take `{preset.name}`.")
    for agent in config.agents:
        try:
            program(config, agent, installed)
        except NoProgram as error:
            if not agent.suspended:
                yield Finding("programs", Level.PROBLEM, error.message, error.hint)


def scripts(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    """Scripts that the configuration names as providers."""
    config = city.in_force.config.city
    named = {
        "[session] provider": config.session.provider,
        "[runs] provider": config.runs.provider,
        "[mail] provider": config.mail.provider,
    }
    for key, value in named.items():
        if not value.startswith("exec:"):
            continue
        script = script_path(value.removeprefix("exec:"), config.root, city.settings.env.get("PATH"))
        if shutil.which(script, path=city.settings.env.get("PATH")) is None:
            yield Finding("programs", Level.PROBLEM, f"{key} names {script}, which is not there or not executable.",
                          "Mend it in city.toml, or `chmod +x` the script.")  # fmt: skip
    if config.session.provider == "tmux" and shutil.which("tmux", path=city.settings.env.get("PATH")) is None:
        yield Finding("programs", Level.PROBLEM, "[session] provider is `tmux`, which is not installed.",
                      'Install tmux, or set provider = "subprocess".')  # fmt: skip


def machine(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    """The limit of open files that a daemon started from here would have, and a clock that cannot be right."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FEW_FILES:
        yield Finding("machine", Level.PROBLEM, f"A process here may open at most {hard} files.",
                      "Raise the limit: `ulimit -Hn`, or LimitNOFILE of the service.")  # fmt: skip
    now = city.clock.now()
    if now < BUILT_AFTER:
        yield Finding("machine", Level.PROBLEM, f"The clock says {now:%Y-%m-%d %H:%M} UTC, which is long past.",
                      "Set this machine's clock.")  # fmt: skip
