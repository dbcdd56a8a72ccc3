"""A daemon that lives again and again: each `live` on standard input forks one from an interpreter that is warm.

It says `lit` when the city is up and `dead` once `kill` was carried out; `stop` lets it leave in good order.
"""

import os
import signal
import sys
from pathlib import Path

from lamplighter.app import surfaces
from lamplighter.app.process import Started, run_city
from lamplighter.app.settings import Settings
from lamplighter.kit import log
from lamplighter.web import server

WARM = (surfaces, server)  # what a daemon loads after its start, loaded before the first


def live(city: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LAMP_", "GC_"))}
    settings = Settings(cwd=city, city=city, actor="tester", run=None, env=env)

    def lit(_started: Started) -> None:
        os.write(1, b"lit\n")

    run_city(settings, started=lit)


def main(city: Path) -> None:
    log.set_up(sys.stderr)
    child = 0
    for line in sys.stdin:
        match line.strip():
            case "live":
                child = os.fork()
                if child == 0:
                    code = 1
                    try:
                        live(city)
                        code = 0
                    finally:
                        os._exit(code)
            case "kill" | "stop" as how:
                os.kill(child, signal.SIGKILL if how == "kill" else signal.SIGTERM)
                _, status = os.waitpid(child, 0)
                os.write(1, f"{'dead' if how == 'kill' else os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
