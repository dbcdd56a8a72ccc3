"""A stand-in for an agent program that can plan and resume: it notes how it was called, and waits until told to end."""

import os
from pathlib import Path
from typing import Any

from loops_city import Loops

from lamplighter.domain.city.model import Configuration
from lamplighter.services import configurations

PROGRAM = """#!/bin/sh
[ "$1" = --version ] && { echo "codex-cli 1.2.3"; exit 0; }
for word in "$@"; do printf '%s\\0' "$word"; done > "$LAMP_CITY/.called"
pwd > "$LAMP_CITY/where"
n=1; while [ -e "$LAMP_CITY/called-$LAMP_RUN_ID.$n" ]; do n=$((n + 1)); done
mv "$LAMP_CITY/.called" "$LAMP_CITY/called-$LAMP_RUN_ID.$n"
echo '{"type":"thread.started","thread_id":"th-1"}'
until [ -e "$LAMP_CITY/go$LAMP_RUN_ID.$n" ]; do sleep 0.05; done
"""


async def puppet(loops: Loops, name: str, **keys: Any) -> None:
    """An automation whose agent program is the stand-in."""
    bin_ = loops.root / "bin"
    bin_.mkdir(exist_ok=True)
    (bin_ / "codex").write_text(PROGRAM)
    (bin_ / "codex").chmod(0o755)
    env = {"PATH": f"{bin_}:{os.environ['PATH']}", "HOME": str(loops.root)}
    known = (Configuration(name="own", preset="codex", env=env),)
    await loops.store.transact(configurations.sync, known, loops.clock.now())
    agent = {"prompt": "Light the lamps.", "configuration": "own", "mode": "full_access"} | keys.pop("agent", {})
    await loops.add(name, agent=agent, **keys)


def called(loops: Loops, run: str, number: int = 1) -> list[str]:
    """The words of that call of the program for the run."""
    return (loops.root / f"called-{run}.{number}").read_text().split("\0")[:-1]


async def until_called(loops: Loops, run: str, number: int = 1) -> list[str]:
    async def is_there() -> bool:
        await loops.parts.dispatcher.tick()
        await loops.parts.dispatcher.handling.all_done()
        return (loops.root / f"called-{run}.{number}").exists()

    await loops.until(is_there)
    return called(loops, run, number)


def let_go(loops: Loops, run: str, number: int = 1) -> None:
    """The program of that call ends by itself."""
    path: Path = loops.root / f"go{run}.{number}"
    path.touch()
