"""The provider for drills: nothing can be started, and it says so."""

import pytest

from lamplighter.adapters.sessions.fail import FailProvider
from lamplighter.domain.sessions.model import SessionName, SessionSpec
from lamplighter.kit.errors import LampError
from lamplighter.ports.sessions import StartFailed

ALPHA = SessionName("alpha")


async def test_every_change_fails_with_a_hint_and_every_look_is_empty() -> None:
    provider = FailProvider()
    with pytest.raises(StartFailed) as failed:
        await provider.start(SessionSpec(ALPHA, ("true",), "/"))
    assert failed.value.hint
    for change in (
        provider.stop(ALPHA), provider.interrupt(ALPHA), provider.nudge(ALPHA, "x"), provider.send_keys(ALPHA, "x"),
        provider.set_meta(ALPHA, "k", "v"), provider.remove_meta(ALPHA, "k"), provider.clear_scrollback(ALPHA),
        provider.attach_command(ALPHA),
    ):  # fmt: skip
        with pytest.raises(LampError):
            await change
    assert (await provider.seen(), await provider.peek(ALPHA), await provider.get_meta(ALPHA, "k")) == ({}, "", "")
