"""The files a program must find when it starts: written before it, for its owner's eyes only."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lamplighter.domain.sessions.presets.model import Place, SeedFile, Writing
from lamplighter.kit import json_text
from lamplighter.kit.errors import LampError

_MODE = 0o600


class SeedRefused(LampError):
    """A file that must not be touched, or cannot be read to be added to."""


def write_seeds(files: Iterable[SeedFile], places: Mapping[Place, Path]) -> None:
    """May be repeated. Raises SeedRefused for a path that leads out of its place."""
    for seed in files:
        root = places[seed.place].resolve()
        path = root / seed.path
        if root not in (path.resolve(), *path.resolve().parents):
            raise SeedRefused(f"{seed.path} leads out of {root}.")
        match seed.writing:
            case Writing.REPLACE:
                _write(path, seed.content)
            case Writing.MERGE_JSON:
                _write(path, json.dumps(_added(_object(path), json_text.parse(seed.content)), indent=2))


def _added(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """What is said already stays; tables are added to, key by key."""
    merged = dict(theirs)
    for key, value in ours.items():
        known = theirs.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[key] = _added(known, value)
        elif isinstance(known, list) and isinstance(value, list):
            merged[key] = [*known, *(one for one in value if one not in known)]
        else:
            merged.setdefault(key, value)
    return merged


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json_text.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise SeedRefused(f"{path} is not JSON: {error}.", hint="Mend or remove it.") from error
    if not isinstance(found, dict):
        raise SeedRefused(f"{path} is not a JSON object.", hint="Mend or remove it.")
    return found


def _write(path: Path, content: str) -> None:
    """Beside the old one and then in its place, so that a program that reads meanwhile sees one of the two."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(content)
    new.replace(path)
