"""The file `.gc/city-id`: the city's id and where it was last started, so that a copied directory is recognised.

The first line is the id. The second is a JSON object with `host`, `path` and `inode` (device:inode of `.gc`) of the
place where the city was last started; a file with the first line alone was written by an earlier version.
"""

import itertools
import json
import re
from pathlib import Path
from typing import NamedTuple

from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.kit.errors import Conflict, NotFound, Unavailable

RUNTIME = ".gc"
FILE = "city-id"
NODE_FILE = "node-id"
_OTHERS = "Ask the user who owns the city, or become that user."
_RESTORE = "The city's rows are kept under its id: restore the file from a copy, or look for the id in the database."


class Home(NamedTuple):
    """Where a city is: its machine, its directory, and the identity of its `.gc` in the file system."""

    host: str
    path: Path
    inode: str


class CityId(NamedTuple):
    id: str
    home: Home | None
    """None if an earlier version wrote the file."""


class Original(NamedTuple):
    """The city that this directory was copied from; `same_node` if its node id was copied too."""

    root: Path
    same_node: bool


class CopiedCity(Conflict):
    def __init__(self, root: Path, original: Path) -> None:
        super().__init__(
            f"{root} is a copy of the city in {original}: both have one id, and agents and runs belong to that one.",
            hint=f"`lamp init --new-id {root}` makes it a city of its own; or work in {original}.",
        )


def read_city_id(root: Path) -> CityId:
    """Raises NotFound for a directory that was never initialised, Unavailable for a file without a valid id."""
    file = root / RUNTIME / FILE
    try:
        first, _, rest = file.read_text(encoding="utf-8").strip().partition("\n")
    except FileNotFoundError:
        told = f"{root} was never started, or its {RUNTIME} was removed: there is no {RUNTIME}/{FILE}."
        raise NotFound(told, hint=how_to_begin(root)) from None
    except PermissionError as error:
        raise Unavailable(f"{file} cannot be read: {error.strerror}.", hint=_OTHERS) from error
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"{file} cannot be read: {error}.", hint=_RESTORE) from error
    if not re.fullmatch(r"cty_[0-9a-z]+", first):
        raise Unavailable(f"{file} does not hold a city's id.", hint=_RESTORE)
    return CityId(first, _home(rest))


def how_to_begin(root: Path) -> str:
    if (root / RUNTIME / "lamp.db").exists():
        return _RESTORE
    return "`lamp up`, `lamp start` and `lamp daemon start` make what is missing and go on; `lamp init` only makes it."


def city_id_text(city: str, root: Path, host: str) -> str:
    home = {"host": host, "path": str(root.resolve()), "inode": _inode(root / RUNTIME)}
    return f"{city}\n{json.dumps(home)}\n"


def record_home(root: Path, host: str) -> None:
    """Record in the file that the city is here now. Raises OSError."""
    text = city_id_text(read_city_id(root).id, root, host)
    file = root / RUNTIME / FILE
    if file.read_text(encoding="utf-8") != text:
        write_atomically(file, text.encode(), mode=0o600)


def original_of(root: Path, host: str) -> Original | None:
    """The city this one is a copy of; None for a city that was moved, restored, or never left its place.

    None also for one last started on another machine, which cannot be checked from here: it was brought here on
    purpose.
    """
    known = read_city_id(root)
    home = known.home
    if home is None or home.host != host or home.inode == _inode(root / RUNTIME):
        return None
    if not _holds(home.path, known.id) or (home.path / RUNTIME).samefile(root / RUNTIME):
        return None
    own = _node(root)
    return Original(home.path, same_node=bool(own) and own == _node(home.path))


def _home(text: str) -> Home | None:
    try:
        told = json.loads(text)
        return Home(str(told["host"]), Path(told["path"]), str(told["inode"]))
    except (ValueError, KeyError, TypeError):
        return None


def _inode(directory: Path) -> str:
    found = directory.stat()
    return f"{found.st_dev}:{found.st_ino}"


def _holds(root: Path, city: str) -> bool:
    """Whether that city is at `root`; True also without permission to look, as it may then still be there."""
    try:
        return read_city_id(root).id == city
    except Unavailable as error:
        return isinstance(error.__cause__, PermissionError)
    except (NotFound, OSError):
        return False


def _node(root: Path) -> str:
    try:
        return (root / RUNTIME / NODE_FILE).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def set_aside(runtime: Path, names: tuple[str, ...], to: str) -> Path:
    """Move these entries of `.gc`, if they exist, into one directory inside it. May be repeated."""
    target = runtime / to
    target.mkdir(mode=0o700, exist_ok=True)
    for name in names:
        source = runtime / name
        if source.exists() or source.is_symlink():
            source.replace(_free(target, name))
    return target


def _free(directory: Path, name: str) -> Path:
    numbered = (directory / f"{name}.{number}" for number in itertools.count(2))
    return next(path for path in itertools.chain([directory / name], numbered) if not path.exists())
