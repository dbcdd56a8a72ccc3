"""Terminals that several people watch: who is there, who types, and when what is shown is looked at and told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.errors import Conflict, NotFound, Unavailable
from lamplighter.ports.sessions import Screen
from lamplighter.services.agents.terminals import (
    AFTER_TROUBLE,
    BETWEEN,
    MASK_LASTS,
    MOST_VIEWERS,
    NotTyping,
    Terminals,
    TooManyWatch,
    Viewer,
)
from lamplighter.testing.clock import FakeClock

MAYOR, CODER = SessionName("mayor"), SessionName("coder")
LIT = Screen("ses_1", 20, ("lit",), "lit", (0, 0), True, False, 0)
INSTANT = timedelta(milliseconds=1)


class Shown:
    """A provider whose sessions all show the same screen."""

    def __init__(self) -> None:
        self.screen: Screen | None = LIT
        self.trouble: Exception | None = None
        self.looks = 0
        self.typed: list[tuple[str, object]] = []
        self.occupied: list[tuple[str, bool]] = []

    async def terminal_screen(self, _name: SessionName) -> Screen | None:
        self.looks += 1
        if self.trouble is not None:
            raise self.trouble
        return self.screen

    async def terminal_keys(self, name: SessionName, data: bytes) -> None:
        self.typed.append((name, data))

    async def terminal_paste(self, name: SessionName, text: str) -> None:
        self.typed.append((name, text))

    def occupy(self, name: SessionName, *, by_person: bool) -> None:
        self.occupied.append((name, by_person))


class Watched:
    """The terminals of a city, and short ways to watch them and to let time pass."""

    def __init__(self) -> None:
        self.clock, self.shown = FakeClock(), Shown()
        self.masks: list[str] = []
        self.terminals = Terminals(self.clock, self._mask)

    async def _mask(self) -> Callable[[str], str]:
        self.masks.append(f"mask {len(self.masks) + 1}")
        return str

    async def join(self, who: str, session: SessionName = MAYOR) -> Viewer:
        """Watch, and see the first screen."""
        before = self.shown.looks
        joined = self.terminals.join(self.shown, session, f"v-{who}", who)
        if self.terminals.of(joined).screen is None:
            await self._looked_at(before)
        return joined

    def take(self, who: str) -> str | None:
        return self.terminals.take(MAYOR, f"v-{who}", who)

    async def later(self, by: timedelta = BETWEEN) -> None:
        """Until the screen was looked at again, by which time has passed."""
        before = self.shown.looks
        self.clock.advance(by)
        await self._looked_at(before)

    async def _looked_at(self, before: int) -> None:
        async with asyncio.timeout(30):
            while self.shown.looks == before:  # noqa: ASYNC110  each turn of the event loop, without any time
                await asyncio.sleep(0)
        await self.clock.sleepers()

    async def is_left_alone(self, by: timedelta) -> bool:
        """Whether nobody looks at the screen in that time."""
        before = self.shown.looks
        self.clock.advance(by)
        for _ in range(50):
            await asyncio.sleep(0)
        return self.shown.looks == before

    def people(self) -> list[tuple[str, bool]]:
        return [(one.who, one.typing) for one in self.terminals.present(MAYOR)]


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    made = Watched()
    yield made
    await made.terminals.close()


def news(viewer: Viewer) -> bool:
    """Whether there was something new since this was asked last."""
    found = viewer.news.is_set()
    viewer.news.clear()
    return found


async def test_a_session_without_a_terminal_is_not_watched(watched: Watched) -> None:
    with pytest.raises(Conflict, match="no terminal"):
        watched.terminals.join(object(), MAYOR, "v-1", "ada")
    assert watched.people() == []


async def test_of_all_terminals_together_so_many_are_watched_and_no_more(watched: Watched) -> None:
    first = [
        watched.terminals.join(watched.shown, (MAYOR, CODER)[number % 2], f"v-{number}", "ada")
        for number in range(MOST_VIEWERS)
    ]
    with pytest.raises(TooManyWatch):
        watched.terminals.join(watched.shown, MAYOR, "v-more", "ben")
    await watched.terminals.leave(first[1])
    assert watched.terminals.join(watched.shown, MAYOR, "v-more", "ben").who == "ben"


async def test_only_who_watches_types_and_takes_over_from_whoever_did(watched: Watched) -> None:
    await watched.join("ada")
    await watched.join("ben")
    assert watched.people() == [("ada", False), ("ben", False)]
    for session, viewer, who in ((CODER, "v-ada", "ada"), (MAYOR, "v-cy", "cy"), (MAYOR, "v-ada", "ben")):
        with pytest.raises(NotFound):
            watched.terminals.take(session, viewer, who)
    assert watched.shown.occupied == []
    assert (watched.take("ada"), watched.take("ada"), watched.people()) == (None, None, [("ada", True), ("ben", False)])
    assert (watched.take("ben"), watched.people()) == ("ada", [("ada", False), ("ben", True)])
    assert watched.shown.occupied == [(MAYOR, True)] * 3


async def test_nobody_takes_over_where_nothing_runs(watched: Watched) -> None:
    watched.shown.screen = None
    viewer = watched.terminals.join(watched.shown, MAYOR, "v-ada", "ada")
    async with asyncio.timeout(30):
        await viewer.news.wait()
    with pytest.raises(Conflict, match="Nothing runs"):
        watched.take("ada")
    assert watched.shown.occupied == []


async def test_the_keyboard_is_let_go_of_by_who_has_it_by_anybody_who_may_and_by_leaving(watched: Watched) -> None:
    ada, ben = await watched.join("ada"), await watched.join("ben")
    assert watched.terminals.let_go(MAYOR, None) is None
    assert watched.terminals.let_go(CODER, None) is None
    watched.take("ada")
    assert watched.terminals.let_go(MAYOR, "v-ben") is None
    assert watched.people() == [("ada", True), ("ben", False)]
    assert watched.terminals.let_go(MAYOR, "v-ada") == "ada"
    watched.take("ada")
    assert watched.terminals.let_go(MAYOR, None) == "ada"
    assert (watched.people(), watched.shown.occupied[-1]) == ([("ada", False), ("ben", False)], (MAYOR, False))
    watched.take("ada")
    await watched.terminals.leave(ben)
    assert (watched.people(), watched.shown.occupied[-1]) == ([("ada", True)], (MAYOR, True))
    await watched.terminals.leave(ada)
    assert watched.shown.occupied[-1] == (MAYOR, False)
    before = len(watched.shown.occupied)
    await watched.terminals.leave(ada)
    assert len(watched.shown.occupied) == before
    with pytest.raises(NotFound):
        watched.terminals.of(ada)


async def test_only_the_typist_s_keys_and_texts_arrive_and_are_seen_at_once(watched: Watched) -> None:
    ada, ben = await watched.join("ada"), await watched.join("ben")
    watched.take("ada")
    with pytest.raises(NotTyping):
        await watched.terminals.type(ben, "rm", paste=False)
    looks = watched.shown.looks
    await watched.terminals.type(ada, "ö\r", paste=False)
    await watched.terminals.type(ada, "a text", paste=True)
    assert watched.shown.typed == [(MAYOR, "ö\r".encode()), (MAYOR, "a text")]
    await watched._looked_at(looks)  # without any time that passes
    await watched.terminals.leave(ada)
    with pytest.raises(NotFound):
        await watched.terminals.type(ada, "late", paste=False)


@pytest.mark.parametrize("after", [None, replace(LIT, session_id="ses_2")], ids=["none", "another"])
async def test_who_typed_into_a_session_types_into_no_other(watched: Watched, after: Screen | None) -> None:
    ada = await watched.join("ada")
    watched.take("ada")
    watched.shown.screen = replace(LIT, text="on", rows=("on",))
    await watched.later()
    assert watched.people() == [("ada", True)]
    watched.shown.screen = after
    await watched.later()
    assert (watched.people(), watched.shown.occupied[-1]) == ([("ada", False)], (MAYOR, False))
    with pytest.raises(NotTyping):
        await watched.terminals.type(ada, "y\r", paste=False)


async def test_those_who_watch_are_told_of_what_changed_and_of_nothing_else(watched: Watched) -> None:
    ada = await watched.join("ada")
    assert news(ada)
    await watched.later()
    assert not news(ada)
    watched.shown.screen = replace(LIT, text="out", rows=("out",))
    await watched.later()
    assert news(ada)
    ben = await watched.join("ben")
    assert (news(ada), news(ben)) == (True, True)
    watched.take("ben")
    assert news(ada)
    watched.terminals.let_go(MAYOR, "v-ada")
    assert not news(ada)
    watched.terminals.let_go(MAYOR, "v-ben")
    assert news(ada)
    await watched.terminals.leave(ben)
    assert news(ada)


@pytest.mark.parametrize(
    ("trouble", "told"),
    [(Unavailable("tmux is busy."), "tmux is busy."), (ValueError("a bug"), "Its screen cannot be looked at.")],
)
async def test_trouble_is_told_once_beside_the_last_screen_and_looked_at_again_more_slowly(
    watched: Watched, trouble: Exception, told: str
) -> None:
    ada = await watched.join("ada")
    watched.shown.trouble = trouble
    await watched.later()
    news(ada)
    terminal = watched.terminals.of(ada)
    assert (terminal.trouble, terminal.screen) == (told, LIT)
    assert await watched.is_left_alone(AFTER_TROUBLE - INSTANT)
    await watched.later(INSTANT)
    assert not news(ada)
    watched.shown.trouble = None
    await watched.later(AFTER_TROUBLE)
    assert (terminal.trouble, news(ada)) == ("", True)


async def test_the_city_s_secrets_are_asked_for_again_after_a_while(watched: Watched) -> None:
    await watched.join("ada")
    await watched.later(MASK_LASTS - INSTANT)
    assert watched.masks == ["mask 1"]
    await watched.later(BETWEEN)
    assert watched.masks == ["mask 1", "mask 2"]
    await watched.later(BETWEEN)
    assert watched.masks == ["mask 1", "mask 2"]


async def test_a_terminal_is_looked_at_while_somebody_watches_and_not_after(watched: Watched) -> None:
    ada, ben = await watched.join("ada"), await watched.join("ben")
    await watched.terminals.leave(ada)
    await watched.later()
    await watched.terminals.leave(ben)
    assert await watched.is_left_alone(AFTER_TROUBLE)
    cy = await watched.join("cy")
    await watched.terminals.close()
    assert watched.people() == []
    with pytest.raises(NotFound):
        watched.terminals.of(cy)
