"""The port that a city's API had last: programs that still run know it, so that the next start takes it again."""

import json
from pathlib import Path

from lamplighter.adapters.files.atomic import write_atomically

OF_THE_CITY = "api.json"
OF_WORKERS = "worker-api.json"


def kept_port(file: Path, host: str, wanted: int) -> int | None:
    """The port there was at the last start that wanted the same; None if nobody knows."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return int(kept["port"]) if (kept["host"], kept["wanted"]) == (host, wanted) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_port(file: Path, host: str, wanted: int, port: int) -> None:
    write_atomically(file, (json.dumps({"host": host, "wanted": wanted, "port": port}) + "\n").encode(), mode=0o600)
