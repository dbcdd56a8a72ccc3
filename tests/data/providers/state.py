"""Tell the state of all sessions of a directory, a line of JSON each."""

import json
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

for home in sorted(Path(sys.argv[1]).iterdir()):
    with suppress(OSError, ValueError):
        pid = int((home / "pid").read_text())
        ended = (home / "exit").read_text().strip() if (home / "exit").exists() else ""
        written = datetime.fromtimestamp((home / "output").stat().st_mtime, UTC)
        print(json.dumps({
            "name": home.name,
            "alive": not ended,
            "pid": pid,
            "exit_status": int(ended) if ended else None,
            "last_activity": written.isoformat(),
            "attached": False,
            "meta": {file.name: file.read_text() for file in (home / "meta").iterdir()},
        }))  # fmt: skip
