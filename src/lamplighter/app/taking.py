"""A run that a person has taken: waiting until it is theirs, and opening its program in their terminal."""

import contextlib
import os
import shlex
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from lamplighter.adapters.files.run_workshop import FileRunWorkshop
from lamplighter.app.controller_view import controller_view
from lamplighter.app.fronts import with_fronts
from lamplighter.app.secrets import box_of
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.run_plan import RunPlan
from lamplighter.domain.runs.model import Run
from lamplighter.domain.runs.prompt import Turn
from lamplighter.kit.errors import Conflict, Unavailable, UsageError
from lamplighter.ports.run_workshop import RunOrder
from lamplighter.services.runs import planning, review, turns
from lamplighter.services.runs.taking import NothingToTake, handed_over
from lamplighter.services.secret_values import filled
from lamplighter.store.tx import Tx

HANDED_OVER_WITHIN = timedelta(seconds=60)
_LOOK_S = 0.1
_TO_TMUX = r"""
if tmux has-session -t "=$1" 2>/dev/null; then rm -f -- "$2"
else tmux new-session -d -s "$1" /bin/sh "$2" || { rm -f -- "$2"; exit 1; }; fi
if [ -n "$3" ]; then exec tmux "$3" -t "=$1"; fi
echo "It is opened in tmux: \`tmux attach -t $1\` shows it." >&2
"""


class OpenElsewhere(Conflict):
    def __init__(self, run: str) -> None:
        super().__init__(
            f"The program of run {run} is open in a terminal already.", hint="Go on there, or close it first."
        )


@dataclass(frozen=True)
class Opening:
    """How the program of a taken run is opened: `resumed` says that it goes on with its conversation."""

    run: str
    directory: Path
    command: tuple[str, ...]
    env: dict[str, str]
    resumed: bool


def until_yours(city: OpenCity, run: str, within: timedelta = HANDED_OVER_WITHIN) -> Run:
    """The run, once its program has ended. Raises NothingToTake if it ended by itself, Unavailable after `within`."""
    until = time.monotonic() + within.total_seconds()
    while True:
        row = city.store.read(review.get, run)
        if row.ended:
            raise NothingToTake(row, f"it ended as {row.state} meanwhile")
        if handed_over(row):
            return row
        if time.monotonic() > until:
            raise Unavailable(
                f"Run {run} is yours, but its program has not been ended yet.",
                hint="The daemon does that: if none is up, start it with `lamp up`. Then take the run again.",
            )
        time.sleep(_LOOK_S)


def opening(city: OpenCity, row: Run) -> Opening:
    """Lay out what the program needs to go on in a terminal.

    Raises CannotRun, NothingToTake, OSError; SecretUnknown and SecretLocked for a secret of its environment.
    """
    config = city.config.city
    workshop = _workshop(city)
    chosen = city.store.read(planning.chosen, row)
    plan = planning.plan_of(config, row, chosen, workshop.installed)
    place = Path((row.worktree or {}).get("work_dir") or (row.worktree or {}).get("path") or plan.directory)
    if not place.is_dir():
        raise NothingToTake(row, f"{place} is not on this machine", hint=f"Take it on its node, {row.node}.")
    order = city.store.read(_order, row, plan, place, controller_view(city).api)
    spec, box = workshop.prepare(config, order).spec, box_of(city)
    secrets = city.store.read(lambda tx: tx.secrets.all())
    opened = filled(spec.env, secrets, lambda secret: box.open(secret.name, secret.sealed))
    return Opening(row.id, place, spec.command, {**city.settings.env, **opened}, bool(order.turn.resume))


def _order(tx: Tx, row: Run, plan: RunPlan, place: Path, api_url: str | None) -> RunOrder:
    resume = turns.resumed(tx, row, plan.preset)
    trigger, notes, cursor = review.trigger_of(tx, row), turns.notes_of(tx, row), turns.cursor_of(tx, row)
    turn = Turn(row.round, resume=resume)
    return RunOrder(row.id, row.automation, plan, trigger, place, api_url, turn, notes, cursor, by_hand=True)


def open_here(city: OpenCity, found: Opening) -> None:
    """Become the program, which keeps the run marked as open while it lives. Raises OpenElsewhere, Unavailable."""
    if _workshop(city).hold_open(found.run) is None:
        raise OpenElsewhere(found.run)
    city.close()
    sys.stdout.flush()
    try:
        os.chdir(found.directory)
        os.execvpe(found.command[0], list(found.command), found.env)  # noqa: S606  the program takes over the terminal
    except OSError as error:
        raise Unavailable(f"{found.command[0]} cannot be started: {error.strerror}.") from error


def need_tmux() -> None:
    """Raises UsageError."""
    if shutil.which("tmux") is None:
        raise UsageError("tmux is not on the path.", hint="Leave out --tmux, or install it.")


def in_tmux(city: OpenCity, run: str, session: str) -> None:
    """Become what has the run taken in a tmux session of that name, or goes to the one that is there.

    Without a terminal it is only opened.
    """
    script = _taking_script(city, run)
    show = "switch-client" if city.settings.env.get("TMUX") else "attach-session"
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        show = ""
    city.close()
    os.execv("/bin/sh", ["/bin/sh", "-c", _TO_TMUX, "lamp", session, str(script), show])  # noqa: S606  it takes over the terminal


def _taking_script(city: OpenCity, run: str) -> Path:
    """A file that only its owner can read, and that removes itself: the environment may hold secrets, which must not be
    words of a command. A tmux server that runs already gives its own environment to whatever it starts.
    """
    lamp = shlex.join([sys.executable, "-m", "lamplighter", "--city", str(city.paths.root), "run", "take", run])
    own = {"TERM", "TMUX", "TMUX_PANE"}  # the terminal's, and not this process's
    named = {key: value for key, value in city.settings.env.items() if key.isidentifier() and key not in own}
    lines = ['rm -f -- "$0"', *(f"export {key}={shlex.quote(value)}" for key, value in named.items())]
    lines.append(f"{lamp} || {{ printf 'Press Enter to close this.'; read -r _; }}")
    fd, path = tempfile.mkstemp(dir=city.paths.runtime, prefix="take-", suffix=".sh")
    with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write("\n".join(lines) + "\n")
    return Path(path)


def is_open(city: OpenCity, run: str) -> bool:
    with contextlib.suppress(OSError):
        return _workshop(city).is_open(run)
    return False


def _workshop(city: OpenCity) -> FileRunWorkshop:
    return FileRunWorkshop(city.paths.runtime, with_fronts(city, city.config.city))
