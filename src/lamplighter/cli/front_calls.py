"""What the fronts of `gc` and `bd` share: words that are parsed, and calls of `lamp` whose answers are read."""

import argparse
import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

Words = list[str]
Run = Callable[[Sequence[str]], int]
MOST = "100000"


class Unknown(Exception):
    """What was asked is not among what the front understands; the text says what is."""


class Parser(argparse.ArgumentParser):
    def __init__(self, **settings: Any) -> None:
        super().__init__(add_help=False, allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        raise Unknown(message.removeprefix("argument verb: ").removeprefix("argument sub: "))


def answer(run: Run, call: Sequence[str]) -> tuple[int, Any]:
    """The exit code and the JSON that a call of `lamp` prints; an error is told as a sentence."""
    heard, complaint = io.StringIO(), io.StringIO()
    at = call.index("--") if "--" in call else len(call)
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(complaint):
        code = run([*call[:at], "--json", *call[at:]])
    sys.stderr.write(_sentence(complaint.getvalue()))
    text = heard.getvalue().strip()
    return code, json.loads(text) if text and not code else {}


def _sentence(complaint: str) -> str:
    try:
        told = json.loads(complaint)
        hint = f" hint: {told['hint']}\n" if told.get("hint") else ""
        return f"error: {told['detail']}\n{hint}"
    except (ValueError, TypeError, KeyError):
        return complaint


def say(lines: Iterable[str], code: int) -> None:
    if not code:
        sys.stdout.write("".join(f"{line}\n" for line in lines))


def flag_of(name: str, value: str | None) -> Words:
    return [] if value is None else [f"--{name}={value}"]
