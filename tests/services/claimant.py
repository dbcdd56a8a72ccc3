"""Processes of several claimants each, forked from one: on the word their threads claim one bead, the winner is told.

Each child connects by itself; only the loading of the program is shared.
"""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lamplighter.domain.beads.model import AlreadyClaimed
from lamplighter.kit.clock import SystemClock
from lamplighter.services.beads import changes as beads
from lamplighter.services.context import acting
from lamplighter.store.engine import postgres, sqlite_direct
from lamplighter.store.url import open_direct, parse_store_url

WARM = (postgres, sqlite_direct)  # what opening a store loads


def main(url: str, runtime: str, city: str, bead: str, processes: int, each: int) -> int:
    """How many of the processes failed."""
    word, given = os.pipe()
    children = []
    for number in range(processes):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(given)
                os.write(1, b"here\n")  # in one piece, unlike print
                os.read(word, 1)  # returns once the parent has closed its end
                compete(url, runtime, city, bead, [f"agent-{number}-{one}" for one in range(each)])
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    sys.stdin.readline()
    os.close(given)
    return sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)


def compete(url: str, runtime: str, city: str, bead: str, names: Sequence[str]) -> None:
    clock = SystemClock()

    def claim(name: str) -> None:
        store = open_direct(parse_store_url(url, Path(runtime)), city)
        try:
            store.transact(beads.claim, bead, name, ctx=acting(name, clock.now()))
        except AlreadyClaimed:
            return
        finally:
            store.close()
        os.write(1, f"{name}\n".encode())

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(claim, names))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5], int(sys.argv[5]), int(sys.argv[6])))
