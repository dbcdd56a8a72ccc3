"""The checks of `lamp doctor`: each says what it found, and what to do or what it repaired."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lamplighter.adapters.beads.health import trouble
from lamplighter.adapters.control import ask
from lamplighter.adapters.files.city_id import CopiedCity
from lamplighter.adapters.files.formulas import formula_files, read_formula_file
from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.adapters.files.topologies import altered
from lamplighter.app import store_record
from lamplighter.app.beads import bead_provider
from lamplighter.app.controller_view import died_at
from lamplighter.app.doctor_automations import CHECK, MOST_TOLD, automations
from lamplighter.app.doctor_programs import machine, programs, scripts
from lamplighter.app.doctor_secrets import secrets
from lamplighter.app.doctor_slack import slack
from lamplighter.app.doctor_traces import CHECK as TRACES
from lamplighter.app.doctor_traces import traces
from lamplighter.app.live_owners import nodes_of
from lamplighter.app.membership import place_of
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.active_config import MOST_SKEW
from lamplighter.domain.cluster.places import where
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.counting import counted
from lamplighter.kit.errors import LampError
from lamplighter.services import clock_back
from lamplighter.services.configurations import taken
from lamplighter.services.doctor import Finding, Level
from lamplighter.store.errors import ClockSkewed, StoreOld
from lamplighter.store.url import migrate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.status_views import NodeView

LOW_DISK = 200 << 20
LOW_INODES = 1000
WRITTEN = ("commands", "sessions", "sessions-tmux", "runs", "agents", "artifacts", "worktrees")
"""Directories below `.gc` that are created when first needed."""


def examine(city: OpenCity, *, fix: bool) -> list[Finding]:
    """Run every check; one that fails becomes a finding and the next one runs. Raises NotFound if there is no city."""
    if not city.paths.runtime.is_dir():
        city.paths.city_id()
    checks: list[Callable[[OpenCity, bool], Iterator[Finding]]] = [
        _structure, _config, _store, secrets, _clock, _controller, _nodes, _outbox, slack, _formulas, automations,
        _rigs, _beads, scripts, programs, machine, traces, _disk,
    ]  # fmt: skip
    found: list[Finding] = []
    for check in checks:
        try:
            found += check(city, fix)
        except LampError as error:
            found += _failed(check.__name__.strip("_"), error)
        except OSError as error:
            found.append(_unreadable(check.__name__.strip("_"), error))
    return _once(found)


def _unreadable(check: str, error: OSError) -> Finding:
    """What the system refused; the rest of that check is not made."""
    what = error.filename or "something"
    told = f"{what} cannot be looked at: {error.strerror or error}; this check was not made."
    if isinstance(error, PermissionError):
        return Finding(check, Level.PROBLEM, told, "Run `lamp doctor` as the user the city belongs to.")
    return Finding(check, Level.PROBLEM, told, "Mend its owner, mode or disk.")


def _failed(check: str, error: LampError) -> list[Finding]:
    """One finding per line of the error: a broken configuration may have many problems."""
    first, *others = error.message.splitlines()
    return [Finding(check, Level.PROBLEM, first, error.hint), *(Finding(check, Level.PROBLEM, one) for one in others)]


def _once(found: list[Finding]) -> list[Finding]:
    """Drop problems that an earlier check has reported already."""
    told: set[str] = set()
    kept = []
    for finding in found:
        if finding.level is not Level.PROBLEM or finding.detail not in told:
            kept.append(finding)
            told.add(finding.detail)
    return kept


def _structure(city: OpenCity, fix: bool) -> Iterator[Finding]:  # noqa: FBT001  one shape for all checks
    city.paths.city_id()
    if city.original is not None:
        copied = CopiedCity(city.paths.root, city.original)
        yield Finding("structure", Level.PROBLEM, copied.message, copied.hint)
    runtime = city.paths.runtime
    mode = stat.S_IMODE(runtime.stat().st_mode)
    if mode & 0o077 == 0:
        yield Finding("structure", Level.OK, f"{runtime} is private.")
    elif fix:
        runtime.chmod(0o700)
        yield Finding("structure", Level.MENDED, f"{runtime} had mode {mode:o}; it is 700 now.")
    else:
        yield Finding("structure", Level.PROBLEM, f"{runtime} has mode {mode:o}: others can read it.", "Use --fix.")
    yield from _unwritable(runtime)


def _unwritable(runtime: Path) -> Iterator[Finding]:
    """Try to create a temporary file in `.gc` and in each existing directory that a start writes to."""
    for place in (runtime, *(runtime / name for name in WRITTEN)):
        if not os.path.lexists(place):
            continue
        try:
            with tempfile.TemporaryFile(dir=place):
                pass
        except OSError as error:
            advice = "Mend its owner and mode, or its disk; what is no directory must be moved away."
            yield Finding("structure", Level.PROBLEM, f"{place} cannot be written: {error.strerror}.", advice)


def _config(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    try:
        loaded = load_city(city.paths.root, env=city.settings.env)
    except LampError as error:
        yield from _failed("config", error)
        city.in_force  # noqa: B018  raises if there is no last good configuration
        yield Finding("config", Level.NOTE, "The last good configuration stays in force.")
        return
    for name in altered(loaded.city.root):
        advice = "Undo the change in .gc/topologies, or remove that directory: it is fetched again."
        yield Finding("config", Level.PROBLEM, f"Topology {name} is no longer what topology.lock recorded.", advice)
    yield Finding(
        "config", Level.OK, f"{counted(len(loaded.city.agents), 'agent')}, {counted(len(loaded.city.rigs), 'rig')}."
    )
    for note in loaded.warnings:
        yield Finding("config", Level.NOTE, str(note))


def _store(city: OpenCity, fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    try:
        city.store.read(lambda tx: tx.cities.find())
    except StoreOld as error:
        if not fix:
            raise
        applied = migrate(city.place, make=False)
        yield Finding("store", Level.MENDED, f"{error.message} Applied {counted(len(applied), 'migration')}.")
    else:
        yield Finding("store", Level.OK, f"{city.place} answers.")
        yield from _names_taken(city)
        if not city.is_kept and (told := store_record.warning(city.paths)) is not None:  # else the daemon tells it
            yield Finding("store", Level.PROBLEM, told)


def _names_taken(city: OpenCity) -> Iterator[Finding]:
    for name in city.store.read(taken, city.config.city.configurations):
        told = f"Configuration `{name}` of city.toml is not in force: a stored one has that name."
        yield Finding("store", Level.PROBLEM, told, "Rename it, or `lamp configuration delete` the stored one.")


def _clock(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    theirs = city.store.read(lambda tx: tx.clock_moves.database_time())
    if theirs is not None and abs(city.clock.now() - theirs) > MOST_SKEW:
        skewed = ClockSkewed((city.clock.now() - theirs).total_seconds())
        yield Finding("clock", Level.PROBLEM, skewed.message, skewed.hint)
    back = city.store.read(clock_back.told, city.clock.now())
    if back is None:
        return
    told = f"The clock was set back by {clock_back.spoken(back.by)}"
    if back.at is None:
        advice = "Check this machine's clock; the running city takes up its waits from now on."
        yield Finding("clock", Level.PROBLEM, f"{told}: times on record lie ahead of it.", advice)
    else:
        yield Finding("clock", Level.NOTE, f"{told} at {rfc3339(back.at)}; waits went on where they were.")


def _controller(city: OpenCity, fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    pid = controller_pid(city.paths.lock)
    if pid is not None:
        state = ask(city.paths.socket, "status", within=2.0)
        yield Finding("controller", Level.OK, f"Process {pid} runs the city and answers.")
        yield from _descriptors(state)
        yield from _moved_api(city, state)
        if state["config_error"] and not city.in_force.problem:
            yield Finding("controller", Level.PROBLEM, f"config: {state['config_error']}", "See its log.")
        for name, problem in state["problems"].items():
            if name == CHECK and "automation.toml" in problem:
                continue  # the check of automations tells it
            if name == TRACES:
                continue  # its own check tells it
            advice = "Set another `[api] port`, or 0 for any." if name == "api" else "See its log."
            yield Finding("controller", Level.PROBLEM, f"{name}: {problem}", advice)
        return
    advice = "`lamp up` runs it." if city.original is None else ""  # a copy refuses to run; _structure says what to do
    died = died_at(city.paths)
    told = (
        "The city is not running."
        if died is None
        else f"Its daemon died after its last sign of life, at {rfc3339(died)}."
    )
    yield Finding("controller", Level.NOTE, told, advice)
    for left in (city.paths.socket, city.paths.pid_file):
        if not left.exists():
            continue
        if fix:
            left.unlink()
            yield Finding("controller", Level.MENDED, f"Removed {left.name}, left by a controller that is gone.")
        else:
            yield Finding("controller", Level.PROBLEM, f"{left.name} was left by a dead controller.", "Use --fix.")


def _descriptors(state: dict[str, Any]) -> Iterator[Finding]:
    """Report the number only: a shortage is among the controller's own problems."""
    used = state.get("descriptors")
    if used is not None:
        yield Finding("controller", Level.OK, f"{used['open']} of {used['limit']} file descriptors are open.")


