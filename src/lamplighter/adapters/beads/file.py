"""Reads `.gc/beads.json` of Gas City's file store (`{seq, beads[]}`), which is imported once and then renamed."""

from collections.abc import Mapping
from pathlib import Path

from lamplighter.adapters.beads.decode import BeadUnreadable, read_bead
from lamplighter.domain.beads.model import Bead
from lamplighter.kit import json_text
from lamplighter.kit.errors import Unavailable

FILE = "beads.json"
IMPORTED = ".imported"


def read_beads_file(path: Path) -> list[Bead] | None:
    """Every bead in the file; None when there is no file. Raises BeadUnreadable with all problems, or Unavailable."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}.", hint="Check its owner and mode.") from error
    try:
        tree = json_text.parse(content)
    except ValueError as error:
        raise BeadUnreadable(str(path), [f"is not JSON: {error}"]) from error
    return _beads(tree, path)


def put_aside(path: Path) -> Path | None:
    """Rename the file so that it is not imported again; None when another process has renamed it already."""
    for number in range(1, 1000):
        aside = path.with_name(path.name + IMPORTED + ("" if number == 1 else f".{number}"))
        if not aside.exists():
            break
    try:
        return path.rename(aside)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(
            f"{path} was imported but cannot be renamed: {error.strerror}.",
            hint=f"Rename it to {aside.name} by hand; importing it again would change nothing.",
        ) from error


def _beads(tree: object, path: Path) -> list[Bead]:
    entries = tree.get("beads") if isinstance(tree, Mapping) else None
    if isinstance(tree, Mapping) and entries is None:
        entries = []
    if not isinstance(entries, list):
        raise BeadUnreadable(str(path), ['is not a bead file; it holds {"seq": …, "beads": […]}'])
    problems: list[str] = []
    read = [read_bead(entry, f"beads[{number}].", problems) for number, entry in enumerate(entries)]
    beads = [bead for bead in read if bead is not None]
    ids = [bead.id for bead in beads]
    problems += [f"beads: the id {bead!r} stands twice" for bead in sorted({i for i in ids if ids.count(i) > 1})]
    if problems:
        raise BeadUnreadable(str(path), problems)
    return beads
