"""The metadata of sessions that have a record on disk."""

import asyncio
import contextlib

from lamplighter.adapters.sessions.records import Records
from lamplighter.domain.sessions.model import SessionName
from lamplighter.ports.sessions import SessionUnknown


class MetaOnRecord:
    """The part of a provider that keeps metadata beside its records."""

    _records: Records

    async def set_meta(self, name: SessionName, key: str, value: str) -> None:
        await asyncio.to_thread(self._records.change_meta, name, lambda kept: kept.update({key: value}))

    async def get_meta(self, name: SessionName, key: str) -> str:
        return self._records.meta(name).get(key, "") if self._records.read(name) else ""

    async def remove_meta(self, name: SessionName, key: str) -> None:
        with contextlib.suppress(SessionUnknown):
            await asyncio.to_thread(self._records.change_meta, name, lambda kept: kept.pop(key, None))
