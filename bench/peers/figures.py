"""What every peer prints, and how much it does before and for it."""

import json

WARM_UP = 100
"""Jobs before those that count: a server at work has statistics of its tables, and they are made after these."""
LATENCIES = 60


def say(rate: float, waits: list[float]) -> None:
    waits.sort()
    p50, p99 = (round(waits[int(len(waits) * part)] * 1000, 2) for part in (0.5, 0.99))
    print(json.dumps({"per_second": round(rate, 1), "start_ms": {"p50": p50, "p99": p99}}), flush=True)
