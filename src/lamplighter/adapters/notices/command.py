"""Notices by a command: a line for the shell that gets the notice as JSON on its standard input."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from lamplighter.adapters.processes.child import Call, NotStarted, Output, TookTooLong, run_child
from lamplighter.domain.city.sections import Destination
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import Unavailable
from lamplighter.ports.messenger import Message, NotTaken

LIMIT = timedelta(seconds=30)
_SHOWN = 200
_LONGEST = 64 << 10


def variables(message: Message) -> dict[str, str]:
    """What the command finds in its environment."""
    return {
        "LAMP_NOTICE_ID": message.id,
        "LAMP_NOTICE_WHAT": message.what,
        "LAMP_NOTICE_TEXT": _plain(message.body.get("sentence")),
        "LAMP_NOTICE_FIX": _plain(message.body.get("fix")),
        "LAMP_NOTICE_ABOUT": _plain(message.body.get("subject")),
        "LAMP_NOTICE_LINK": _plain(message.link),
    }


async def send(destination: Destination, message: Message, env: Mapping[str, str], root: Path) -> Mapping[str, Any]:
    """Raises NotTaken unless it exits with 0, Unavailable at its time limit: it may have told somebody by then."""
    told = {"id": message.id, "what": message.what, "city": message.city, "at": rfc3339(message.at), **message.body}
    if message.link:
        told["link"] = message.link
    call = Call(
        ("/bin/sh", "-c", destination.command),
        root,
        {**env, **variables(message)},
        LIMIT,
        stdin=json.dumps(told).encode(),
        output=Output.END,
        longest_output=_LONGEST,
        ends_helpers=True,
    )
    try:
        ended = await run_child(call)
    except NotStarted as error:
        raise NotTaken(f"The command of {destination.name} did not start: {error.reason}.") from error
    except TookTooLong as error:
        told_why = f"The command of {destination.name} took longer than {LIMIT.total_seconds():g} s and was ended."
        raise Unavailable(told_why, hint="Run it by hand to see what it waits for.") from error
    if ended.exit_code:
        said = " ".join(ended.output.decode(errors="replace").split())[-_SHOWN:]
        why = f"The command of {destination.name} ended with status {ended.exit_code}"
        raise NotTaken(
            f"{why}{f' and said: {said}' if said else ''}.", hint="Run it by hand with a notice on its standard input."
        )
    return {"exit": 0}


def _plain(value: Any) -> str:
    return str(value or "").replace("\0", "\ufffd")
