"""The fake provider keeps the contract, so tests that use it can be believed."""

import pytest

from lamplighter.adapters.sessions.fake import FakeProvider, FakeSession, FakeWorld
from lamplighter.domain.sessions.meta import ENV_SESSION, ENV_SESSION_ID
from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.testing.contracts.sessions import SessionContract


def _obey(provider: FakeProvider, session: FakeSession, text: str) -> None:
    """What the puppet program does, without a process."""
    verb, _, rest = text.partition(" ")
    match verb:
        case "say":
            session.output.append(f"said {rest}")
        case "env":
            known = {ENV_SESSION: session.spec.name, ENV_SESSION_ID: session.seen.session_id}
            session.output.append(f"env {rest} is {known.get(rest, '')}")
        case "count":
            session.output.extend(f"line {number}" for number in range(1, int(rest) + 1))
        case "exit":
            provider.end(session.spec.name, int(rest))
        case "\x03":
            session.output.append("interrupted")
        case _:
            session.output.append(text)


class _PuppetProvider(FakeProvider):
    async def start(self, spec: SessionSpec) -> Seen:
        seen = await super().start(spec)
        session = self._must(SessionName(spec.name))
        session.output[:0] = ["ready"] if spec.takes_input else ["ready", "end-of-input"]
        return seen


class FakeCities:
    def __init__(self) -> None:
        self._world = FakeWorld()

    def open(self, city: str = "first") -> FakeProvider:
        clock = SystemClock()
        provider = _PuppetProvider(clock, IdSource(clock), city=city, world=self._world, program=_obey)
        provider.missing_programs.add("no-such-program-anywhere")
        return provider


class TestFake(SessionContract):
    @pytest.fixture
    def cities(self) -> FakeCities:
        return FakeCities()
