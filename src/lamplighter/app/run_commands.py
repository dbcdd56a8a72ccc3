"""Runs of a city as commands use them."""

import time
from collections.abc import Callable
from typing import Any

from lamplighter.app.automations import command_runner
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.runs.model import TERMINAL, RunState
from lamplighter.services import runs

POLL_SECONDS = 0.1


def listed(
    city: OpenCity, *, automation: str | None, state: str | None, before: str | None, limit: int
) -> list[dict[str, Any]]:
    wanted = None if state is None else RunState(state)
    found = city.store.read(runs.page, automation=automation, state=wanted, before=before, limit=limit)
    return [runs.as_json(row) for row in found]


def shown(city: OpenCity, run: str) -> dict[str, Any]:
    row, events = city.store.read(runs.show, run)
    return runs.as_json(row, events)


def cancel(city: OpenCity, run: str) -> dict[str, Any]:
    return runs.as_json(city.store.transact(runs.cancel, run, ids=city.ids, act=city.act()))


def output_of(city: OpenCity, run: str) -> str:
    """What it has printed so far, or the tail that was kept of it."""
    from lamplighter.kit import aio

    row = city.store.read(runs.get, run)
    if row.run.state in TERMINAL:
        return row.run.output_tail or ""
    return aio.run(command_runner(city.paths, city.clock, city.ids).tail(run))


def watch(city: OpenCity, run: str, show: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Call `show` with each of its events as it comes; the run as it ended."""
    seen = 0
    while True:
        value = shown(city, run)
        for event in value["events"][seen:]:
            show(event)
        seen = len(value["events"])
        if RunState(value["state"]) in TERMINAL:
            return value
        time.sleep(POLL_SECONDS)
