"""Many processes append while others follow: every reader sees every acknowledged event once, in order."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamplighter.app.wakeups import listening
from lamplighter.services.context import acting
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Tx
from lamplighter.store.url import Place, PostgresUrl, SqliteUrl, open_direct, open_store
from lamplighter.testing.contracts.store import AT, CITY, WITHIN
from lamplighter.testing.processes import Child, Children, children

SCRIPT = Path(__file__).with_name("event_child.py")
WRITERS = 8
READERS = 4
EVENTS = 20_000
BATCH = 25
SHARE = EVENTS // WRITERS


@pytest.fixture
def processes() -> Iterator[Children]:
    with children() as started:
        yield started


def url_of(place: Place) -> str:
    return place.url if isinstance(place, PostgresUrl) else f"sqlite:{place.path}"


def role(processes: Children, place: Place, name: str, *rest: str) -> Child:
    return processes.script(SCRIPT, name, url_of(place), str(place.runtime), *rest)


def acknowledged(writer: Child) -> int:
    """How many of its events it was told are kept, read to its end."""
    last = 0
    while line := writer.line():
        last = int(line)
    return last


def killed_after(writer: Child, acknowledgements: int) -> int:
    for _ in range(acknowledgements):
        writer.line()
    writer.kill()
    return acknowledged(writer) or acknowledgements * BATCH


def test_every_reader_sees_every_event_once_and_in_order(place: Place, processes: Children, tmp_path: Path) -> None:
    files = [tmp_path / f"seen{n}" for n in range(READERS)]
    readers = [role(processes, place, "read", f"reader{n}", str(file)) for n, file in enumerate(files)]
    for reader in readers:
        assert reader.line() == "ready"
    kept = _write_with_losses(place, processes)
    _append_the_end(place)
    for reader in readers:
        assert reader.process.wait(timeout=180) == 0
    seen = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    assert all(each == seen[0] for each in seen)
    numbers = [number for number, _ in seen[0]]
    assert numbers == sorted(set(numbers))
    subjects = [subject for _, subject in seen[0]]
    assert len(set(subjects)) == len(subjects)
    assert len(kept) >= EVENTS
    assert kept <= set(subjects)


def _write_with_losses(place: Place, processes: Children) -> set[str]:
    """The writers' work, some of them killed and replaced; returns the subjects of what was acknowledged."""
    crashing = isinstance(place, PostgresUrl)
    victims = ("w1", "w2")
    plans = {f"w{n}": 9 if crashing and n == 0 else 0 for n in range(WRITERS)}
    shares = {name: SHARE * 100 if name in victims else SHARE for name in plans}  # a victim never ends by itself
    writers = {name: _writer(processes, place, name, shares[name], passes) for name, passes in plans.items()}
    counts = {name: killed_after(writers.pop(name), 3 + n) for n, name in enumerate(victims)}
    counts |= {name: acknowledged(writer) for name, writer in writers.items()}
    heirs = {
        f"{name}-heir": _writer(processes, place, f"{name}-heir", max(SHARE - count, BATCH), 0)
        for name, count in counts.items()
        if name in victims or count < SHARE
    }
    assert set(heirs) >= {"w1-heir", "w2-heir"} | ({"w0-heir"} if crashing else set())
    counts |= {name: acknowledged(writer) for name, writer in heirs.items()}
    return {f"{name}:{number}" for name, count in counts.items() for number in range(count)}


def _writer(processes: Children, place: Place, name: str, count: int, passes: int) -> Child:
    return role(processes, place, "write", name, str(count), str(BATCH), str(passes))


def _append_the_end(place: Place) -> None:
    store = open_direct(place, CITY)
    store.transact(lambda tx: tx.events.append(acting("tester", AT).event("test.end", subject="end")))
    store.close()


async def test_a_wakeup_crosses_processes(place: Place, processes: Children) -> None:
    wakes = Wakes()
    store = open_store(place, CITY, wakes)
    try:
        with listening(place, "listener", wakes):
            news, other = wakes.subscribe("news"), wakes.subscribe("other")
            role(processes, place, "wake", "news")
            async with asyncio.timeout(WITHIN):
                await news.wait()
            assert not other.is_set()
    finally:
        await store.close()


def test_beside_a_saturated_writer_another_process_soon_has_its_turn(
    sqlite_place: SqliteUrl, processes: Children
) -> None:
    busy = role(processes, sqlite_place, "saturate")
    assert busy.line() == "busy"
    store = open_direct(sqlite_place, CITY)
    try:
        for _ in range(50):
            before = store.read(_turns)
            assert store.transact(_turns) - before <= 20
    finally:
        store.close()


def _turns(tx: Tx) -> int:
    return tx.events.head()
