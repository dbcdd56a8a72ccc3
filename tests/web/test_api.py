"""The HTTP base over a real socket: health, tokens, completion, problems."""

import socket
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from served import Served

from lamplighter.domain.runs.model import RunState
from lamplighter.domain.tokens import TokenBook
from lamplighter.kit.errors import Kind, Unavailable
from lamplighter.web.auth import Authenticate
from lamplighter.web.errors import STATUS
from lamplighter.web.server import WebServer, policy_of

SOME_RUN = "run_" + "0" * 26


async def test_health_is_told_without_a_token(city: Served) -> None:
    assert (await city.call("GET", "/healthz")).json() == {"status": "ok"}
    assert (await city.call("GET", "/readyz")).json() == {"status": "ready"}
    city.not_ready.append("The database does not answer.")
    found = await city.call("GET", "/readyz")
    assert (found.status_code, found.json()["detail"]) == (503, "The database does not answer.")
    assert (await city.call("GET", "/healthz")).status_code == 200


async def test_every_answer_is_dated(city: Served) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    dates = [(await city.call("GET", "/healthz")).headers.get_list("date") for _ in range(2)]
    assert [len(found) for found in dates] == [1, 1]
    assert all(before <= parsedate_to_datetime(found[0]) <= datetime.now(UTC) for found in dates)


async def test_a_run_s_token_completes_its_run(city: Served) -> None:
    done = await city.complete(city.of_run())
    assert (done.status_code, done.json()) == (200, {
        "run": city.run, "state": "succeeded", "replayed": False, "grade": "claimed", "verifying": False,
        "message": None,
    })  # fmt: skip
    assert city.row().summary == "Lit."
    again = await city.call(
        "POST", city.complete_path, headers=city.of_run(), body=dict(reversed(city.completion().items()))
    )
    assert (again.status_code, again.json()["replayed"]) == (200, True)


async def test_another_completion_is_a_conflict(city: Served) -> None:
    await city.complete(city.of_run())
    found = await city.complete(city.of_run(), outcome="failed")
    assert found.status_code == 409
    assert found.headers["content-type"] == "application/problem+json"
    assert found.json()["type"] == "completion_conflict"
    assert set(found.json()) == {"type", "title", "detail", "hint", "status", "instance"}
    assert city.row().state is RunState.SUCCEEDED


async def test_a_completion_from_another_session_is_refused(city: Served) -> None:
    for session, status in (("ses_2", 409), (f"ses_{city.run}", 200)):
        headers = city.of_run() | {"Lamp-Session-Id": session}
        assert (await city.complete(headers)).status_code == status


async def test_a_run_s_token_can_do_nothing_else(city: Served) -> None:
    assert (await city.complete(city.of_run(city.other))).status_code == 403
    assert (await city.call("GET", f"/api/v1/runs/{city.run}", headers=city.of_run())).status_code == 403
    assert "completion" not in city.timeline()


async def test_the_owner_reads_runs_and_may_complete_them(city: Served) -> None:
    found = await city.call("GET", f"/api/v1/runs/{city.run}", headers=city.owner)
    assert (found.status_code, found.json()["state"]) == (200, "running")
    assert (await city.call("GET", "/api/v1/runs/run_9", headers=city.owner)).status_code == 404
    assert (await city.complete(city.owner)).status_code == 200


@pytest.mark.parametrize("path", [f"/api/v1/runs/{SOME_RUN}/complete", "/mcp", "/nowhere"])
async def test_nothing_is_told_without_a_token(city: Served, path: str) -> None:
    forged = f"Bearer lrt_{SOME_RUN}." + "0" * 64
    for header in ("", "Bearer", "Basic abc", "Bearer nonsense", "Bearer é", forged, "bearer " + forged):
        headers = {"Authorization": header.encode()}
        found = await city.call("POST", path, headers=headers, body=city.completion())
        assert found.status_code == 401
        assert found.headers["www-authenticate"] == "Bearer"
    assert "completion" not in city.timeline()


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"3", b'{"outcome": NaN}', b"\xff\xfe", b"[" * 100_000],
    ids=["nothing", "half", "list", "number", "NaN", "no text", "deep"],
)
async def test_a_body_that_is_no_object_is_refused(city: Served, raw: bytes) -> None:
    found = await city.call("POST", city.complete_path, headers=city.of_run(), raw=raw)
    assert (found.status_code, found.json()["type"]) == (400, "usage")


async def test_what_cannot_be_kept_is_told_all_at_once(city: Served) -> None:
    found = await city.call("POST", city.complete_path, headers=city.of_run(), body={"citations": 3})
    assert found.status_code == 400
    for word in ("completion_id", "outcome", "citations"):
        assert word in found.json()["detail"]


async def test_a_body_that_names_another_run_is_refused(city: Served) -> None:
    found = await city.complete(city.owner, run_id=city.other)
    assert found.status_code == 400
    assert "completion" not in city.timeline()


async def test_a_body_that_is_too_large_is_refused(city: Served) -> None:
    found = await city.call("POST", city.complete_path, headers=city.of_run(), raw=b" " * ((1 << 20) + 1))
    assert found.status_code == 413


async def test_what_is_not_there_is_problem_json_too(city: Served) -> None:
    for method, path, status in (
        ("GET", "/nowhere", 404),
        ("DELETE", city.complete_path, 405),
        ("GET", "/api/v1/runs/", 404),
    ):
        found = await city.call(method, path, headers=city.owner)
        assert (found.status_code, found.headers["content-type"]) == (status, "application/problem+json")


async def test_a_bug_tells_nothing_of_its_inside(city: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("lamplighter.services.city_operations.CityOperations.do", broken)
    found = await city.complete(city.of_run())
    assert found.status_code == 500
    assert "secret" not in found.text


@pytest.mark.parametrize("path", ["/api/v1/runs/{run}/complete", "/mcp", "/healthz", "/api/v1/configurations"])
@pytest.mark.parametrize("header", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
async def test_pages_of_others_reach_no_route(city: Served, path: str, header: dict[str, str]) -> None:
    found = await city.call("POST", path.format(run=city.run), headers=city.owner | header, body={})
    assert (found.status_code, found.headers["content-type"]) == (403, "application/problem+json")
    assert "evil.example" in found.json()["detail"]
    assert "access-control-allow-origin" not in found.headers
    assert "completion" not in city.timeline()


@pytest.mark.parametrize("path", ["/healthz/", "/healthzz", "/healthz/api/v1/configurations", "/readyz/x", "/health"])
async def test_only_the_very_paths_of_health_are_open(city: Served, path: str) -> None:
    assert (await city.call("GET", path)).status_code == 401


async def test_a_web_socket_without_a_token_is_closed() -> None:
    sent: list[dict[str, object]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    guarded = Authenticate(_nothing, TokenBook(b"k" * 32, "o" * 40), policy=policy_of)
    await guarded({"type": "websocket", "path": "/x", "headers": []}, _never, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_every_kind_has_a_status() -> None:
    assert set(STATUS) == set(Kind)


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Unavailable, match="cannot be listened on"):
            WebServer(_nothing, host="127.0.0.1", port=taken.getsockname()[1])


async def _nothing(*_: object) -> None:
    """An application that answers nobody."""


async def _never() -> dict[str, object]:
    raise AssertionError("nothing is read")
