"""A bead that many processes want at once."""

import subprocess
import sys
from pathlib import Path

from lamplighter.domain.beads.model import BeadStatus, NewBead
from lamplighter.services.beads import changes as beads
from lamplighter.services.context import acting
from lamplighter.store.url import Place, PostgresUrl, open_direct
from lamplighter.testing.clock import FakeClock

CITY = "cty_claims"
PROCESSES = 20
CLAIMANTS_EACH = 5
WITHIN_SECONDS = 120


def test_a_hundred_claimants_from_twenty_processes_have_one_winner(place: Place, fake_clock: FakeClock) -> None:
    store = open_direct(place, CITY)
    ctx = acting("mayor", fake_clock.now())
    made = store.transact(beads.create, NewBead("Wanted by all"), prefix="lc", ctx=ctx)
    url = place.url if isinstance(place, PostgresUrl) else ""
    program = Path(__file__).with_name("claimant.py")
    arguments = [url, str(place.runtime), CITY, made.id, str(PROCESSES), str(CLAIMANTS_EACH)]
    with subprocess.Popen(
        [sys.executable, str(program), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as claimants:  # fmt: skip
        assert claimants.stdout is not None
        assert [claimants.stdout.readline() for _ in range(PROCESSES)] == ["here\n"] * PROCESSES
        output, error = claimants.communicate("go\n", timeout=WITHIN_SECONDS)
    won = store.read(beads.get, made.id)
    store.close()
    assert claimants.returncode == 0, error
    assert output.split() == [won.assignee]
    assert won.status is BeadStatus.IN_PROGRESS
