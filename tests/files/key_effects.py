"""What follows from a configuration, taken from those that act by it: sessions, plans, rules, phases, places.

Nothing here repeats a decoded value: a key that only the decoder reads makes no difference.
"""

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from city_files import ENV

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.processes.pool_check import CheckFailed, ShellPoolCheck
from lamplighter.app.agent_runs import artifact_store
from lamplighter.app.automations import definitions_of
from lamplighter.app.beads import bead_provider
from lamplighter.app.config_in_force import InForce
from lamplighter.app.mail import outside_mail
from lamplighter.app.sessions import open_named, open_provider
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.controller import Controller
from lamplighter.daemon.pipeline.exec_job import grace
from lamplighter.daemon.pipeline.limits import ItemGroup, limit_of
from lamplighter.domain.automations.decode import Origin, decode_json
from lamplighter.domain.automations.model import Automation
from lamplighter.domain.automations.shape import to_shape
from lamplighter.domain.city.build import Surroundings, built
from lamplighter.domain.city.hooks import hook_files, hooks_of
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import City
from lamplighter.domain.city.names import instance_names
from lamplighter.domain.city.run_plan import CannotRun, run_environment, run_plan
from lamplighter.domain.city.wanted import roster, wanted
from lamplighter.domain.sessions.presets.model import Mode, Request
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.services.inbox.telling import Telling
from lamplighter.services.retention import RETENTION, ByAge, pause
from lamplighter.services.rules import Rules
from lamplighter.services.runs.finalizing import policy_of
from lamplighter.testing.clock import FakeClock

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
JOB: dict[str, Any] = {"name": "job", "gate": "manual", "agent": {"prompt": "Light the lamps."}}


def effects(loaded: LoadedCity) -> dict[str, Any]:
    """Every part by its name, as text that can be compared."""
    city = loaded.city
    parts = {
        "sessions": list(_sessions(loaded)),
        "patrol": _patrol(loaded),
        "pools": asyncio.run(_pools(loaded)),
        "runs": list(_runs(city)),
        "rules": Rules.of(city, ZoneInfo("UTC")),
        "definitions": [(to_shape(one.automation), one.standing) for one in definitions_of(city).defined],
        "layers": city.layers,
        "retention": [(table, rule.keep(city.retention)) for table, rule in RETENTION.items() if _by_age(rule)],
        "pruning": pause(city.retention),
        "daemon": list(_daemon(city)),
        "places": _places(loaded),
        "notices": Telling.of(city, ZoneInfo("UTC")),
    }
    return {name: repr(part) for name, part in parts.items()}


def _by_age(rule: object) -> bool:
    return isinstance(rule, ByAge)


def _sessions(loaded: LoadedCity) -> Iterator[Any]:
    around = Surroundings(ENV, lambda _: True, "/files", NOW)
    for agent in loaded.city.agents:
        for instance in instance_names(agent):
            made = built(loaded, agent, instance, around)
            hooks = hook_files(hooks_of(loaded.city, agent, made.provider), loaded.city.root, Path(made.spec.work_dir))
            yield made, hooks


def _patrol(loaded: LoadedCity) -> Any:
    known = roster(loaded)
    demand = dict.fromkeys((pool.qualified_name for pool in known.pools), 1)
    return wanted(known, demand, {}, frozenset())


async def _pools(loaded: LoadedCity) -> list[Any]:
    found = []
    for agent in loaded.city.agents:
        if agent.pool is not None and agent.pool.check:
            try:
                found.append(await ShellPoolCheck(ENV)(loaded, agent))
            except CheckFailed as error:
                found.append(error.message)
    return found


def _runs(city: City) -> Iterator[Any]:
    for named in (None, *city.configurations):
        decoded = decode_json(JOB, Origin())
        assert isinstance(decoded, Automation), decoded
        yield named and (named.name, named.description), policy_of(decoded, city.runs), _plan(city, decoded, named)


def _plan(city: City, automation: Automation, named: Any) -> Any:
    try:
        plan = run_plan(city, automation, named, lambda command: command != "claude")
    except CannotRun as error:
        return error.reason, error.message
    assert plan.preset.headless is not None
    request = Request(work_dir=str(plan.directory), files_dir="/files", prompt="p", session="s", mode=Mode(plan.mode),
                      model=plan.model)  # fmt: skip
    called = plan.preset.headless(request)
    env = run_environment(city, plan, parent=ENV, own={})
    return plan.directory, plan.rig, plan.isolation, plan.mode, called.argv, called.env, env


def _daemon(city: City) -> Iterator[Any]:
    nothing = cast("Any", None)
    controller = Controller.build(city, store=nothing, proofs=nothing, clock=FakeClock(), owner="o", export=Path("x"))
    yield controller.ticks.patrol_interval
    for phase in controller.phases(city):
        cells = getattr(phase.tick, "__closure__", None) or ()
        spans = [cell.cell_contents for cell in cells if isinstance(cell.cell_contents, timedelta)]
        yield phase.name, phase.at_most_every, spans
    yield grace(ActiveConfig(city, Rules.of(city, ZoneInfo("UTC"))))
    yield [limit_of(group, city.workers) for group in ItemGroup]


def _places(loaded: LoadedCity) -> list[Any]:
    """Which adapters a process of the city opens, and where."""
    opened = OpenCity(_settings(loaded.city.root), CityPaths(loaded.city.root), SystemClock(), IdSource(SystemClock()))
    opened.use(InForce(loaded))
    paths, city, clock, ids = opened.paths, loaded.city, opened.clock, opened.ids
    sessions = open_provider(paths, city, ENV, clock=clock, ids=ids)
    runs = open_named(city.runs.provider, paths, ENV, clock=clock, ids=ids)
    kept = artifact_store(opened, city)
    return [
        str(opened.place), type(sessions), getattr(sessions, "script", None), type(runs), type(kept), vars(kept),
        bead_provider(opened), type(outside_mail(opened)),
    ]  # fmt: skip


def _settings(root: Path) -> Settings:
    return Settings(root, root, "me", None, {**ENV, "PATH": os.environ["PATH"]})
