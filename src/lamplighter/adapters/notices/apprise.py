"""Notices through any service that the library Apprise knows, where it is installed."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from lamplighter.adapters.notices import words
from lamplighter.domain.city.sections import Destination
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.limits import TimeLimit
from lamplighter.ports.messenger import Message, NotTaken

SECONDS = 30.0
INSTALL = "pip install 'lamplighter[apprise]'"


async def send(destination: Destination, message: Message, service: str) -> Mapping[str, Any]:
    """Raises NotTaken where Apprise is missing or does not know the service, Unavailable if the notice failed.

    Apprise does not tell a refusal from a lost answer, so that every failure leaves a doubt.
    """
    name = destination.name
    try:
        async with TimeLimit(SECONDS):
            taken = await asyncio.to_thread(_notify, name, service, words.title(message), words.text(message))
    except TimeoutError:
        told = f"{name} gave no answer within {SECONDS:g} s."
        raise Unavailable(told, hint="It is not known whether the notice arrived.") from None
    if not taken:
        told = f"{name} did not take it, as Apprise says."
        raise Unavailable(told, hint="Look at the service and at the address in its secret.")
    return {"status": "taken"}


def _notify(name: str, service: str, title: str, body: str) -> bool:
    try:
        import apprise  # an extra, and slow to import
    except ImportError:
        raise NotTaken(f"{name} needs Apprise, which is not installed.", hint=f"`{INSTALL}`") from None
    quiet = logging.getLogger("apprise")  # it warns of failures with what the service said; ours are kept, masked
    quiet.propagate = False
    if not quiet.handlers:
        quiet.addHandler(logging.NullHandler())
    sender = apprise.Apprise()
    if not sender.add(service):
        told = f"{name}: Apprise does not know the kind of address that its secret holds."
        raise NotTaken(told, hint="`lamp secret set` with an address as the documentation of Apprise writes it.")
    return bool(sender.notify(body=body, title=title, interpret_escapes=False))
