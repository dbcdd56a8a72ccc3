"""One process of several claimants: waits for the word, lets its threads claim one bead, prints who won."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lamplighter.domain.acts import Act
from lamplighter.domain.beads.model import AlreadyClaimed
from lamplighter.kit.clock import SystemClock
from lamplighter.services import beads
from lamplighter.store.url import open_direct, parse_store_url


def main(url: str, runtime: str, city: str, bead: str, names: list[str]) -> None:
    clock = SystemClock()

    def claim(name: str) -> None:
        store = open_direct(parse_store_url(url, Path(runtime)), city)
        try:
            store.transact(beads.claim, bead, name, act=Act(name, clock.now()))
        except AlreadyClaimed:
            return
        finally:
            store.close()
        print(name, flush=True)

    print("here", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(claim, names))


if __name__ == "__main__":
    main(*sys.argv[1:5], sys.argv[5:])
