"""The environment of an automation's command: the daemon's, without identity variables, plus city and rig."""

from collections.abc import Mapping

from lamplighter.domain.city.model import City
from lamplighter.kit.kept_back import KEPT_BACK

# These identify the agent, session or run that the daemon itself was started in, or a city elsewhere with a token for
# it, or the trace of whoever started it; the command must not inherit them.
_DROPPED = KEPT_BACK | frozenset(
    {"GC_AGENT", "GC_DIR", "GC_RIG", "GC_DRAIN", "GC_DRAIN_ACK", "GC_RESTART_REQUESTED", "LAMP_AGENT", "LAMP_DIR",
     "LAMP_RIG", "LAMP_RUN_ID", "LAMP_ACTOR", "LAMP_SESSION", "LAMP_SESSION_ID", "LAMP_CITY_ID", "LAMP_CHILD_ID",
     "LAMP_CRASH_AT", "LAMP_TRIGGER_FILE", "LAMP_RUN_TOKEN_FILE", "LAMP_API_URL", "AUTOMATION_DIR",
     "LAMP_URL", "LAMP_CONTEXT", "TRACEPARENT", "TRACESTATE"}
)  # fmt: skip


def command_environment(city: City, rig: str | None, *, parent: Mapping[str, str]) -> dict[str, str]:
    """Commands are the owner's scripts, so unlike agents they get all other variables of the daemon's environment."""
    passed = {name: value for name, value in parent.items() if name not in _DROPPED}
    own = {"CITY": str(city.root)}
    found = city.rig(rig) if rig else None
    if found is not None:
        own |= {"RIG": found.name, "DIR": str(city.rig_path(found))}
    return passed | {f"{family}_{name}": value for family in ("GC", "LAMP") for name, value in own.items()}
