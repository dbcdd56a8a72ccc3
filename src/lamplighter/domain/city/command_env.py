"""The environment of an automation's command: the daemon's, without identity variables, plus city and rig."""

from collections.abc import Mapping

from lamplighter.domain.city.model import City
from lamplighter.kit.kept_back import CONNECTION, IDENTITY, KEPT_BACK


def command_environment(city: City, rig: str | None, *, parent: Mapping[str, str]) -> dict[str, str]:
    """Commands are the owner's scripts, so unlike agents they get all other variables of the daemon's environment."""
    kept_back = KEPT_BACK | IDENTITY
    passed = {
        name: value for name, value in parent.items() if name not in kept_back and not name.startswith(CONNECTION)
    }
    own = {"CITY": str(city.root)}
    found = city.rig(rig) if rig else None
    if found is not None:
        own |= {"RIG": found.name, "DIR": str(city.rig_path(found))}
    return passed | {f"{family}_{name}": value for family in ("GC", "LAMP") for name, value in own.items()}
