"""The web socket of an agent's terminal: tells what its screen shows and who is there, and takes what a person types.

Messages are JSON with a `kind`. Rights are those of the operations: to watch is to peek, to type is to take over first.
"""

import asyncio
import contextlib
import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from lamplighter.domain.access import Actor, Forbidden, Unauthenticated
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit import log
from lamplighter.kit.errors import LampError
from lamplighter.ports.sessions import Screen
from lamplighter.services.agents.queries import PEEK, SHOW, ShowAgent
from lamplighter.services.agents.taking_over import LET_GO, TAKE_OVER, LetGo, TakeOver
from lamplighter.services.agents.terminals import Present, Viewer, changed_rows
from lamplighter.services.city_operations import CityOperations
from lamplighter.web.auth import COOKIE_SECRET, actor_in
from lamplighter.web.held import AGAIN

PATH = "/agents/{name:path}/terminal"
SURFACE = "web"
_NOT_ALLOWED = 1008
_AGAIN_LATER = 1013
_GOES = 1012
_LONGEST_KEYS = 4096
"""Characters of keys in a message; a paste may be as long as a message."""


def route(city: CityOperations, signed_in: Callable[[str], bool] = lambda _secret: True) -> WebSocketRoute:
    """`signed_in`: whether the browser with this secret in its cookie still is."""

    async def endpoint(socket: WebSocket) -> None:
        actor = actor_in(socket.scope)
        try:
            shown = await city.do(SHOW, ShowAgent(socket.path_params["name"], 1), actor, surface=SURFACE, patient=False)
            session = SessionName(shown.session if shown.terminal and shown.session else "")
            viewer = city.host.terminals.join(
                city.host.sessions if session else None, session, city.ids.make("vwr"), actor.name
            )
        except LampError as error:
            await socket.accept()
            await socket.send_text(_text("refused", said=f"{error.message} {error.hint}".strip()))
            away = isinstance(error, Forbidden | Unauthenticated)
            await socket.close(_NOT_ALLOWED if away else _AGAIN_LATER)
            return
        secret = socket.scope.get(COOKIE_SECRET)
        here = _Conversation(city, socket, actor, shown.name, viewer, lambda: secret is None or signed_in(secret))
        await here.hold()

    return WebSocketRoute(PATH, endpoint)


