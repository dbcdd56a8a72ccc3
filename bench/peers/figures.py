"""How a contender is driven: it does what it is asked for line by line, so that two of them can take turns.

`through N` is answered with the jobs a second of N jobs fired together, `start N` with how long N single ones took
until they began, on a system at rest.
"""

import json
import sys
from collections.abc import Iterator

WARM_UP = 100
"""Jobs before those that count: a server at work has statistics of its tables, and they are made after these."""


def orders() -> Iterator[tuple[str, int]]:
    """Until there is no more to do. Whoever waits for his turn does nothing else meanwhile."""
    print("up", flush=True)
    for line in sys.stdin:
        what, count = line.split()
        yield what, int(count)


def answer(figure: float | list[float]) -> None:
    print(json.dumps(figure), flush=True)
