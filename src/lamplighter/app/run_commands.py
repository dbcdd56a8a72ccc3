"""Runs of a city as commands use them."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lamplighter.adapters.files.secrets import city_key
from lamplighter.app.automations import command_runner
from lamplighter.app.inline_run import daemon_runs
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.access import Caller, Unauthenticated, of_run, owner, run_of_token
from lamplighter.domain.automations.model import ActionKind
from lamplighter.domain.runs.completion import parse
from lamplighter.domain.runs.model import TERMINAL, RunState
from lamplighter.domain.sessions.meta import ENV_SESSION_ID
from lamplighter.kit.clock import rfc3339
from lamplighter.ports.runs import Completed
from lamplighter.services.runs import review, transcripts
from lamplighter.services.runs.completing import DirectCompletions
from lamplighter.store.url import SqliteUrl

POLL_SECONDS = 0.1


def shown(city: OpenCity, run: str) -> dict[str, Any]:
    return city.store.read(review.show, run)


def cancel(city: OpenCity, run: str) -> dict[str, Any]:
    return review.as_json(city.store.transact(review.cancel, run, ids=city.ids, act=city.act()))


def nobody_ends_it(city: OpenCity, run: Mapping[str, Any]) -> bool:
    """Whether a cancelled run's command may keep running: it was started, and on SQLite no daemon runs to end it.

    Always False on PostgreSQL.
    """
    return run["started_at"] is not None and isinstance(city.place, SqliteUrl) and not daemon_runs(city)


def complete(city: OpenCity, said: Mapping[str, Any]) -> Completed:
    """What `lamp run complete` does: inside a run the caller is that run, elsewhere the city's owner.

    Raises CompletionInvalid, CompletionRefused, RunUnknown, Forbidden, Unauthenticated.
    """
    env = city.settings.env
    service = DirectCompletions(city.store, city.clock, city.ids)
    return service.complete(parse(said), caller=_caller(city), session=env.get(ENV_SESSION_ID) or None)


def _caller(city: OpenCity) -> Caller:
    """A run identifies itself by its token; a process without one can read the city's files, and so is its owner.

    Raises Unauthenticated if the token cannot be read or is not valid.
    """
    file, run = city.settings.env.get("LAMP_RUN_TOKEN_FILE"), city.settings.run
    if not file:
        return owner(city.settings.actor, run)
    try:
        shown = run_of_token(city_key(city.paths.runtime), Path(file).read_text(encoding="ascii").strip())
    except (OSError, UnicodeDecodeError):
        shown = None
    if shown is None:
        raise Unauthenticated
    return of_run(shown)


def transcript_of(city: OpenCity, run: str) -> list[dict[str, Any]]:
    """What the run's agent said and did, as far as it is recorded."""
    found = city.store.read(transcripts.of_run, run)
    return [{"at": rfc3339(one.at), "kind": one.kind, **one.body} for one in found]


def output_of(city: OpenCity, run: str) -> str:
    """The output so far of a running command, the kept tail of an ended one; the transcript of an agent run."""
    from lamplighter.kit import aio

    row = city.store.read(review.get, run)
    if row.facts.action == ActionKind.AGENT.value:
        lines = [transcripts.told(one) for one in city.store.read(transcripts.of_run, run)]
        return "\n".join(line for line in lines if line) or row.run.output_tail
    if row.run.state in TERMINAL:
        return row.run.output_tail or ""
    return aio.run(command_runner(city.paths, city.clock, city.ids).tail(run))


def watch(city: OpenCity, run: str, show: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Call `show` with each event of the run as it comes; returns the run once it has ended."""
    seen = 0
    while True:
        value = shown(city, run)
        for event in value["events"][seen:]:
            show(event)
        seen = len(value["events"])
        if RunState(value["state"]) in TERMINAL:
            return value
        time.sleep(POLL_SECONDS)
