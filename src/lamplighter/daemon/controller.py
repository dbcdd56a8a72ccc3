"""The controller: the phases of its tick, built from the city's configuration."""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from lamplighter.daemon.automation_loops import AutomationLoops
from lamplighter.daemon.exporter import Exporter
from lamplighter.daemon.housekeeping import Housekeeping, check_descriptors
from lamplighter.daemon.ticks import Phase, Ticks
from lamplighter.domain.city.model import City
from lamplighter.domain.events import TOPIC as EVENTS
from lamplighter.kit.clock import Clock
from lamplighter.services import retention
from lamplighter.store.engine import Proofs
from lamplighter.store.tx import Store

ALWAYS = 2**62
ROLL_UP_EVERY = timedelta(seconds=30)


@dataclass(frozen=True)
class Controller:
    city: City
    store: Store
    ticks: Ticks
    proofs: Proofs
    owner: str
    export: Path
    automations: AutomationLoops | None = None

    @staticmethod
    def build(  # noqa: PLR0913  one keyword each for what a controller is made of
        city: City,
        *,
        store: Store,
        proofs: Proofs,
        clock: Clock,
        owner: str,
        export: Path,
        automations: AutomationLoops | None = None,
    ) -> "Controller":
        ticks = Ticks([], clock, city.daemon.patrol_interval)
        controller = Controller(city, store, ticks, proofs, owner, export, automations)
        controller.ticks.phases = controller.phases(city)
        return controller

    def phases(self, city: City) -> list[Phase]:
        """What this controller looks after when `city` is its configuration, in the order of a tick."""
        upkeep = Housekeeping(self.store, self.proofs, self.ticks.clock, self.owner)
        return [
            Phase("clock", upkeep.check_clock),
            Phase("descriptors", check_descriptors),
            Phase("owners", upkeep.expire_dead),
            *_wisps(city, upkeep),
            Phase("rollups", upkeep.roll_up, at_most_every=ROLL_UP_EVERY),
            *(self.automations.phases(city) if self.automations is not None else ()),
            *_events(city, upkeep, Exporter(self.store, self.export), self.automations),
            *_records(city, upkeep),
        ]


def _wisps(city: City, upkeep: Housekeeping) -> list[Phase]:
    interval, ttl = city.daemon.wisp_gc_interval, city.daemon.wisp_ttl
    if not interval or not ttl:
        return []

    async def collect() -> int:
        return await upkeep.collect_wisps(ttl)

    return [Phase("wisps", collect, at_most_every=interval)]


def _events(city: City, upkeep: Housekeeping, exporter: Exporter, automations: AutomationLoops | None) -> list[Phase]:
    phases = []
    if city.events.export:
        phases.append(Phase("export", exporter.tick, topics=(EVENTS,)))
    if city.retention.events:

        async def prune() -> int:
            spared = (exporter.cursor or 0) if city.events.export else ALWAYS
            if automations is not None:
                spared = min(spared, await automations.scheduler.spared())
            return await upkeep.prune_events(city.retention.events, spared_after=spared)

        phases.append(Phase("retention", prune, at_most_every=retention.pause(city.retention)))
    return phases


def _records(city: City, upkeep: Housekeeping) -> list[Phase]:
    """Records that need only the database to be pruned; a trigger event is kept while its run has not ended."""
    kept = city.retention
    return [
        Phase(f"retention_{table}", partial(upkeep.prune, table, keep, rule.prune), at_most_every=retention.pause(kept))
        for table, rule in retention.RETENTION.items()
        if isinstance(rule, retention.ByAge) and rule.prune is not None and (keep := rule.keep(kept))
    ]
