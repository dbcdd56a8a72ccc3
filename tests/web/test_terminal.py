"""The web socket of an agent's terminal, over a real port and with a real tmux: who may, who is there, what is seen."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from httpx2.websockets import WebSocketDisconnect, WebSocketUpgradeError
from served import Served, served
from test_people import token_of

from lamplighter.domain.access import Actor, Role, Verb, owner
from lamplighter.domain.sessions.model import SessionName, SessionSpec
from lamplighter.services.agents import terminals
from lamplighter.services.agents.queries import LIST, ListAgents
from lamplighter.services.agents.taking_over import TAKE_OVER, TakeOver
from lamplighter.services.secrets import SET, SetSecret
from lamplighter.services.table import find

PROGRAM = ("sh", "-c", "stty -echo; echo ready; while read line; do echo heard $line; done")
PATIENCE_S = 30
MAYOR = SessionName("mayor")
OWNER = owner("human")


@dataclass
class Watcher:
    """A browser that watches; `rows` is what its screen shows."""

    session: Any
    rows: dict[int, str]
    people: list[dict[str, Any]]

    async def hear(self, kind: str) -> dict[str, Any]:
        """The next message of that kind."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                said = json.loads(await self.session.receive_text())
                if said["kind"] == "screen":
                    self.rows |= {int(at): row for at, row in said["rows"].items()}
                if said["kind"] == "people":
                    self.people = said["people"]
                if said["kind"] == kind:
                    return dict(said)

    async def see(self, text: str) -> str:
        while text not in self.screen:
            await self.hear("screen")
        return self.screen

    @property
    def screen(self) -> str:
        return "\n".join(row for _, row in sorted(self.rows.items()))

    async def say(self, kind: str, **values: Any) -> None:
        await self.session.send_text(json.dumps({"kind": kind, **values}))

    async def typing(self, *, you: bool = True) -> None:
        """Wait until this one is told that they type, or that another one does."""
        while you not in [one["you"] for one in self.people if one["typing"]]:
            await self.hear("people")


@asynccontextmanager
async def watching(
    city: Served, headers: dict[str, str], path: str = "/agents/mayor/terminal"
) -> AsyncIterator[Watcher]:
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as client,
        client.websocket(city.url.replace("http", "ws", 1) + path, headers=headers) as session,
    ):
        yield Watcher(session, {}, [])


@pytest.fixture
async def city(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path / "town") as made:
        sessions = made.operations.host.sessions
        await sessions.start(SessionSpec(MAYOR, PROGRAM, str(tmp_path), {"PATH": os.environ["PATH"]}))
        try:
            yield made
        finally:
            await sessions.stop(MAYOR)
            await sessions.close()


def audited(city: Served) -> list[tuple[str, str]]:
    rows = city.opened.store.read(lambda tx: tx.audit.page())
    return [(row.actor, row.operation) for row in rows if row.operation in {"agent.take-over", "agent.let-go"}]


async def test_one_watches_takes_over_types_pastes_and_lets_go(city: Served) -> None:
    async with watching(city, city.owner) as ada:
        await ada.see("ready")
        await ada.say("keys", data="early\r")
        assert "only watch" in (await ada.hear("refused"))["said"]
        await ada.say("take")
        await ada.typing()
        await ada.say("keys", data="a; 'ö' #{x}\r")
        await ada.see("heard a; 'ö' #{x}")
        await ada.say("paste", data="from the \x1b[201~clipboard")
        await ada.say("keys", data="\r")
        await ada.see("heard from the [201~clipboard")
        assert "early" not in ada.screen
        seen = await city.operations.do(LIST, ListAgents(), OWNER, surface="test")
        assert [one.attached for one in seen if one.name == "mayor"] == [True]
        await ada.say("let-go")
        while any(one["typing"] for one in ada.people):
            await ada.hear("people")
    assert [operation for _, operation in audited(city)] == ["agent.let-go", "agent.take-over"]


async def test_who_takes_over_leaves_the_other_watching(city: Served) -> None:
    async with watching(city, city.owner) as ada:
        await ada.see("ready")
        await ada.say("take")
        await ada.typing()
        async with watching(city, token_of(city, Role.ADMIN)) as ben:
            await ben.see("ready")
            await ben.say("take")
            await ben.typing()
            await ada.typing(you=False)
            await ada.say("keys", data="mine\r")
            assert "only watch" in (await ada.hear("refused"))["said"]
        while len(ada.people) > 1:
            await ada.hear("people")
    assert audited(city)[0] == ("admin", "agent.let-go")


