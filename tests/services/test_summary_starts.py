"""What a city that is stopped still tells of its agents' starts."""

from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from automation_city import City

from lamplighter.domain.city.model import City as Declared
from lamplighter.domain.city.sections import Beads, Workspace
from lamplighter.domain.sessions.model import SessionName
from lamplighter.services.rules import Rules
from lamplighter.store.agents import AgentStart


def test_only_starts_that_count_are_counted(city: City) -> None:
    now = city.clock.now()

    def start(number: int, name: str, *, counted: bool, ago: float) -> AgentStart:
        at = now - timedelta(seconds=ago)
        return AgentStart(f"ast_{number}", SessionName(name), name, f"ses_{number}", at, "start", counted=counted)

    starts = [
        start(1, "alpha", counted=True, ago=1),
        start(2, "alpha", counted=False, ago=2),
        start(3, "alpha", counted=True, ago=3),
        start(4, "beta", counted=False, ago=1),
        start(5, "alpha", counted=True, ago=60),
    ]
    city.run(lambda tx: [tx.agents.add(one) for one in starts])
    found = city.read(lambda tx: tx.summary.counted_starts(since=now - timedelta(seconds=60)))
    assert {name: count for name, (count, _) in found.items()} == {"alpha": 2}


def test_beads_are_the_city_s_own_unless_another_store_has_them() -> None:
    own = {
        provider: Rules.of(
            Declared(workspace=Workspace(name="a"), root=Path("/srv/a"), prefix="a", beads=Beads(provider=provider)),
            ZoneInfo("UTC"),
        ).own_beads
        for provider in ("store", "file", "bd", "exec:./beads")
    }
    assert own == {"store": True, "file": True, "bd": False, "exec:./beads": False}
