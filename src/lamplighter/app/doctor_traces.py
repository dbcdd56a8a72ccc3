"""Traces, as `lamp doctor` finds them: where the spans of runs go, and what is wrong with that."""

from collections.abc import Iterator

from lamplighter.adapters.control import VerbFailed, ask
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app.traces import TracesUnusable, asks_by, check
from lamplighter.app.wiring import OpenCity
from lamplighter.kit.errors import Unavailable
from lamplighter.services.doctor import Finding, Level

CHECK = "traces"


def traces(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001  one shape for all checks
    """What the running city says of them; where none runs, what it would do if it were started from here."""
    if controller_pid(city.paths.lock) is not None:
        try:
            told = ask(city.paths.socket, "traces", within=2.0)
        except VerbFailed:
            raise
        except Unavailable:  # it does not answer, which another check tells, or is of a version without traces
            return
        if told["wrong"]:
            yield Finding(CHECK, Level.PROBLEM, told["wrong"], told["hint"])
        elif told["address"]:
            yield Finding(CHECK, Level.OK, f"Spans of runs go to {told['address']}.")
        return
    try:
        check(city.settings.env)
    except TracesUnusable as error:
        yield Finding(CHECK, Level.NOTE, error.message, error.hint)
        return
    if asks := asks_by(city.settings.env):
        yield Finding(CHECK, Level.OK, f"Spans of runs will be reported: {asks} asks for them.")
