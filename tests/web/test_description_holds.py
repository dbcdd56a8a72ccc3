"""The description of the API against the API: made-up requests get no server error and only described answers."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from served import Served, served

from lamplighter.web.openapi import description

EXAMPLES = int(os.environ.get("API_EXAMPLES", "6"))
NOT_MADE_UP = {
    "city.doctor", "rig.add", "run.watch", "run.follow", "event.tail", "automation.check", "automation.explain",
    "config.check", "city.suspend", "city.resume", "worktree.clean",
}  # fmt: skip
"""They do not end by themselves, or work on the machine for seconds each; tests of their own ask for them."""
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)


@contextmanager
def in_a_thread(root: Path) -> Iterator[Served]:
    """A served city whose event loop runs beside the test: what makes the requests up is not asynchronous."""
    ready, done = threading.Event(), threading.Event()
    found: list[Served] = []

    async def serve() -> None:
        async with served(root) as city:
            found.append(city)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield found[0]
    finally:
        done.set()
        thread.join(60)


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")  # of the library that makes requests up
def test_made_up_requests_are_answered_as_described(tmp_path: Path) -> None:
    with in_a_thread(tmp_path / "town") as city:
        wrong, _ = answers_of(city)
    assert wrong == []


def answers_of(city: Served) -> tuple[list[str], int]:
    """What is answered otherwise than described, and how many operations were asked."""
    wrong, asked = [], 0
    for result in schemathesis.openapi.from_dict(description()).get_all_operations():
        operation = result.ok()
        if operation.definition.raw["operationId"] in NOT_MADE_UP:
            continue
        wrong += problems(city, operation)
        asked += 1
    return wrong, asked


def problems(city: Served, operation: schemathesis.schemas.APIOperation) -> list[str]:
    found: list[str] = []

    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy())
    def ask(case: schemathesis.Case) -> None:
        answer = case.call(base_url=f"{city.url}/api/v1", headers=city.owner, timeout=180)
        case.validate_response(answer, checks=CHECKS)

    try:
        ask()
    except Exception as error:  # noqa: BLE001  all of them are told together
        found.append(f"{operation.label}: {str(error)[:600]}")
    return found
