"""Opening secrets: for the environment of a program that is started, and to mask them in what is shown."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lamplighter.domain.secrets import SecretLocked, SecretUnknown, is_name, masking, references
from lamplighter.kit.errors import Unavailable
from lamplighter.ports.secrets import SecretBox
from lamplighter.store.secrets import SecretRow
from lamplighter.store.tx import Store


@dataclass
class StoredSecrets:
    """The secrets of the city's store. A value that was opened once is kept as long as its row is the same."""

    store: Store
    box: SecretBox
    _values: dict[tuple[str, str], str] = field(default_factory=dict)

    async def opened(self, env: Mapping[str, str]) -> dict[str, str]:
        if not references(env):
            return dict(env)
        rows = await self._rows()
        return await asyncio.to_thread(filled, env, rows, self._value)

    async def values(self, rows: Sequence[SecretRow]) -> list[str]:
        """Raises SecretLocked."""
        if all((row.name, row.nonce) in self._values for row in rows):
            return [self._value(row) for row in rows]
        return await asyncio.to_thread(lambda: [self._value(row) for row in rows])

    async def mask(self) -> Callable[[str], str]:
        """While the database is away, the values that this process has opened are masked."""
        try:
            rows = await self._rows()
        except Unavailable:
            return masking(self._values.values())
        if not rows and not self._values:
            return masking(())
        # Values that were replaced or deleted meanwhile are masked too: programs that were given them may still run.
        return masking({*await asyncio.to_thread(self._all, rows), *self._values.values()})

    async def _rows(self) -> list[SecretRow]:
        return await self.store.read(lambda tx: tx.secrets.all())

    def _all(self, rows: list[SecretRow]) -> list[str]:
        """Those that can be opened here: only their values can have been given to a program here."""
        values = []
        for row in rows:
            try:
                values.append(self._value(row))
            except SecretLocked:
                continue
        return values

    def _value(self, row: SecretRow) -> str:
        key = (row.name, row.nonce)
        if key not in self._values:
            self._values[key] = self.box.open(row.name, row.sealed)
        return self._values[key]


def filled(env: Mapping[str, str], rows: Sequence[SecretRow], value: Callable[[SecretRow], str]) -> dict[str, str]:
    """The variables, each that names a secret with its value in place. Raises SecretUnknown, SecretLocked."""
    known = {row.name: row for row in rows if is_name(row.name)}  # those of connections are given to no program
    named = references(env)
    for secret in named.values():
        if secret not in known:
            raise SecretUnknown(secret, list(known))
    return dict(env) | {name: value(known[secret]) for name, secret in named.items()}