@dataclass
class _Conversation:
    city: CityOperations
    socket: WebSocket
    actor: Actor
    name: str
    viewer: Viewer
    signed_in: Callable[[], bool]
    typing: bool = False
    screen: Screen | None = None
    people: tuple[tuple[Present, ...], int] | None = None
    state: str = ""

    async def hold(self) -> None:
        """Until one side leaves, the actor may not watch any more, or the daemon stops."""
        terminals = self.city.host.terminals
        work: list[asyncio.Task[Any]] = []
        code = _GOES
        try:
            await self.socket.accept()
            await self._say("hello", viewer=self.viewer.id)
            work = [
                asyncio.create_task(self._tell(), name="terminal tells"),
                asyncio.create_task(self._hear(), name="terminal hears"),
                asyncio.create_task(self.city.stopping.wait(), name="terminal stops"),
            ]
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                code = self._code(task, code)
        except (WebSocketDisconnect, RuntimeError):
            pass  # they left meanwhile
        finally:
            for task in work:
                task.cancel()
            if work:
                await asyncio.wait(work)
            try:
                await self._let_go()
            finally:
                await terminals.leave(self.viewer)
            with contextlib.suppress(Exception):  # it may be closed already
                await self.socket.close(code)

    def _code(self, task: "asyncio.Task[Any]", code: int) -> int:
        error = task.exception()
        if isinstance(error, Forbidden | Unauthenticated):
            return _NOT_ALLOWED
        if error is not None and not isinstance(error, WebSocketDisconnect | LampError):
            log.get().warning("web.terminal_ended", error=repr(error)[:300])
        return code

    # ── telling ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _tell(self) -> None:
        """Each time what is newest; a reader that is slow misses what was in between. Raises Forbidden, TokenVoid."""
        looked = self.city.clock.monotonic()
        while not self.city.stopping.is_set():
            await self.city.clock.wait(self.viewer.news, at_most=AGAIN)
            now = self.city.clock.monotonic()
            if now - looked >= AGAIN.total_seconds():
                with contextlib.suppress(_Away):
                    await self._may_still()
                looked = now
            if self.viewer.news.is_set():
                self.viewer.news.clear()
                await self._tell_news()

    async def _may_still(self) -> None:
        if not self.signed_in():
            raise Unauthenticated
        try:
            types = self.city.host.terminals.of(self.viewer).typist == self.viewer.id  # by whatever way they took over
            await self.city.still_may(TAKE_OVER if types else PEEK, self.actor)
        except (Forbidden, Unauthenticated):
            raise
        except LampError as error:
            raise _Away from error  # while the database is away, they stay what they were

    async def _tell_news(self) -> None:
        terminal = self.city.host.terminals.of(self.viewer)
        if terminal.looked:
            await self._tell_screen(terminal.screen, terminal.trouble)
        people = (terminal.present, terminal.screen.attached if terminal.screen is not None else 0)
        if people != self.people:
            self.people = people
            present = [
                {"who": one.who, "typing": one.typing, "you": one.id == self.viewer.id} for one in terminal.present
            ]
            await self._say("people", people=present, attached=people[1])
        if terminal.typist == self.viewer.id:
            self.typing = True
        elif self.typing:
            if terminal.typist is None:  # the session ended, or somebody had it let go
                await self._let_go()
            self.typing = False

    async def _tell_screen(self, screen: Screen | None, trouble: str) -> None:
        state = trouble or ("ended" if screen is None else screen.session_id)
        if state != self.state:
            first, self.state = not self.state, state
            if trouble:
                await self._say("trouble", said=trouble)
            elif screen is None:
                await self._say("ended")
            else:
                await self._say("began", again=not first)
        if screen is None or screen == self.screen:
            return
        rows = changed_rows(self.screen, screen)
        self.screen = screen
        await self._say(
            "screen",
            columns=screen.columns,
            lines=len(screen.rows),
            rows=rows,
            cursor=screen.cursor,
            cursor_shown=screen.cursor_shown,
            application_keys=screen.application_keys,
        )

    async def _say(self, kind: str, **values: Any) -> None:
        await self.socket.send_text(_text(kind, **values))

    # ── hearing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _hear(self) -> None:
        """One message after the other: the next one is read when what this one asks for is done."""
        async for text in self.socket.iter_text():
            try:
                await self._do(_said(text))
            except Unauthenticated:
                raise
            except LampError as error:
                await self._say("refused", said=f"{error.message} {error.hint}".strip())

    async def _do(self, said: Mapping[str, Any]) -> None:
        data = said.get("data")
        match said.get("kind"):
            case "take":
                await self.city.do(TAKE_OVER, TakeOver(self.name, self.viewer.id), self.actor, **_OURS)
                self.typing = True
            case "let-go":
                await self._let_go()
            case "keys" if isinstance(data, str) and len(data) <= _LONGEST_KEYS:
                await self.city.host.terminals.type(self.viewer, data, paste=False)
            case "paste" if isinstance(data, str):
                await self.city.host.terminals.type(self.viewer, _plain(data), paste=True)
            case _:
                await self._say("refused", said="That was not understood. Load the page again.")

    async def _let_go(self) -> None:
        """On record as what this person did, also where their page is closed or their session has ended."""
        if not self.typing:
            return
        self.typing = False
        with contextlib.suppress(LampError):  # who leaves lets go in any case
            await self.city.do(LET_GO, LetGo(self.name, self.viewer.id), self.actor, **_OURS)


class _Away(Exception):
    """The database cannot be asked."""


_OURS: Mapping[str, Any] = {"surface": SURFACE, "patient": False}


def _text(kind: str, **values: Any) -> str:
    return json.dumps({"kind": kind, **values}, ensure_ascii=False)


def _said(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _plain(text: str) -> str:
    """Without control characters, which could end the paste or be commands to the terminal."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(one for one in lines if one in "\n\t" or unicodedata.category(one) not in {"Cc", "Cs"})
