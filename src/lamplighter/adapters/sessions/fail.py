"""A provider whose every change fails, for drills of how a city behaves when nothing can be started."""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

from lamplighter.adapters.sessions.endings import Endings
from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.ports.sessions import GRACE, ProviderUnavailable, SessionUnknown, StartFailed


class FailProvider:
    async def start(self, spec: SessionSpec) -> Seen:
        raise StartFailed(
            spec.name, "the provider `fail` starts nothing", hint="Set another provider in [session] of city.toml."
        )

    async def stop(self, name: SessionName, *, grace: timedelta = GRACE) -> None:
        del grace
        _refuse("stop", name)

    async def interrupt(self, name: SessionName) -> None:
        _refuse("interrupt", name)

    async def nudge(self, name: SessionName, text: str) -> None:
        del text
        _refuse("nudge", name)

    async def send_keys(self, name: SessionName, *keys: str) -> None:
        del keys
        _refuse("send keys to", name)

    async def peek(self, name: SessionName, lines: int = 50) -> str:
        del name, lines
        return ""

    async def attach_command(self, name: SessionName) -> tuple[str, ...]:
        raise SessionUnknown(name)

    async def set_meta(self, name: SessionName, key: str, value: str) -> None:
        del key, value
        _refuse("mark", name)

    async def get_meta(self, name: SessionName, key: str) -> str:
        del name, key
        return ""

    async def remove_meta(self, name: SessionName, key: str) -> None:
        del key
        _refuse("mark", name)

    async def seen(self) -> Mapping[SessionName, Seen]:
        return {}

    async def see(self, name: SessionName) -> Seen | None:
        del name
        return None

    def ended(self) -> AsyncIterator[SessionName]:
        return Endings().listen()

    async def clear_scrollback(self, name: SessionName) -> None:
        _refuse("clear", name)

    async def copy_to(self, name: SessionName, source: Path, destination: str) -> None:
        del source, destination
        _refuse("copy to", name)

    async def cleanup(self) -> None:
        return

    async def close(self) -> None:
        return


def _refuse(verb: str, name: SessionName) -> NoReturn:
    raise ProviderUnavailable(f"The provider `fail` cannot {verb} session {name}.", hint="That is what it is for.")
