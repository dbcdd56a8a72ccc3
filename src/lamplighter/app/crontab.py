"""The crontab of the user, as the program `crontab` shows it."""

from collections.abc import Mapping
from datetime import timedelta

from lamplighter.adapters.processes.child import Call, NotStarted, Output, run_child_here
from lamplighter.kit.errors import NotFound, Unavailable

LIMIT = timedelta(seconds=30)


def user_crontab(env: Mapping[str, str]) -> str:
    """Raises NotFound if there is none, Unavailable if it cannot be asked for."""
    try:
        ended = run_child_here(Call(("crontab", "-l"), None, env, LIMIT, output=Output.END))
    except NotStarted as error:
        raise Unavailable(
            "There is no program `crontab` here.", hint="Name a file: `lamp import cron FILE`, or `-` to read it."
        ) from error
    if ended.exit_code:
        raise NotFound("You have no crontab.", hint="`lamp import cron FILE` reads one from a file.")
    return ended.output.decode(errors="replace")
