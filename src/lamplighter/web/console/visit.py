"""A request for a page: what it asks of the city, and how its answer is made."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from lamplighter.domain.access import RIGHTS, Actor, Role
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.shapes import to_json
from lamplighter.kit.short_ids import shortened
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.operation import Operation
from lamplighter.services.status import SHOW_STATUS, ShowStatus
from lamplighter.services.status_views import StatusView
from lamplighter.services.table import find
from lamplighter.web.auth import actor_in, cookie_in
from lamplighter.web.bodies import bounded, can_be_kept
from lamplighter.web.console import ansi, words
from lamplighter.web.console.kept import kept_views
from lamplighter.web.errors import status_of

Q = TypeVar("Q")
A = TypeVar("A")

HERE = Path(__file__).parent
SURFACE = "web"
NAV = (
    ("/", "Home", "h"), ("/inbox", "Inbox", "i"), ("/runs", "Runs", "r"), ("/automations", "Automations", "a"),
    ("/agents", "Agents", "s"), ("/calendar", "Calendar", "c"), ("/beads", "Beads", "b"), ("/events", "Events", "e"),
    ("/deliveries", "Deliveries", "d"), ("/nodes", "Nodes", "n"), ("/settings", "Settings", ","),
)  # fmt: skip
"""Address, name and key of the pages one goes to; the key follows `g`."""
THEME_COOKIE = "lamp-theme"
KEYS_COOKIE = "lamp-keys"
"""`off` in a browser whose user wants no single keys: what they dictate would press them (WCAG 2.1.4)."""
ZONE_COOKIE = "lamp-zone"
THEMES = ("system", "light", "dark", "contrast")
COUNTED = 999
"""Of the runs in each state no more are counted: a page says `999+`."""
SAID_COOKIE = "lamp-said"
SAID_SECONDS = 20
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True)
class Answer(Generic[A]):
    """What an operation answered, or why it did not: a page shows the one or says the other, never nothing."""

    found: A | None = None
    error: LampError | None = None

    @property
    def value(self) -> A:
        """Only where it was answered."""
        if self.found is None:
            raise AssertionError("a page shows a part only after it has looked whether there is one")
        return self.found


class Given(dict[str, str]):
    """What a person gave; a template may ask for anything that may be given."""

    def __init__(self, given: "Mapping[str, str] | Iterable[tuple[str, str]]" = (), **more: str) -> None:
        self._pairs = [*(given.items() if isinstance(given, Mapping) else given), *more.items()]
        super().__init__(self._pairs)

    def all(self, key: str) -> list[str]:
        """Every value that was given under the key, such as those of ticked boxes."""
        return [value for name, value in self._pairs if name == key]

    def __missing__(self, key: str) -> str:
        return ""


@dataclass
class Visit:
    city: CityOperations
    request: Request
    now: datetime
    status: Answer[StatusView] = field(default_factory=Answer)

    @property
    def actor(self) -> Actor:
        return actor_in(self.request.scope)

    @property
    def query(self) -> "Given":
        """What follows the path; a value that is left empty in a form is not there."""
        return Given({key: value for key, value in self.request.query_params.items() if value})

    @property
    def path(self) -> Mapping[str, str]:
        return self.request.path_params

    def why_not(self, operation: str) -> str:
        """Why whoever looks may not have it done, in a sentence; nothing if they may. The operation judges again."""
        verb = find(operation).verb
        if self.actor.may(verb):
            return ""
        what = verb.value.replace("_", " ")
        if self.actor.scopes is not None and verb in RIGHTS[self.actor.role]:
            return f"The token you signed in with does not keep the right to {what}."
        able = [role.value for role in (Role.ADMIN, Role.OWNER) if verb in RIGHTS[role]]
        return f"A {self.actor.role.value} may not {what}; an {' or '.join(able)} may."

    async def form(self) -> "Given":
        """What a form sent. Raises HTTPException 413 for one that is too large."""
        body = await bounded(self.request)
        found = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        if not all(can_be_kept(one) for pair in found for one in pair):
            raise UsageError("A field has a character that no text has.", hint="Write it without NUL.")
        return Given(found)

    async def do(self, operation: Operation[Q, A], ask: Q) -> A:
        """Raises what the operation raises, at once: a page says that the database is away, and does not hang."""
        return await self.city.do(operation, ask, self.actor, surface=SURFACE, patient=False)

    async def ask(self, operation: Operation[Q, A], ask: Q) -> Answer[A]:
        try:
            found: A = await self.do(operation, ask)
            return Answer(found)
        except LampError as error:
            return Answer(error=error)

    async def look(self) -> None:
        """The status of the city, which every page shows something of."""
        self.status = await self.ask(SHOW_STATUS, ShowStatus(COUNTED + 1))

    def address_of(self, path: str) -> str:
        """The whole address of a path of the city, for people to give to others."""
        try:
            public = self.city.configured().city.api.public_url
        except LampError:
            public = ""
        return (public or str(self.request.base_url)).rstrip("/") + path

    async def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """`address` among the values is where what the page shows can be asked for again, if that is another."""
        await self._known()
        kept, off = await kept_views(self), self.request.cookies.get(KEYS_COOKIE) == "off"
        return rendered(
            self.request, template, self.now, status=status, visit=self, kept_views=kept, keys_off=off, **values
        )  # fmt: skip

    async def _known(self) -> None:
        if self.status.found is None and self.status.error is None:
            await self.look()


async def together(*asked: Awaitable[Any]) -> list[Any]:
    """Several answers, asked for at once."""
    return list(await asyncio.gather(*asked))


Page = Callable[[Visit], Awaitable[Response]]


def rendered(request: Request, template: str, now: datetime, *, status: int = 200, **values: Any) -> Response:
    said, undo = _said_in(request)
    address = values.pop("address", None)
    text = _environment().get_template(template).render(
        now=now, theme=theme_of(request), said=said, undo=undo,
        at=address or request.url.path, here=address or _here(request), address=address,
        **values,
    )  # fmt: skip
    answer = HTMLResponse(text, status_code=status, headers={**HEADERS, "Cache-Control": "no-store"})
    if said is not None:
        answer.delete_cookie(SAID_COOKIE, path="/")
    return answer


_UNDO = re.compile(r"/inbox/inb_[0-9a-z]{1,64}/(claim|unclaim|unsnooze|reopen)")


def _said_in(request: Request) -> tuple[str | None, str]:
    """What is to be said once, and the address of the button that takes it back; only one that a page has anyway."""
    found = cookie_in(request.headers, SAID_COOKIE)
    if found is None:
        return None, ""
    said, _, undo = unquote(found).partition("\n")
    return said[:500], undo if _UNDO.fullmatch(undo) else ""


def _here(request: Request) -> str:
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def error_page(request: Request, error: LampError, now: datetime, *, status: int | None = None) -> Response:
    return rendered(request, "error.html", now, status=status or status_of(error), error=error)


def back(where: str, said: str = "", *, undo: str = "") -> Response:
    """To a page, after something was done; `said` is shown there, once, with a button for what `undo` names."""
    answer = RedirectResponse(where, status_code=303, headers={**HEADERS, "Cache-Control": "no-store"})
    if said:
        answer.set_cookie(
            SAID_COOKIE,
            quote(f"{said[:500]}\n{undo}", safe=""),
            max_age=SAID_SECONDS,
            path="/",
            httponly=True,
            samesite="lax",
        )
    return answer


def own_path(text: str | None) -> str:
    """Where a person wanted to go; `/` for anything that is not a page of this site."""
    wanted = text or "/"
    is_path = wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
    return wanted if is_path and all(char.isprintable() for char in wanted) else "/"


def theme_of(request: Request) -> str:
    found = request.cookies.get(THEME_COOKIE, THEMES[0])
    return found if found in THEMES else THEMES[0]


def url_with(query: Mapping[str, Any], **changes: Any) -> str:
    """The query of the page with some of it changed; None leaves a key out."""
    left = {key: value for key, value in {**query, **changes}.items() if value not in {None, ""}}
    return f"?{urlencode(left)}" if left else "?"


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        iso=words.iso, exact=words.exact, clock=words.clock, day=words.day, hm=words.hm,
        ago=words.ago, duration=words.duration, money=words.money, leads_to=words.leads_to,
        plain=ansi.plain, number=words.number, size=words.size, short=words.short, shortened=shortened,
        last_line=words.last_line, first_line=words.first_line, unmarked=words.unmarked, pieces=words.pieces,
        json=lambda value: json.dumps(to_json(value), indent=2, sort_keys=True, ensure_ascii=False),
        why_not=lambda operation, visit: visit.why_not(operation),
        seg=lambda text: quote(str(text), safe=":"),
    )  # fmt: skip
    made.globals.update(counted=COUNTED, mark=words.mark, url_with=url_with, version=version_of, themes=THEMES, nav=NAV)
    return made


@lru_cache(maxsize=16)
def version_of(name: str) -> str:
    """Changes with the file: browsers keep it for as long as it stays the same."""
    return sha256((HERE / "static" / name).read_bytes()).hexdigest()[:12]
