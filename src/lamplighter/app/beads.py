"""Which bead store a city uses, by `[beads] provider`."""

from collections.abc import Callable

from lamplighter.app.config_peek import text_setting
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.acts import Act
from lamplighter.ports.beads import BeadStore
from lamplighter.services.own_beads import OwnBeads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.adapters.beads.exec import ExecBackend
    from lamplighter.adapters.processes.program import Program
    from lamplighter.services.import_beads import Imported

_OURS = ("store", "file")
_SCRIPT = "exec:"


def bead_store(city: OpenCity, act: Callable[[], Act] | None = None) -> BeadStore:
    """`act` names the actor of changes; the default is the actor that opened the city.

    Adapters of outside stores are imported only if the city uses one.
    """
    provider = bead_provider(city)
    if provider in _OURS:
        if provider == "file":
            import_bead_file(city)
        return OwnBeads(city.store, ids=city.ids, prefix=city.prefix, act=act or city.act)
    from lamplighter.adapters.beads.external import ExternalBeads

    if provider == "bd":
        from lamplighter.adapters.beads.bd import BdBackend

        return ExternalBeads(BdBackend(_program(city, "bd")))
    return ExternalBeads(_script(city, provider))


def open_beads(city: OpenCity) -> None:
    """Prepare the bead store before the city runs: import the file, or call a script's `ensure-ready` and `init`."""
    provider = bead_provider(city)
    if provider == "file":
        import_bead_file(city)
    elif provider.startswith(_SCRIPT):
        script = _script(city, provider)
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
    if provider.startswith(_SCRIPT):
        _script(city, provider).lifecycle("shutdown")


def _script(city: OpenCity, provider: str) -> "ExecBackend":
    from lamplighter.adapters.beads.exec import ExecBackend
    from lamplighter.adapters.processes.program import script_path

    script = script_path(provider.removeprefix(_SCRIPT), city.paths.root, city.settings.env.get("PATH"))
    return ExecBackend(_program(city, script))


def import_bead_file(city: OpenCity) -> "Imported | None":
    """Import `.gc/beads.json` once and rename it; None if there is none. May be repeated after an interruption."""
    from lamplighter.adapters.beads.file import FILE, put_aside, read_beads_file
    from lamplighter.services.import_beads import import_beads

    path = city.paths.runtime / FILE
    beads = read_beads_file(path)
    if beads is None:
        return None
    done = city.store.transact(import_beads, beads, source=str(path), act=city.act())
    put_aside(path)
    return done


def bead_provider(city: OpenCity) -> str:
    named = text_setting(city, "beads", "provider", default="store", names=("LAMP_BEADS_PROVIDER", "GC_BEADS"))
    return named if named in _OURS else city.config.city.beads.provider


def _program(city: OpenCity, path: str) -> "Program":
    from lamplighter.adapters.processes.program import Program

    return Program(path, city.paths.root, city.settings.env)
