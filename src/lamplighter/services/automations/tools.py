"""The automation service for agents' tools and the API."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamplighter.domain.access import Caller, Verb, require
from lamplighter.domain.acts import Act
from lamplighter.kit.clock import Clock
from lamplighter.kit.ids import IdSource
from lamplighter.services.automations import editing, outlook
from lamplighter.services.rules import Rules
from lamplighter.store.tx import Store, Tx

SOURCE = "agent"


@dataclass(frozen=True)
class ToolAutomations:
    """`rules` returns the rules in force."""

    store: Store
    clock: Clock
    ids: IdSource
    rules: Callable[[], Rules]

    async def automations(self, *, caller: Caller) -> Sequence[Mapping[str, Any]]:
        require(caller, Verb.READ)
        rules = self.rules()
        return [outlook.shape(one, rules) for one in await self.store.read(outlook.standings)]

    async def create(self, definition: Mapping[str, Any], *, caller: Caller) -> Mapping[str, Any]:
        """Create it disabled, whatever the definition says: a person must enable it."""
        require(caller, Verb.WRITE)
        rules, act = self.rules(), Act(caller.actor, self.clock.now(), caller.run)
        body = {**definition, "enabled": False}

        def create(tx: Tx) -> Mapping[str, Any]:
            row = editing.create(tx, body, source=SOURCE, rules=rules, ids=self.ids, act=act)
            return outlook.shape(outlook.standings(tx, row.scoped_name)[0], rules)

        return await self.store.transact(create)
