"""A city of its own for each crash test, and `lamp` as a person calls it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamplighter.testing.processes import Children, children

Lamp = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment() -> dict[str, str]:
    """This process's, without what would lead `lamp` to another city."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("LAMP_", "GC_"))}


@pytest.fixture
def city(tmp_path: Path, environment: dict[str, str]) -> Path:
    root = tmp_path / "town"
    subprocess.run(
        [sys.executable, "-m", "lamplighter", "init", str(root)], check=True, env=environment, capture_output=True
    )
    return root


@pytest.fixture
def lamp(city: Path, environment: dict[str, str]) -> Lamp:
    def call(*arguments: str, crash_at: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "lamplighter", *arguments, "--city", str(city)],
            check=False, capture_output=True, text=True, timeout=180,
            env=environment | ({"LAMP_CRASH_AT": crash_at} if crash_at else {}),
        )  # fmt: skip

    return call


@pytest.fixture
def processes() -> Iterator[Children]:
    with children() as started:
        yield started
