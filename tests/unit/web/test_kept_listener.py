"""The address of the city's server: it is known while the process starts anew, and stays the same."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lamplighter.app.http import HttpServer, KeptListener


@pytest.fixture
def kept() -> Iterator[KeptListener]:
    listener = KeptListener()
    yield listener
    listener.close()


def opened(runtime: Path, kept: KeptListener) -> HttpServer:
    city: Any = SimpleNamespace(paths=SimpleNamespace(runtime=runtime))
    nothing: Any = None
    server = HttpServer(city, nothing, nothing, "127.0.0.1", 0, nothing, kept=kept)
    server.open()
    return server


async def test_the_address_is_known_after_the_server_has_stopped_and_the_next_one_has_it(
    tmp_path: Path, kept: KeptListener
) -> None:
    first = opened(tmp_path, kept)
    at = first.url
    first.close()
    assert first.url == at, "a run that is being started while the process starts anew is told it"
    second = opened(tmp_path, kept)
    assert second.url == at
    second.close()
