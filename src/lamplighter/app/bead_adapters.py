"""Opens the bead stores of a city: its own, the file it had before, and the programs that keep beads instead."""

from lamplighter.adapters.beads.bd import BdBackend
from lamplighter.adapters.beads.exec import ExecBackend
from lamplighter.adapters.beads.external import ExternalBeads
from lamplighter.adapters.beads.file import FILE as BEAD_FILE
from lamplighter.adapters.beads.file import put_aside, read_beads_file
from lamplighter.adapters.processes.program import Program, script_path
from lamplighter.app.wiring import OpenCity
from lamplighter.ports.beads import BeadStore
from lamplighter.services.import_beads import Imported, import_beads

FILE, SCRIPT = "file", "exec:"


def outside(city: OpenCity, provider: str) -> BeadStore | None:
    """None for the file, which is imported first: its beads live in the city's own store from then on."""
    if provider == FILE:
        import_bead_file(city)
        return None
    return ExternalBeads(BdBackend(_program(city, "bd")) if provider == "bd" else script_of(city, provider))


def script_of(city: OpenCity, provider: str) -> ExecBackend:
    script = script_path(provider.removeprefix(SCRIPT), city.paths.root, city.settings.env.get("PATH"))
    return ExecBackend(_program(city, script))


def import_bead_file(city: OpenCity) -> Imported | None:
    """Import `.gc/beads.json` once and rename it; None if there is none. May be repeated after an interruption."""
    path = city.paths.runtime / BEAD_FILE
    beads = read_beads_file(path)
    if beads is None:
        return None
    done = city.store.transact(import_beads, beads, source=str(path), ctx=city.context())
    put_aside(path)
    return done


def _program(city: OpenCity, path: str) -> Program:
    return Program(path, city.paths.root, city.settings.env)
