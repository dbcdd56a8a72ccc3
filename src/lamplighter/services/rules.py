"""The settings of the city that firing and running need, as one value passed to transactions."""

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from zoneinfo import ZoneInfo

from lamplighter.domain.automations.decisions import Switches
from lamplighter.domain.automations.model import DEADLINE, Automation
from lamplighter.domain.automations.state import Timing
from lamplighter.domain.city.model import City
from lamplighter.domain.runs.budget import Limits
from lamplighter.kit.records import record
from lamplighter.kit.schedule import zone_named
from lamplighter.store.automations import AutomationRow

_OWN_BEADS = frozenset({"store", "file"})


@record
class Rules:
    """`zone` is the city's, else the host's; `prefixes` maps rigs to bead id prefixes; `cap` bounds all time limits."""

    zone: ZoneInfo
    suspended: bool = False
    suspended_rigs: frozenset[str] = frozenset()
    deadline: timedelta = DEADLINE
    cap: timedelta | None = None
    prefix: str = "gc"
    prefixes: Mapping[str, str] = field(default_factory=dict)
    own_beads: bool = True
    budget: Limits = field(default_factory=Limits)
    """What all agent runs of a day may use together."""

    @staticmethod
    def of(city: City, host_zone: ZoneInfo) -> "Rules":
        return Rules(
            zone=zone_named(city.workspace.timezone) if city.workspace.timezone else host_zone,
            suspended=city.workspace.suspended,
            suspended_rigs=frozenset(rig.name for rig in city.rigs if rig.suspended),
            deadline=city.runs.deadline,
            cap=city.automations.max_timeout,
            prefix=city.prefix,
            prefixes={rig.name: rig.prefix for rig in city.rigs},
            own_beads=city.beads.provider in _OWN_BEADS,
            budget=Limits(city.budget.day_cost, city.budget.day_tokens, city.budget.day_time),
        )

    def zone_of(self, automation: Automation) -> ZoneInfo:
        return ZoneInfo(automation.timezone) if automation.timezone else self.zone

    def timing(self, automation: Automation, trigger: str) -> Timing:
        key = f"{automation.scoped_name}/{trigger}"
        return Timing(self.zone_of(automation), automation.policies.jitter, key)

    def prefix_of(self, rig: str | None) -> str:
        return self.prefixes.get(rig, self.prefix) if rig else self.prefix

    def switches(self, row: AutomationRow) -> Switches:
        return Switches(
            enabled=row.enabled,
            left_out=row.left_out,
            paused=row.paused,
            city_suspended=self.suspended,
            rig_suspended=row.rig in self.suspended_rigs,
            suspended=row.suspended,
        )
