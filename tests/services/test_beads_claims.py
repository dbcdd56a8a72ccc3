"""A bead that many processes want at once."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from lamplighter.domain.acts import Act
from lamplighter.domain.beads.model import BeadStatus, NewBead
from lamplighter.kit.ids import IdSource
from lamplighter.services import beads
from lamplighter.store.url import Place, PostgresUrl, open_direct
from lamplighter.testing.clock import FakeClock

CITY = "cty_claims"
PROCESSES = 20
CLAIMANTS_EACH = 5
WITHIN_SECONDS = 100


def test_a_hundred_claimants_from_twenty_processes_have_one_winner(
    place: Place, fake_clock: FakeClock, ids: IdSource
) -> None:
    store = open_direct(place, CITY)
    act = Act("mayor", fake_clock.now())
    made = store.transact(beads.create, NewBead("Wanted by all"), prefix="lc", ids=ids, act=act)
    url = place.url if isinstance(place, PostgresUrl) else ""
    with ExitStack() as stack:
        claimants = [_started(stack, url, place.runtime, made.id, number) for number in range(PROCESSES)]
        assert [claimant.stdout.readline() for claimant in claimants if claimant.stdout] == ["here\n"] * PROCESSES
        for claimant in claimants:
            _release(claimant)
        answers = [claimant.communicate(timeout=WITHIN_SECONDS) for claimant in claimants]
    won = store.read(beads.get, made.id)
    store.close()
    assert [claimant.returncode for claimant in claimants] == [0] * PROCESSES, [error for _, error in answers if error]
    assert [line for output, _ in answers for line in output.split()] == [won.assignee]
    assert won.status is BeadStatus.IN_PROGRESS


def _release(claimant: "subprocess.Popen[str]") -> None:
    assert claimant.stdin is not None
    claimant.stdin.write("go\n")
    claimant.stdin.flush()


def _started(stack: ExitStack, url: str, runtime: Path, bead: str, number: int) -> "subprocess.Popen[str]":
    names = [f"agent-{number}-{each}" for each in range(CLAIMANTS_EACH)]
    program = Path(__file__).with_name("claimant.py")
    process = subprocess.Popen(
        [sys.executable, str(program), url, str(runtime), CITY, bead, *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    stack.enter_context(process)
    stack.callback(process.kill)  # before the wait above, should the test fail
    return process
