"""The bead store of a running city: opened, prepared before the city runs, and shut down after it."""

from lamplighter.app.bead_adapters import FILE, SCRIPT, import_bead_file, script_of
from lamplighter.app.beads import bead_provider, outside_beads
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.names import bead_prefix
from lamplighter.ports.beads import BeadStore
from lamplighter.services.own_beads import OwnBeads


def bead_store(city: OpenCity) -> BeadStore:
    """The store in which the city's beads live."""

    def prefix(rig: str | None = None) -> str:
        """That of the rig, of the rig in which this process works, or the city's own."""
        return bead_prefix(city.config.city, rig or city.settings.rig)

    outside = outside_beads(city)
    return OwnBeads(city.store, prefix=prefix, context=city.context) if outside is None else outside


def open_beads(city: OpenCity) -> None:
    """Prepare the bead store before the city runs: import the file, or call a script's `ensure-ready` and `init`."""
    provider = bead_provider(city)
    if provider == FILE:
        import_bead_file(city)
    elif provider.startswith(SCRIPT):
        script = script_of(city, provider)
        script.lifecycle("ensure-ready")
        known = city.config.city
        for directory, prefix in [
            (known.root, known.prefix),
            *((known.rig_path(rig), rig.prefix) for rig in known.rigs),
        ]:
            script.lifecycle("init", str(directory), prefix)


def close_beads(city: OpenCity) -> None:
    """Call a script's `shutdown`; must come after everything that uses beads has stopped."""
    provider = bead_provider(city)
    if provider.startswith(SCRIPT):
        script_of(city, provider).lifecycle("shutdown")
