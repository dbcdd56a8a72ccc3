"""`lamp` with a clock that a test can move on: it runs ahead by the seconds that the file CLOCK_AHEAD_FILE holds."""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lamplighter.cli.main import run
from lamplighter.kit.clock import SystemClock

AHEAD = Path(os.environ["CLOCK_AHEAD_FILE"])


def now(_clock: SystemClock) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=float(AHEAD.read_text()))


SystemClock.now = now  # type: ignore[method-assign]  the process under test has no other door for its clock
sys.exit(run(sys.argv[1:]))