async def test_a_member_watches_and_is_refused_the_keyboard(city: Served) -> None:
    member = token_of(city, Role.MEMBER)
    async with watching(city, member) as carl:
        await carl.see("ready")
        await carl.say("take")
        assert "may not control agents" in (await carl.hear("refused"))["said"]
        await carl.say("keys", data="x\r")
        assert "only watch" in (await carl.hear("refused"))["said"]
    assert audited(city) == []
    page = await city.call("GET", "/agents/mayor", headers=member)
    assert 'title="A member may not control agents; an admin or owner may."' in page.text
    assert "data-take" in page.text


async def test_who_took_over_by_the_api_must_go_on_having_the_right(city: Served) -> None:
    """They watch with a token that may only read, and took over with another one."""
    async with watching(city, token_of(city, Role.ADMIN, Verb.READ)) as ada:
        viewer = (await ada.hear("hello"))["viewer"]
        await ada.see("ready")
        admin = Actor("admin", Role.ADMIN)
        await city.operations.do(TAKE_OVER, TakeOver("mayor", viewer), admin, surface="test")
        with pytest.raises(WebSocketDisconnect) as ended:
            await ada.hear("never")
        assert ended.value.code == 1008


async def test_who_may_not_read_watches_nothing(city: Served) -> None:
    async with watching(city, token_of(city, Role.MEMBER, Verb.WRITE_BEADS)) as carl:
        assert "may not read" in (await carl.hear("refused"))["said"]
        with pytest.raises(WebSocketDisconnect) as ended:
            await carl.hear("hello")
        assert ended.value.code == 1008


@pytest.mark.parametrize(
    "headers",
    [{}, {"Origin": "http://elsewhere.example"}, {"Host": "elsewhere.example"}, {"Cookie": "lamp-x=1"}],
)
async def test_strangers_and_other_sites_are_refused(city: Served, headers: dict[str, str]) -> None:
    shown = {**(city.owner if "Origin" in headers or "Host" in headers else {}), **headers}
    with pytest.raises((WebSocketUpgradeError, ExceptionGroup)):
        async with watching(city, shown):
            pass


async def test_rubbish_is_told_and_a_message_that_is_too_long_ends_it(city: Served) -> None:
    async with watching(city, city.owner) as ada:
        for rubbish in ("", "[]", "{", '{"kind": 3}', '{"kind": "keys"}', '{"kind": "keys", "data": 7}'):
            await ada.session.send_text(rubbish)
            assert "not understood" in (await ada.hear("refused"))["said"]
        await ada.say("paste", data="x" * (70 << 10))
        with pytest.raises(WebSocketDisconnect) as ended:
            await ada.hear("never")
        assert ended.value.code == 1009


async def test_a_secret_on_the_screen_is_masked(city: Served) -> None:
    secret = "correct-horse-battery-staple"  # noqa: S105  a made-up one
    await city.operations.do(SET, SetSecret("TOKEN", secret), OWNER, surface="test")
    async with watching(city, city.owner) as ada:
        await ada.see("ready")
        await ada.say("take")
        await ada.typing()
        await ada.say("keys", data=f"\x1b[31mwith {secret} in it\r")
        await ada.see("in it")
        assert secret not in ada.screen


async def test_the_end_of_the_session_is_told_and_its_typist_lets_go(city: Served) -> None:
    async with watching(city, city.owner) as ada:
        await ada.see("ready")
        await ada.say("take")
        await ada.typing()
        await ada.say("keys", data="\x04")
        await ada.hear("ended")
        await ada.say("take")
        assert "Nothing runs" in (await ada.hear("refused"))["said"]


async def test_a_server_that_stops_says_that_one_may_come_again(city: Served) -> None:
    async with watching(city, city.owner) as ada:
        await ada.see("ready")
        city.operations.stopping.set()
        with pytest.raises(WebSocketDisconnect) as ended:
            await ada.hear("never")
        assert ended.value.code == 1012


async def test_only_so_many_watch(city: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminals, "MOST_VIEWERS", 1)
    async with watching(city, city.owner) as ada:
        await ada.see("ready")
        async with watching(city, city.owner) as ben:
            await ben.hear("refused")


async def test_a_policy_with_a_nonce_for_the_terminal_s_page_only(city: Served) -> None:
    here = await city.call("GET", "/agents/mayor", headers=city.owner)
    there = await city.call("GET", "/agents", headers=city.owner)
    again = await city.call("GET", "/agents/mayor", headers=city.owner)
    assert "'nonce-" in here.headers["content-security-policy"]
    assert here.headers["content-security-policy"] != again.headers["content-security-policy"]
    assert "nonce" not in there.headers["content-security-policy"]
    assert "terminal.js" not in there.text


def test_taking_over_and_letting_go_ask_for_the_right_to_control_agents() -> None:
    assert {find(name).verb for name in ("agent.take-over", "agent.let-go")} == {Verb.CONTROL_AGENTS}
