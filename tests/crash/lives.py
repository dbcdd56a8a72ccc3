"""Controllers and workers that live again and again, each forked from an interpreter that is warm.

Told `live SLOT DIRECTORY KIND [NAME [CRASH_POINT]]` on standard input it forks one and says `lit SLOT PID` once that
is up, or `failed SLOT PID`; `kill SLOT` and `stop SLOT` end one, `wait SLOT` waits for one that kills itself; each is
answered with `gone SLOT PID STATUS TIME`.
"""

import ctypes
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from lamplighter.app import surfaces
from lamplighter.app.process import run_city
from lamplighter.app.settings import Settings
from lamplighter.app.worker_process import Wanted, run_worker
from lamplighter.kit import crash, log
from lamplighter.store.engine import postgres
from lamplighter.web import server

DIE_WITH_PARENT = 1
KEPT = frozenset({"LAMP_SLACK_API_URL"})
WARM = (surfaces, server, postgres)  # what they load after their start, loaded before the first


def live(slot: str, city: Path, kind: str, name: str = "", point: str = "") -> None:
    env = {key: value for key, value in os.environ.items() if key in KEPT or not key.startswith(("LAMP_", "GC_"))}
    settings = Settings(cwd=city, city=city, actor="tester", run=None, env=env)
    if point:
        where, _, passes = point.partition(":")
        crash.arm(where, passes=int(passes or 0))

    def lit(_report: object) -> None:
        say("lit", slot, os.getpid())

    if kind == "up":
        run_city(settings, started=lit)
    else:
        run_worker(settings, Wanted({}, None if name in {"", "-"} else name), started=lit)


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def fork(slot: str, *rest: str) -> int:
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)  # none outlives the test, however that ends
        code = 1
        try:
            live(slot, Path(rest[0]), *rest[1:])
            code = 0
        except BaseException:  # noqa: BLE001  told to whoever waits for it
            traceback.print_exc()
            say("failed", slot, os.getpid())
        finally:
            os._exit(code)
    return child


def main() -> None:
    log.set_up(sys.stderr)
    children: dict[str, int] = {}
    for line in sys.stdin:
        order, slot, *rest = line.split()
        if order == "live":
            children[slot] = fork(slot, *rest)
            continue
        child = children.pop(slot)
        at = time.time()  # before: this process may have to wait for its turn after it
        if order != "wait":
            os.kill(child, signal.SIGKILL if order == "kill" else signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        say("gone", slot, child, os.waitstatus_to_exitcode(status), at)


if __name__ == "__main__":
    main()
