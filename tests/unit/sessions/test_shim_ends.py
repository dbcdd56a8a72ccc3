"""Many shims watched by one descriptor: ends that are written down, ends that are not, and what is already over."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamplighter.adapters.processes.shim_ends import ShimEnds, reap
from lamplighter.adapters.processes.table import Identity, identity_of
from lamplighter.adapters.sessions.local import shim
from lamplighter.kit import descriptors
from lamplighter.testing.few_descriptors import only

WITHIN = 120


def nap() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "1000"])


class Naps:
    """Processes that stand for shims, each with a directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.children: list[subprocess.Popen[bytes]] = []

    def start(self) -> tuple[Path, Identity]:
        child = nap()
        self.children.append(child)
        home = self._root / str(child.pid)
        home.mkdir()
        who = identity_of(child.pid)
        assert who is not None
        return home, who

    def close(self) -> None:
        for child in self.children:
            child.kill()
            child.wait()


@pytest.fixture
def naps(tmp_path: Path) -> Iterator[Naps]:
    found = Naps(tmp_path)
    yield found
    found.close()


async def heard(event: asyncio.Event) -> None:
    async with asyncio.timeout(WITHIN):
        await event.wait()


async def test_twenty_shims_cost_one_descriptor_and_each_end_is_told_to_its_own(naps: Naps) -> None:
    before = descriptors.count_open()
    assert before is not None
    ends, events = ShimEnds(shim.EXIT), [asyncio.Event() for _ in range(20)]
    watched = [naps.start() for _ in events]
    cancels = [ends.watch(*one, event.set) for one, event in zip(watched, events, strict=True)]
    assert descriptors.count_open() == before + 1

    (watched[7][0] / "output").write_text("words")
    (watched[7][0] / shim.EXIT).write_text("0\n")
    await heard(events[7])
    assert [number for number, event in enumerate(events) if event.is_set()] == [7]
    for cancel in cancels:
        cancel()
    assert descriptors.count_open() == before


async def test_a_shim_that_is_killed_before_it_writes_is_told_of_too(naps: Naps) -> None:
    ends, event, spared = ShimEnds(shim.EXIT, look_every=0.05), asyncio.Event(), asyncio.Event()
    home, who = naps.start()
    ends.watch(home, who, event.set)
    cancel = ends.watch(*naps.start(), spared.set)
    os.kill(who.pid, signal.SIGKILL)
    await heard(event)
    assert not spared.is_set()
    cancel()


async def test_one_that_is_over_before_it_is_watched_is_told_at_once(naps: Naps) -> None:
    ends, written, dead = ShimEnds(shim.EXIT), asyncio.Event(), asyncio.Event()
    home, who = naps.start()
    (home / shim.EXIT).write_text("0\n")
    ends.watch(home, who, written.set)
    await heard(written)
    (home / shim.EXIT).unlink()
    naps.close()
    ends.watch(home, who, dead.set)
    await heard(dead)


async def test_one_whose_directory_goes_is_watched_by_its_process(naps: Naps) -> None:
    ends, event = ShimEnds(shim.EXIT), asyncio.Event()
    home, who = naps.start()
    cancel = ends.watch(home, who, event.set)
    home.rmdir()
    await asyncio.sleep(0)
    os.kill(who.pid, signal.SIGKILL)
    await heard(event)
    cancel()


async def test_without_a_free_descriptor_an_end_is_noticed_all_the_same(naps: Naps) -> None:
    ends, event = ShimEnds(shim.EXIT), asyncio.Event()
    home, who = naps.start()
    with only(0):
        cancel = ends.watch(home, who, event.set)
        await asyncio.sleep(0.1)
        assert not event.is_set()
    os.kill(who.pid, signal.SIGKILL)
    await heard(event)
    cancel()


async def test_a_child_that_is_not_gone_yet_is_collected_when_it_is() -> None:
    child = nap()
    reap(child.pid)
    child.kill()
    async with asyncio.timeout(WITHIN):
        while _is_ours(child.pid):  # noqa: ASYNC110  a process is waited for
            await asyncio.sleep(0.01)
    child.returncode = 0  # nobody is left to wait for


def _is_ours(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
