"""Long drills, for `make torture` only: each does a great deal of harm to a real city and counts what came of it.

A drill is a test of this folder. What it counts goes into `counts`, and is printed as one JSON line when it has passed
or failed. Counts come from side effects outside the product (lines a command wrote, processes that live), not only from
what the product says of itself. Every loop is bounded in number and time, and all traffic stays on loopback.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.torture)
            item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture
def counts(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Iterator[dict[str, object]]:
    """What the drill counted."""
    found: dict[str, object] = {}
    yield found
    with capsys.disabled():
        print("\n" + json.dumps({"drill": request.node.name} | found), flush=True)
