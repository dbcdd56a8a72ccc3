"""A city on disk: finds it, names the files in its `.gc`, and creates a new one."""

import os
import re
from pathlib import Path

from lamplighter.adapters.files.city_id import RUNTIME, city_id_text, read_city_id
from lamplighter.kit.errors import NotFound, Unavailable, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.records import record

CITY_FILE = "city.toml"

_CITY_TOML = """\
# This city's configuration. `lamp config check` tells whether it is right.

[workspace]
name = "{name}"

[daemon]
patrol_interval = "30s"
wisp_gc_interval = "5m"
wisp_ttl = "24h"     # wisps, the beads made for one occasion only, are removed a day after they are closed

# [store]
# url = "postgresql://user@host/database"     # SQLite inside .gc when left out

# An agent that is kept running: `lamp agent list` shows it, `lamp agent attach mayor` opens its terminal.
# [[agents]]
# name = "mayor"
# start_command = "claude"

# Where people are told what needs them; `lamp notify test phone` tries it.
# [[notifications.destinations]]
# name = "phone"
# kind = "ntfy"
# url = "https://ntfy.example.org"
# topic = "my-city"
"""

_FORMULA = """\
formula = "feature"
description = "A change from idea to review: {{what}}"

[vars.what]
description = "What is to be built"

[[steps]]
id = "plan"
title = "Plan: {{what}}"
description = "Write down what will change and how it will be shown to work."

[[steps]]
id = "build"
title = "Build: {{what}}"
needs = ["plan"]

[[steps]]
id = "test"
title = "Test: {{what}}"
needs = ["build"]

[[steps]]
id = "review"
title = "Review: {{what}}"
needs = ["build", "test"]
"""


@record
class CityPaths:
    root: Path

    @property
    def runtime(self) -> Path:
        return self.root / RUNTIME

    @property
    def config(self) -> Path:
        return self.root / CITY_FILE

    @property
    def id_file(self) -> Path:
        return self.runtime / "city-id"

    @property
    def lock(self) -> Path:
        return self.runtime / "controller.lock"

    @property
    def socket(self) -> Path:
        return self.runtime / "controller.sock"

    @property
    def pid_file(self) -> Path:
        return self.runtime / "daemon.pid"

    @property
    def log(self) -> Path:
        return self.runtime / "daemon.log"

    @property
    def rejected(self) -> Path:
        """Exists while the daemon rejects the configuration in the files."""
        return self.runtime / "config.rejected"

    @property
    def roster(self) -> Path:
        """What the status of a stopped city needs from its configuration."""
        return self.runtime / "roster.json"

    @property
    def events_export(self) -> Path:
        return self.runtime / "events.jsonl"

    def city_id(self) -> str:
        """The id under which any store keeps this city's rows. Raises NotFound for a directory never initialised."""
        return read_city_id(self.root).id


def find_city(start: Path) -> CityPaths:
    """The nearest directory at or above `start` that holds a `.gc` or a city.toml. Raises NotFound."""
    for directory in (start, *start.parents):
        if (directory / RUNTIME).is_dir() or (directory / CITY_FILE).is_file():
            return CityPaths(directory)
    raise NotFound(
        f"There is no city at or above {start}.",
        hint="Make one with `lamp init`, or name one with --city PATH or LAMP_CITY.",
    )


def city_at(path: Path) -> CityPaths:
    """The city at the directory `path`, or the nearest above it. Raises NotFound."""
    if not path.is_dir():
        raise NotFound(f"{path} is not a directory.", hint="Name the directory that holds city.toml.")
    return find_city(path.resolve())


def lay_out(root: Path, *, name: str | None, ids: IdSource, host: str) -> list[Path]:
    """Create the missing files and directories of a city, and return them. Never overwrites."""
    if name is not None:
        check_name(name)
    paths = CityPaths(root)
    made: list[Path] = []
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not paths.runtime.is_dir():
            paths.runtime.mkdir(mode=0o700)
            made.append(paths.runtime)
        city_name = name or re.sub(r"[^A-Za-z0-9._-]+", "-", root.name).strip("-.") or "city"
        made += make_file(paths.config, _CITY_TOML.format(name=city_name))
        if not paths.id_file.exists():
            paths.runtime.chmod(0o700)  # git stores no directory modes: a clone's is open to other users
            made += make_file(paths.id_file, city_id_text(ids.make("cty"), root, host), mode=0o600)
        formulas = paths.runtime / "formulas"
        if not formulas.exists():
            formulas.mkdir()
            made += make_file(formulas / "feature.formula.toml", _FORMULA)
        made += make_file(paths.runtime / ".gitignore", "*\n!.gitignore\n!formulas/\n!formulas/**\n")
    except OSError as error:
        raise Unavailable(
            f"A city cannot be made in {root}: {error.strerror} ({error.filename}).",
            hint="Check the directory's owner and mode, and how its disk is mounted.",
        ) from error
    return made


def check_name(name: str) -> None:
    """Raises UsageError for a name that no city can have."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UsageError(f"`{name}` is not a city's name.", hint="Use letters, digits, dots, dashes; no spaces.")


def make_file(path: Path, text: str, *, mode: int = 0o644) -> list[Path]:
    """Create the file and return it in a list, which is empty if it exists already. Never overwrites.

    The file appears complete or not at all: a draft is linked to its path, which fails if something is there.
    """
    if path.exists():
        return []
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.link(draft, path)
    except FileExistsError:
        return []
    finally:
        draft.unlink(missing_ok=True)
    return [path]
