"""An edit of city.toml and what is recorded of it: the file is put back if the store does not take the record."""

from collections.abc import Callable
from typing import TypeVar

from lamplighter.kit.errors import LampError
from lamplighter.kit.threads import in_thread
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.ports.city_files import Edited
    from lamplighter.services.host import Host

R = TypeVar("R")


async def recorded(host: "Host", edited: "Edited | None", record: Callable[[Tx], R]) -> R:
    """Carry out `record` in a transaction; whoever hears that it failed finds the file as it was. Raises LampError."""
    try:
        return await host.store.transact(record)
    except LampError:
        if edited is not None and edited.changed:
            await in_thread(edited.undo)
        raise
