"""The questions that loading a configuration asks of the disk, by name, so that they can be asked again later.

A configuration is a function of the answers, the environment and the program: while those stay the same, so does it.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PARTIAL = ".md.tmpl"


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


QUESTIONS: Mapping[str, Callable[[str], Any]] = {
    "read": read,
    "partials": partials,
    "is_file": os.path.isfile,
    "is_directory": os.path.isdir,
    "resolved": os.path.realpath,
}
Answers = dict[tuple[str, str], Any]
"""By question and path."""


def ask(answers: Answers, question: str, path: Path) -> Any:
    """Ask, and note the answer."""
    where = os.fspath(path)
    answers[question, where] = answer = QUESTIONS[question](where)
    return answer
