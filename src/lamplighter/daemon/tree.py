"""The controller: the phases of its tick, built from the city's configuration."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from lamplighter.daemon.exporter import Exporter
from lamplighter.daemon.ticks import Phase, Ticks
from lamplighter.daemon.upkeep import Upkeep
from lamplighter.domain.city.model import City
from lamplighter.domain.events import TOPIC as EVENTS
from lamplighter.kit.clock import Clock
from lamplighter.store.proof import Proofs
from lamplighter.store.tx import Store

HOURLY = timedelta(hours=1)
ALWAYS = 2**62


@dataclass(frozen=True)
class Controller:
    city: City
    store: Store
    ticks: Ticks
    proofs: Proofs
    owner: str
    export: Path

    @staticmethod
    def build(city: City, *, store: Store, proofs: Proofs, clock: Clock, owner: str, export: Path) -> "Controller":
        controller = Controller(city, store, Ticks([], clock, city.daemon.patrol_interval), proofs, owner, export)
        controller.ticks.phases = controller.phases(city)
        return controller

    def phases(self, city: City) -> list[Phase]:
        """What this controller looks after when `city` is its configuration, in the order of a tick."""
        upkeep = Upkeep(self.store, self.proofs, self.ticks.clock, self.owner)
        return [
            Phase("clock", upkeep.check_clock),
            Phase("owners", upkeep.bury_dead),
            *_wisps(city, upkeep),
            *_events(city, upkeep, Exporter(self.store, self.export)),
        ]


def _wisps(city: City, upkeep: Upkeep) -> list[Phase]:
    interval, ttl = city.daemon.wisp_gc_interval, city.daemon.wisp_ttl
    if not interval or not ttl:
        return []

    async def collect() -> int:
        return await upkeep.collect_wisps(ttl)

    return [Phase("wisps", collect, at_most_every=interval)]


def _events(city: City, upkeep: Upkeep, exporter: Exporter) -> list[Phase]:
    phases = []
    if city.events.export:
        phases.append(Phase("export", exporter.tick, topics=(EVENTS,)))
    if city.retention.events:

        async def prune() -> int:
            spared = exporter.cursor if city.events.export else ALWAYS
            return await upkeep.prune_events(city.retention.events, spared_after=spared or 0)

        phases.append(Phase("retention", prune, at_most_every=HOURLY))
    return phases