def _moved_api(city: OpenCity, state: dict[str, Any]) -> Iterator[Finding]:
    """Where the API is, if not at its default port; that a chosen port was taken is among the controller's problems."""
    port = city.config.city.api.port
    if state["api"] and port and not state["api"].endswith(f":{port}") and "api" not in state["problems"]:
        yield Finding("controller", Level.NOTE, f"Another program had port {port}; the API is at {state['api']}.")


def _nodes(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    found = nodes_of(city)
    for node in found:
        holds = f"rig{'' if len(node.rigs) == 1 else 's'} {', '.join(node.rigs)}" if node.rigs else "no rigs"
        told = f"Node {node.name} ({holds}) is {node.state}"
        if node.state == "lost":
            advice = f"Start it again at {node.place}; else its runs end as node_lost after [workers] lost_after."
            here = node.place == where(place_of(city))  # _controller reports that this city is down
            yield Finding("nodes", Level.NOTE if here else Level.PROBLEM, f"{told}.", advice)
        elif node.state == "stopped":
            yield Finding("nodes", Level.NOTE, f"{told} since {node.since:%Y-%m-%d %H:%M:%S} UTC.")
        else:
            count = len(node.processes)
            yield Finding("nodes", Level.OK, f"{told}: {count} process{'' if count == 1 else 'es'}.")
    yield from _waiting(city, found)


def _waiting(city: OpenCity, found: "list[NodeView]") -> Iterator[Finding]:
    """Outbox items that need a node or rig which no living process has."""
    alive = [node for node in found if node.state == "alive"]
    reach = {f"node:{node.name}" for node in alive}
    reach |= {f"rig:{rig}" for node in alive for process in node.processes for rig in process.rigs}
    for need, count in city.store.read(lambda tx: tx.outbox.needed()).items():
        if alive and need not in reach:
            kind, _, name = need.partition(":")
            advice = f"Start a worker that holds it: `lamp worker --rig {name}=PATH`." if kind == "rig" else ""
            yield Finding(
                "nodes",
                Level.NOTE,
                f"{counted(count, 'item waits', 'items wait')} for {kind} {name}, which nobody has now.",
                advice,
            )


def _outbox(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    """Work that was given up; a run that failed with it is told of by the inbox."""
    found = [one.item for one in city.store.read(lambda tx: tx.outbox.given_up()) if not one.item.gives_up_run]
    for item in found[:MOST_TOLD]:
        told = f"{item.kind.replace('_', ' ')} {item.id} was given up: {item.last_error or 'no reason is on record'}"
        yield Finding("outbox", Level.PROBLEM, told, f"`lamp outbox retry {item.id}` tries it again.")
    if len(found) > MOST_TOLD:
        more = f"{len(found) - MOST_TOLD} more items were given up."
        yield Finding("outbox", Level.PROBLEM, more, "`lamp outbox list` shows all of them.")


def _formulas(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    files = formula_files(city.formula_layers())
    wrong = 0
    for path in files.values():
        try:
            read_formula_file(path)
        except LampError as error:
            wrong += 1
            yield Finding("formulas", Level.PROBLEM, error.message, error.hint)
    if not wrong:
        yield Finding("formulas", Level.OK, f"{len(files)} formula{' is' if len(files) == 1 else 's are'} right.")


def _rigs(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    loaded = city.config.city
    for rig in loaded.rigs:
        path = loaded.rig_path(rig)
        if not path.is_dir():
            yield Finding("rigs", Level.PROBLEM, f"Rig {rig.name}: {path} is not there.", "Mend its path in city.toml.")
        elif not (path / ".git").exists():
            yield Finding("rigs", Level.NOTE, f"Rig {rig.name}: {path} is not a git repository.")
        else:
            yield Finding("rigs", Level.OK, f"Rig {rig.name} is at {path}.")


def _beads(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    for one in trouble(city.in_force.config.city, bead_provider(city), city.settings.env.get("PATH")):
        yield Finding("beads", Level.PROBLEM, one.detail, one.advice)


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count >> 20} MiB"


def _disk(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001
    free = shutil.disk_usage(city.paths.runtime).free
    level = Level.PROBLEM if free < LOW_DISK else Level.OK
    yield Finding("disk", level, f"{_size(free)} are free.", "Free some space." if level is Level.PROBLEM else "")
    found = os.statvfs(city.paths.runtime)
    if found.f_files and found.f_favail < LOW_INODES:  # file systems without inodes report 0 for both
        yield Finding("disk", Level.PROBLEM, f"{found.f_favail} inodes are free.", "Remove files that nobody needs.")
