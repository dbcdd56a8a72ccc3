"""What the city's files declare, written into the store whole or not at all."""

from lamplighter.domain.automations.layers import Definitions
from lamplighter.domain.city.model import Configuration
from lamplighter.kit.records import record
from lamplighter.services import configurations
from lamplighter.services.automations.definitions import Synced, sync
from lamplighter.services.context import Context
from lamplighter.services.rules import Rules
from lamplighter.store.tx import Tx


@record
class Declared:
    """What the city's files declare and the store keeps for every process of the city."""

    configurations: tuple[Configuration, ...]
    definitions: Definitions
    rules: Rules


def write_declared(tx: Tx, declared: Declared, *, ctx: Context) -> Synced:
    """All of it in one transaction: a configuration is in force whole or not at all. May be repeated."""
    taken = configurations.sync(tx, declared.configurations, ctx.now)
    synced = sync(tx, declared.definitions, declared.rules, ctx=ctx)
    synced.taken = taken
    return synced
