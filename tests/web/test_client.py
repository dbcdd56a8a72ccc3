"""The client of the API, both faces of it, against a served city: answers, errors, keys, pages, streams, retries."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest
from served import Served

from lamplighter.adapters.files.secrets import owner_token
from lamplighter.client import AsyncClient, Client, Retries
from lamplighter.client.calls import Core
from lamplighter.client.following import Following
from lamplighter.client.problems import CityUnreachable, NotACity
from lamplighter.client.routes import AnswerUnknown, NotOverHttp
from lamplighter.domain.access import Forbidden, Unauthenticated
from lamplighter.domain.runs.completion import Completion, Outcome
from lamplighter.kit.errors import Conflict, Kind, LampError, NotFound, UsageError
from lamplighter.services import table
from lamplighter.services.automations.operations import CREATE, DELETE, CreateAutomation, DeleteAutomation
from lamplighter.services.beads.operations import CREATE as CREATE_BEAD
from lamplighter.services.beads.operations import CreateBead
from lamplighter.services.beads.queries import LIST as LIST_BEADS
from lamplighter.services.beads.queries import ListBeads
from lamplighter.services.event_operations import EMIT, TAIL, EmitEvent, ListEvents, TailEvents
from lamplighter.services.event_operations import LIST as LIST_EVENTS
from lamplighter.services.operation import Operation
from lamplighter.services.runs.logs import WATCH_RUN, WatchRun
from lamplighter.services.runs.operations import CANCEL_RUN, CancelRun
from lamplighter.services.runs.queries import LIST_RUNS, SHOW_RUN, ListRuns, ShowRun

FAST = Retries(first=timedelta(milliseconds=1))


class Face:
    """Either client behind the same coroutine functions; the one that waits does so in a thread."""

    def __init__(self, kind: str, url: str, token: str) -> None:
        self.client: Any = (Client if kind == "sync" else AsyncClient)(url, token, retries=FAST)

    async def do(self, operation: Operation[Any, Any], ask: Any, **more: Any) -> Any:
        return await self._made(self.client.do, operation, ask, **more)

    async def call(self, name: str, /, **fields: Any) -> Any:
        return await self._made(self.client.call, name, **fields)

    async def some(self, items: Any, most: int) -> list[Any]:
        """The first so many items of an iterator of either kind."""
        if not hasattr(items, "__anext__"):
            return await asyncio.to_thread(lambda: list(islice(items, most)))
        found = []
        async for one in items:
            found.append(one)
            if len(found) == most:
                break
        await items.aclose()
        return found

    async def close(self) -> None:
        await self._made(self.client.close)

    async def _made(self, function: Callable[..., Any], *args: Any, **given: Any) -> Any:
        if isinstance(self.client, AsyncClient):
            return await function(*args, **given)
        return await asyncio.to_thread(function, *args, **given)


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def face(kind: str, city: Served) -> AsyncIterator[Face]:
    made = Face(kind, city.url, owner_token(city.opened.paths.runtime))
    yield made
    await made.close()


async def test_an_operation_and_its_request_go_in_and_its_typed_answer_comes_out(face: Face, city: Served) -> None:
    shown = await face.do(SHOW_RUN, ShowRun(city.run))
    assert isinstance(shown, SHOW_RUN.answer)
    assert (shown.id, shown.automation, shown.state) == (city.run, "light", "running")
    runs = await face.do(LIST_RUNS, ListRuns(limit=1))
    assert [one.id for one in runs] == [city.other]
    assert runs.searched_to is None
    assert (await face.call("run.show", run="last")).id == city.other


@pytest.mark.parametrize("name", [".", "..", "a/b", "../automations", "a?b#c", "100%", "ü"])
async def test_a_name_is_one_part_of_the_path_whatever_is_in_it(face: Face, name: str) -> None:
    with pytest.raises(NotFound, match="agent") as missing:
        await face.call("agent.show", name=name)
    assert name in missing.value.message


async def test_what_is_deleted_is_answered(face: Face) -> None:
    await face.do(CREATE, CreateAutomation({"name": "tidy", "gate": "manual", "exec": "true"}, None))
    gone = await face.do(DELETE, DeleteAutomation("tidy"))
    assert gone.scoped_name == "tidy"


async def test_every_item_of_a_list_comes_page_by_page(face: Face, city: Served) -> None:
    pages = face.client.each(LIST_RUNS, ListRuns(limit=1))
    assert [one.id for one in await face.some(pages, 10)] == [city.other, city.run]
    for number in range(5):
        await face.do(EMIT, EmitEvent("deploy.done", str(number), None, {"n": number}))
    events = face.client.each(LIST_EVENTS, ListEvents(after=0, limit=2, type="deploy.done"))
    assert [one.subject for one in await face.some(events, 10)] == list("01234")


async def test_a_stream_is_followed_to_its_end_and_from_where_it_is_asked(face: Face, city: Served) -> None:
    for number in range(3):
        await face.do(EMIT, EmitEvent("deploy.done", str(number), None, None))
    tail = face.client.follow(TAIL, TailEvents(after=0, type="deploy.done", count=3))
    assert [one.subject for one in await face.some(tail, 10)] == ["0", "1", "2"]
    await face.do(CANCEL_RUN, CancelRun(city.run))
    watched = await face.some(face.client.follow(WATCH_RUN, WatchRun(city.run)), 100)
    assert watched[-1].to_state == "canceled"
    with pytest.raises(NotFound):
        await face.some(face.client.follow(WATCH_RUN, WatchRun("run_nothing")), 1)


async def test_errors_have_the_kind_the_name_and_the_words_of_the_city(face: Face, city: Served, kind: str) -> None:
    with pytest.raises(NotFound, match="run_nothing") as missing:
        await face.do(SHOW_RUN, ShowRun("run_nothing"))
    assert (type(missing.value).__name__, missing.value.kind) == ("RunUnknown", Kind.NOT_FOUND)
    assert missing.value.hint
    await face.do(CANCEL_RUN, CancelRun(city.run))
    with pytest.raises(Conflict):
        await face.do(CANCEL_RUN, CancelRun(city.run))
    with pytest.raises(UsageError, match="limit"):
        await face.do(LIST_RUNS, ListRuns(limit=0))
    with pytest.raises(UsageError, match="agent"):
        await face.call("hook.show")
    with pytest.raises(NotOverHttp):
        await face.call("agent.attach", name="a")
    wrong = Face(kind, city.url, "lamp_pat_nothing")
    with pytest.raises(Unauthenticated, match="token") as refused:
        await wrong.do(LIST_RUNS, ListRuns())
    assert "lamp context add" in refused.value.hint
    of_run = Face(kind, city.url, city.of_run()["Authorization"].removeprefix("Bearer "))
    with pytest.raises(Forbidden):
        await of_run.do(LIST_RUNS, ListRuns())
    for one in (wrong, of_run):
        await one.close()


@pytest.mark.parametrize(
    ("url", "token"),
    [("town:8787", "t"), ("https://", "t"), ("http://a:b@town", "t"), ("http://town:99999", "t"),
     ("http://town/?x=1", "t"),
     ("http://[::1", "t"), ("http://a..b", "t"), (f"http://{70 * chr(97)}.org", "t"),
     ("http://town", ""), ("http://town", "two words"), ("http://town", "ü")],
)  # fmt: skip
def test_an_address_or_a_token_that_cannot_be_one_is_refused_at_once(kind: str, url: str, token: str) -> None:
    with pytest.raises(UsageError):
        Face(kind, url, token)


async def test_every_request_fits_its_route(face: Face) -> None:
    """Each operation with a route can be put into a request, and the city never calls a key of it unknown."""
    for operation in table.every():
        if operation.http is None or operation.kind.value == "stream":
            continue
        try:
            await face.do(operation, an_ask(operation))
        except LampError as error:
            name, told = type(error).__name__, error.message
            unknown = "is not known; known are" in told or "asks for a name" in told
            if unknown or name in {"MethodNotAllowed", "InternalError", "AnswerUnknown"}:
                pytest.fail(f"{operation.name}: {name}: {told}")


def an_ask(operation: Operation[Any, Any]) -> Any:
    """A request with a word where one is needed; most of them name nothing that there is."""
    from dataclasses import MISSING, fields

    from lamplighter.kit.shapes import hints_of

    hints = hints_of(operation.request)
    words: dict[Any, Any] = {str: "zzz", int: 1, bool: False, float: 1.0}
    needed = {
        one.name: words.get(hints[one.name], {"name": "zzz"})
        for one in fields(operation.request)
        if (one.default is MISSING and one.default_factory is MISSING) or one.name in ("agent", "name")
    }
    if operation.name == "run.resolve":
        needed["outcome"] = "succeeded"
    if operation.request is Completion:
        needed["outcome"] = Outcome.SUCCEEDED
    return operation.request(**needed)


# ── a server that fails as it is told ─────────────────────────────────────────────────────────────────────────────


@dataclass
class Failing:
    """`answers` are sent one after another, the last one again and again; b"" cuts the connection."""

    url: str
    answers: list[bytes]
    asked: list[str]

    def keys(self) -> list[str]:
        lines = [line for one in self.asked for line in one.splitlines()]
        return [line.partition(": ")[2] for line in lines if line.lower().startswith("idempotency-key:")]


@asynccontextmanager
async def failing(*answers: bytes) -> AsyncIterator[Failing]:
    told = Failing("", list(answers), [])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = [int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:")]
        body = await reader.readexactly(length[0]) if length else b""
        told.asked.append(head + body.decode())
        writer.write(told.answers.pop(0) if len(told.answers) > 1 else told.answers[0])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        told.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield told


def http(status: int, body: object, media_type: str = "application/json", **headers: str) -> bytes:
    text = body if isinstance(body, str) else json.dumps(body)
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n"
    return f"{head}{more}\r\n{text}".encode()


AWAY = {
    "type": "unavailable",
    "title": "StoreUnavailable",
    "detail": "The database is away.",
    "hint": "",
    "status": 503,
}
PROBLEM = "application/problem+json"
EMITTED = {"seq": 1, "type": "a.b", "at": "2026-03-02T09:00:00Z", "actor": "ada", "subject": None, "message": None,
           "payload": None, "run": None, "new": "key"}  # fmt: skip


async def asked_of(kind: str, server: Failing, ask: Callable[[Face], Awaitable[Any]]) -> Any:
    face = Face(kind, server.url, "token")
    try:
        return await ask(face)
    finally:
        await face.close()


async def test_a_change_is_asked_again_under_the_same_key(kind: str) -> None:
    """The connection was cut, and then the database was away: neither tells whether it was done."""
    async with failing(b"", http(503, AWAY, PROBLEM, Retry_After="0"), http(201, EMITTED)) as server:
        done = await asked_of(kind, server, lambda face: face.do(EMIT, EmitEvent("a.b")))
        assert done.type == "a.b"
        assert len(server.asked) == 3
        assert len(set(server.keys())) == 1
        assert len(server.keys()) == 3


async def test_what_must_not_be_done_twice_is_not_asked_twice(kind: str) -> None:
    async with failing(b"") as server:
        with pytest.raises(CityUnreachable, match="may have been done"):
            await asked_of(kind, server, lambda face: face.call("agent.nudge", name="a", message="go"))
        assert len(server.asked) == 1


async def test_it_is_asked_so_often_and_then_told(kind: str) -> None:
    async with failing(http(503, AWAY, PROBLEM)) as server:
        with pytest.raises(LampError, match="The database is away") as away:
            await asked_of(kind, server, lambda face: face.do(LIST_RUNS, ListRuns()))
        assert (away.value.kind, len(server.asked)) == (Kind.UNAVAILABLE, 1 + FAST.most)


async def test_a_store_that_knows_no_keys_is_asked_without_one(kind: str) -> None:
    none = {"type": "usage", "title": "KeyNotTaken", "detail": "No.", "hint": "", "status": 400}
    async with failing(http(400, none, PROBLEM), b"") as server:
        with pytest.raises(CityUnreachable, match="may have been done"):
            await asked_of(kind, server, lambda face: face.do(CREATE_BEAD, CreateBead("Light it")))
        assert (len(server.asked), len(server.keys())) == (2, 1)


@pytest.mark.parametrize(
    "answer",
    [http(200, "<html>", "text/html"), http(404, "<html>", "text/html"), http(301, "", "text/html", Location="/x"),
     http(200, "not json"), http(500, "{}", PROBLEM)],
)  # fmt: skip
async def test_something_else_that_answers_is_no_city(kind: str, answer: bytes) -> None:
    async with failing(answer) as server:
        with pytest.raises(NotACity, match=server.url):
            await asked_of(kind, server, lambda face: face.do(LIST_BEADS, ListBeads()))


async def test_an_answer_of_another_shape_is_told_as_one_of_another_version(kind: str) -> None:
    async with failing(http(200, [])) as server:
        with pytest.raises(AnswerUnknown, match=r"bead\.list.* list"):
            await asked_of(kind, server, lambda face: face.do(LIST_BEADS, ListBeads()))
        with pytest.raises(AnswerUnknown, match=r"run\.show"):
            await asked_of(kind, server, lambda face: face.do(SHOW_RUN, ShowRun("last")))


async def test_nothing_answers(kind: str) -> None:
    async with failing(b"") as server:
        url = server.url
    face = Face(kind, url, "token")
    with pytest.raises(CityUnreachable, match="Nothing answers") as gone:
        await face.do(EMIT, EmitEvent("a.b"))
    assert not gone.value.reached
    with pytest.raises(CityUnreachable, match="Nothing answers"):
        await face.some(face.client.follow(TAIL, TailEvents(after=0)), 1)
    await face.close()


STREAM = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def sent(seq: int) -> str:
    return f"id: {seq}\ndata: {json.dumps(EMITTED | {'seq': seq})}\n\n"


async def test_a_stream_that_was_cut_goes_on_after_the_last_item(kind: str) -> None:
    first = f"{STREAM}: alive\n\n{sent(1)}{sent(2)}id: 3\ndata: {{".encode()
    second = f"{STREAM}{sent(3)}event: end\ndata: {{}}\n\n".encode()
    async with failing(first, b"", second) as server:
        tail = await asked_of(kind, server, lambda face: face.some(face.client.follow(TAIL, TailEvents(after=0)), 9))
        assert [one.seq for one in tail] == [1, 2, 3]
        assert ["last-event-id: 2" in one.lower() for one in server.asked] == [False, True, True]


@pytest.mark.parametrize("text", ["a\u2028b", "a\u0085b", "a\r\nb", "ü" * 7_000])
async def test_texts_of_a_stream_may_have_anything_in_them(face: Face, text: str) -> None:
    await face.do(EMIT, EmitEvent("deploy.done", None, text, None))
    tail = face.client.follow(TAIL, TailEvents(after=0, type="deploy.done", count=1))
    assert [one.message for one in await face.some(tail, 2)] == [text]


async def test_a_stream_that_would_repeat_or_miss_something_is_not_asked_again(kind: str) -> None:
    cut = f"{STREAM}: alive\n\n".encode()
    async with failing(cut) as server:
        with pytest.raises(CityUnreachable, match="cut"):
            await asked_of(kind, server, lambda face: face.some(face.client.follow(TAIL, TailEvents()), 1))
        assert len(server.asked) == 1


def test_a_quiet_stream_that_is_cut_now_and_then_goes_on_for_days() -> None:
    clock = [0.0]
    core = Core("http://town", FAST, lambda: clock[0], lambda: 0.0, lambda: "key")
    stream = Following(core, TAIL, TailEvents(after=0))
    for _ in range(20):
        stream.asked()
        clock[0] += 3600
        assert list(stream.take(b": alive\n\n")) == []
        assert stream.cut() < 1
    stream.asked()
    clock[0] += FAST.within.total_seconds() + 1
    with pytest.raises(CityUnreachable):
        stream.cut()


async def test_a_problem_in_a_stream_is_raised(kind: str) -> None:
    over = f"{STREAM}{sent(1)}event: problem\ndata: {json.dumps(AWAY)}\n\n".encode()
    async with failing(over) as server:
        with pytest.raises(LampError, match="The database is away"):
            await asked_of(kind, server, lambda face: face.some(face.client.follow(TAIL, TailEvents(after=0)), 5))
