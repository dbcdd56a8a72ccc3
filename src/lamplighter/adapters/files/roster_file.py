"""Keeps `.gc/roster.json`: what the status of a stopped city needs from its configuration, so that it need not load it.

The file is used only while everything that the configuration was made from is the same as then: the program, the
city's directory, the environment variables that set keys, and the answer to every question that was asked of the disk,
file contents included. Otherwise the configuration is loaded. It holds the texts themselves, as `.gc/config.good` does,
and is private like that.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lamplighter import __version__
from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.adapters.files.questions import QUESTIONS

FORMAT = 1
FETCHED = "topology.lock"
"""Exists in a city with topologies from git: loading one may fetch them, which is more than a question."""


def kept_roster(file: Path, root: Path, env: Mapping[str, str]) -> dict[str, Any] | None:
    """What was kept; None if nothing was, or if loading the configuration might give something else now."""
    try:
        found = json.loads(file.read_bytes())
        same = (
            (found["format"], found["program"], found["root"]) == (FORMAT, __version__, os.fspath(root))
            and _set(found["names"], env) == found["env"]
            and all(_plain(QUESTIONS[question](path)) == answer for question, path, answer in found["answers"])
        )
        roster: dict[str, Any] | None = found["roster"] if same else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return roster


def keep_roster(
    file: Path,
    root: Path,
    env: Mapping[str, str],
    names: Iterable[str],
    answers: Mapping[tuple[str, str], Any],
    roster: Mapping[str, Any],
) -> None:
    """`names` are the environment variables that set keys, `answers` what was asked of the disk. Raises OSError.

    The file is removed for a city whose configuration depends on more than that.
    """
    fetched = os.fspath(root / FETCHED)
    if not answers or QUESTIONS["is_file"](fetched):
        file.unlink(missing_ok=True)
        return
    known = sorted(names)
    told = {
        "format": FORMAT,
        "program": __version__,
        "root": os.fspath(root),
        "names": known,
        "env": _set(known, env),
        "answers": [
            ["is_file", fetched, False],
            *([question, path, _plain(answer)] for (question, path), answer in answers.items()),
        ],
        "roster": roster,
    }
    text = json.dumps(told).encode()
    try:
        same = file.read_bytes() == text
    except OSError:
        same = False
    if not same:
        write_atomically(file, text, mode=0o600)


def _set(names: Iterable[str], env: Mapping[str, str]) -> dict[str, str]:
    """The variables that set something; empty ones do not."""
    return {name: env[name] for name in names if env.get(name)}


def _plain(answer: Any) -> Any:
    """As JSON can hold it: every byte becomes one character."""
    return answer.decode("latin-1") if isinstance(answer, bytes) else answer
