"""The questions that loading a configuration asks of the disk, by name, so that they can be asked again later.

A configuration is a function of the answers, the environment and the program: while those stay the same, so does it.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PARTIAL = ".md.tmpl"
MOST_AUTOMATIONS = 100
"""The files of a layer with more of them are not looked at for a status: it would take longer than it should."""


def read(path: str) -> bytes | None:
    """None for a file that is missing or cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  asked again by every `lamp status`: paths cost more
            return file.read()
    except OSError:
        return None


def partials(path: str) -> list[str]:
    """The names of the files in the directory that hold partials of prompts, sorted; empty if it is missing."""
    try:
        return sorted(name for name in os.listdir(path) if name.endswith(PARTIAL))  # noqa: PTH208  as in `read`
    except OSError:
        return []


def automations(path: str) -> list[list[Any]] | None:
    """The automation files of a layer, each by its folder with its time and size, sorted; None where they are many."""
    folder = f"{path}/automations"
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208  as in `read`
    except OSError:
        return []
    return (
        None
        if len(names) > MOST_AUTOMATIONS
        else [[name, *_stamp(f"{folder}/{name}/automation.toml")] for name in names]
    )


def _stamp(file: str) -> list[int]:
    try:
        found = os.stat(file)  # noqa: PTH116  as in `read`
    except OSError:
        return []
    return [found.st_mtime_ns, found.st_size]


QUESTIONS: Mapping[str, Callable[[str], Any]] = {
    "read": read,
    "partials": partials,
    "is_file": os.path.isfile,
    "is_directory": os.path.isdir,
    "resolved": os.path.realpath,
    "automations": automations,
}
Answers = dict[tuple[str, str], Any]
"""By question and path."""


def ask(answers: Answers, question: str, path: Path) -> Any:
    """Ask, and note the answer."""
    where = os.fspath(path)
    answers[question, where] = answer = QUESTIONS[question](where)
    return answer
