"""Long drills, for `make torture` only: each does a great deal of harm to a real city and counts what came of it.

A drill is a test of this folder. What it counts goes into `counts`, and is printed as one JSON line when it has passed
or failed. Counts come from side effects outside the product (lines a command wrote, processes that live), not only from
what the product says of itself. Every loop is bounded in number and time, and all traffic stays on loopback.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from drill_city import LAMP, environment

from lamplighter.testing.processes import Children, children

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.torture)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture
def counts(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Iterator[dict[str, object]]:
    """What the drill counted."""
    found: dict[str, object] = {}
    began = time.monotonic()
    yield found
    took = round(time.monotonic() - began, 1)
    with capsys.disabled():
        print("\n" + json.dumps({"drill": request.node.name} | found | {"seconds": took}), flush=True)


@pytest.fixture
def city(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    subprocess.run([*LAMP, "init", str(root)], check=True, env=environment(), capture_output=True)
    return root


@pytest.fixture
def processes() -> Iterator[Children]:
    with children() as started:
        yield started
