"""Which bead store a city uses, by `[beads] provider`. It imports little, because many short commands ask."""

from lamplighter.app.config_peek import text_setting
from lamplighter.app.wiring import OpenCity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.ports.beads import BeadStore

STORE, FILE = "store", "file"


def outside_beads(city: OpenCity) -> "BeadStore | None":
    """The store of another program in which the city's beads live; None if they live in the city's own store."""
    provider = bead_provider(city)
    if provider == STORE:
        return None
    from lamplighter.app import bead_adapters

    return bead_adapters.outside(city, provider)


def bead_provider(city: OpenCity) -> str:
    named = text_setting(city, "beads", "provider", default="store", names=("LAMP_BEADS_PROVIDER", "GC_BEADS"))
    return named if named in (STORE, FILE) else city.config.city.beads.provider
