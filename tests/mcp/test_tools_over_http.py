"""The tools over streamable HTTP, by the official client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult
from served import Served

from lamplighter.domain.runs.model import By, Mover, RunState
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.services.runs import review
from mcp import Client


def args(city: Served, **changes: Any) -> dict[str, Any]:
    return {"run_id": city.run, "completion_id": completion_id(city.run), "outcome": "succeeded"} | changes


@asynccontextmanager
async def client(city: Served, headers: dict[str, str]) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(f"{city.url}/mcp", http_client=http)) as connected,
    ):
        yield connected


def said(result: Any) -> str:
    assert isinstance(result, CallToolResult)
    return " ".join(block.text for block in result.content if block.type == "text")


async def test_a_run_is_shown_only_what_it_may_use(city: Served) -> None:
    async with client(city, city.of_run()) as tools:
        names = [tool.name for tool in (await tools.list_tools()).tools]
    assert names == ["automation_complete", "event_emit", "automation_ask", "automation_notes", "automation_cursor"]


async def test_the_owner_is_shown_all(city: Served) -> None:
    async with client(city, city.owner) as tools:
        found = (await tools.list_tools()).tools
    names = [tool.name for tool in found]
    assert names == [
        "automation_complete", "event_emit", "run_get", "automation_list", "automation_create",
        "automation_ask", "automation_notes", "automation_cursor",
        "bead_create", "bead_get", "bead_list", "bead_ready", "bead_claim", "bead_update", "bead_close",
        "node_list",
    ]  # fmt: skip
    for tool in found:
        assert tool.description
        assert "." not in tool.name, "model services refuse dots"
        assert not {"summary", "security_risk"} & set(tool.input_schema["properties"])


@pytest.mark.parametrize("name", ["automation_complete", "automation.complete"])
async def test_the_completion_tool_ends_the_run_under_both_spellings(city: Served, name: str) -> None:
    async with client(city, city.of_run()) as tools:
        done = await tools.call_tool(name, args(city, summary_markdown="Lit.", security_risk="LOW"))
        again = await tools.call_tool("automation_complete", {"summary_markdown": "Lit.", **args(city)})
    assert done.structured_content == {
        "run": city.run, "state": "succeeded", "replayed": False, "grade": "claimed", "verifying": False,
        "message": "The completion is recorded.",
    }  # fmt: skip
    assert again.structured_content is not None
    assert again.structured_content["replayed"] is True
    assert (city.row().state, city.row().summary) == (RunState.SUCCEEDED, "Lit.")


async def test_refusals_are_answers_that_say_what_to_do(city: Served) -> None:
    async with client(city, city.of_run()) as tools:
        other = await tools.call_tool("automation_complete", args(city, run_id=city.other))
        wrong = await tools.call_tool("automation_complete", {"outcome": "done"})
        await tools.call_tool("automation_complete", args(city))
        changed = await tools.call_tool("automation_complete", args(city, outcome="failed"))
        hidden = await tools.call_tool("bead_create", {"title": "x"})
    assert "may not complete" in said(other)
    assert "run_id" in said(wrong)
    assert "completion_id" in said(wrong)
    assert "already completed" in said(changed)
    assert "no tool bead_create" in said(hidden)
    assert all(result.is_error for result in (other, wrong, changed, hidden))
    assert city.row(city.other).state is RunState.RUNNING


async def test_a_late_completion_is_recorded_and_refused(city: Served) -> None:
    ending = review.Ending(RunState.TIMED_OUT, "deadline_exceeded")
    by = By(Mover.FINALIZER, "finalizer")
    city.opened.store.transact(review.end, city.run, ending, by, ctx=city.opened.context())
    async with client(city, city.of_run()) as tools:
        late = await tools.call_tool("automation_complete", args(city))
    assert late.is_error
    assert "deadline_exceeded" in said(late)
    assert city.timeline()[-1] == "late_completion"


async def test_events_carry_the_run_that_emitted_them(city: Served) -> None:
    async with client(city, city.of_run()) as tools:
        done = await tools.call_tool("event_emit", {"type": "deploy.finished", "payload": {"ok": True}})
        refused = await tools.call_tool("event_emit", {"type": "Not A Type"})
    assert not done.is_error
    assert refused.is_error
    event = city.events()[-1]
    assert (event.type, event.run, event.actor, event.payload) == (
        "deploy.finished",
        city.run,
        f"run:{city.run}",
        {"ok": True},
    )


async def test_after_the_end_of_its_run_a_token_can_only_repeat_its_completion(city: Served) -> None:
    async with client(city, city.of_run()) as tools:
        await tools.call_tool("automation_complete", args(city))
        told = city.events()
        again = await tools.call_tool("automation_complete", args(city))
        changed = await tools.call_tool("automation_complete", args(city, outcome="failed"))
        others = [("event_emit", {"type": "deploy.finished"}), ("bead_create", {"title": "x"}), ("bead_list", {}),
                  ("automation_list", {}), ("run_get", {"run_id": city.run})]  # fmt: skip
        refused = [await tools.call_tool(name, given) for name, given in others]
    assert again.structured_content is not None
    assert again.structured_content["replayed"] is True
    assert all(one.is_error for one in (changed, *refused))
    assert "has ended as succeeded" in said(refused[0])
    for method, path in (("GET", f"/api/v1/runs/{city.run}"), ("GET", "/api/v1/configurations")):
        assert (await city.call(method, path, headers=city.of_run())).status_code == 403
    assert city.events() == told


async def test_an_event_that_only_the_product_emits_is_refused_to_everybody(city: Served) -> None:
    told = city.events()
    for headers in (city.of_run(), city.owner):
        async with client(city, headers) as tools:
            refused = await tools.call_tool("event_emit", {"type": "run.succeeded", "subject": city.run})
        assert refused.is_error
        assert "`run.*`" in said(refused)
        assert "my-run.succeeded" in said(refused)
    assert city.events() == told


async def test_beads_go_through_their_life(city: Served) -> None:
    async with client(city, city.owner) as tools:

        async def call(name: str, **args: Any) -> dict[str, Any]:
            result = await tools.call_tool(name, args)
            assert not result.is_error, said(result)
            assert result.structured_content is not None
            return dict(result.structured_content)

        need = await call("bead_create", title="Fetch oil")
        made = await call("bead_create", title="Light it", labels="urgent", needs=[need["id"]], metadata={"a": "b"})
        assert made["labels"] == ["urgent"]
        assert [one["id"] for one in (await call("bead_ready"))["beads"]] == [need["id"]]
        await call("bead_close", id=need["id"])
        assert (await call("bead_claim", id=made["id"]))["assignee"] == "owner"
        assert (await call("bead_update", id=made["id"], title="Light them"))["title"] == "Light them"
        assert (await call("bead_get", id=made["id"]))["children"] == []
        assert [one["id"] for one in (await call("bead_list", status="in_progress"))["beads"]] == [made["id"]]


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [
        ("bead_create", {}, "`title` is missing"),
        ("bead_create", {"title": 3, "labels": [1], "metadata": {"a": 1}}, "`labels` must be a list of texts"),
        ("bead_list", {"limit": 0}, "`limit`"),
        ("bead_list", {"limit": True}, "`limit`"),
        ("bead_list", {"status": "done"}, "`status` must be one of open, in_progress, closed"),
        ("bead_get", {"id": "zz-404"}, "no bead zz-404"),
        ("run_get", {"run_id": "run_9"}, "no run run_9"),
        ("event_emit", {"type": "a..b"}, "not an event type"),
    ],
)
async def test_rubbish_is_refused_by_name(city: Served, name: str, args: dict[str, Any], told: str) -> None:
    async with client(city, city.owner) as tools:
        result = await tools.call_tool(name, args)
    assert result.is_error
    assert told in said(result)


async def test_an_automation_that_an_agent_proposes_is_disabled(city: Served) -> None:
    async with client(city, city.owner) as tools:
        action, triggers = {"kind": "exec", "command": "true"}, [{"kind": "cooldown", "interval": "1h"}]
        proposed = {"name": "n", "action": action, "triggers": triggers, "enabled": True}
        made = await tools.call_tool("automation_create", proposed)
        listed = await tools.call_tool("automation_list", {})
        shown = await tools.call_tool("run_get", {"run_id": city.run})
    assert made.structured_content is not None
    assert listed.structured_content is not None
    assert made.structured_content["automation"]["enabled"] is False
    assert [(one["name"], one["enabled"]) for one in listed.structured_content["automations"]] == [
        ("light", True), ("n", False),
    ]  # fmt: skip
    assert shown.structured_content is not None
    assert shown.structured_content["state"] == "running"


async def test_it_keeps_nothing_between_requests(city: Served) -> None:
    """What a program sends after a restart of the daemon is answered as if nothing had been."""
    headers = city.of_run() | {
        "accept": "application/json, text/event-stream",
        "mcp-session-id": "from-before",
        "mcp-protocol-version": "2025-06-18",
    }
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "automation_complete", "arguments": args(city)},
    }
    found = await city.call("POST", "/mcp", headers=headers, body=call)
    assert found.status_code == 200
    assert found.json()["result"]["structuredContent"]["state"] == "succeeded"


async def test_there_is_no_stream_to_hold_open(city: Served) -> None:
    for method in ("GET", "DELETE", "PUT"):
        found = await city.call(method, "/mcp", headers=city.of_run() | {"accept": "text/event-stream"})
        assert (found.status_code, found.headers["allow"]) == (405, "POST")


async def test_a_client_that_hangs_up_leaves_no_traceback(city: Served, caplog: pytest.LogCaptureFixture) -> None:
    host, port = city.url.removeprefix("http://").split(":")
    for _ in range(3):
        reader, writer = await asyncio.open_connection(host, int(port))
        headers = {"Host": f"{host}:{port}", "Content-Length": "500", **city.of_run()}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n{{".encode())
        await writer.drain()
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
    async with client(city, city.of_run()) as tools:
        await tools.list_tools()
    assert [record for record in caplog.records if record.exc_info] == []


async def test_requests_that_are_no_calls_are_refused(city: Served) -> None:
    headers = city.of_run() | {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    for raw in (b"", b"{", b"[]", b'{"jsonrpc": "2.0"}', b"\xff", b" " * ((1 << 20) + 1)):
        found = await city.call("POST", "/mcp", headers=headers, raw=raw)
        assert 400 <= found.status_code < 500
    assert "completion" not in city.timeline()


@pytest.mark.parametrize("levels", [300, 2000, 100_000])
async def test_deep_arguments_are_refused_and_the_next_call_is_answered(city: Served, levels: int) -> None:
    raw = (
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "event_emit", "arguments": '
        '{"type": "x.y", "payload": ' + "[" * levels + "]" * levels + "}}}"
    )
    headers = city.owner | {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    found = await city.call("POST", "/mcp", headers=headers, raw=raw.encode())
    assert found.status_code in {200, 400}
    assert "error" in found.text.lower()
    async with client(city, city.owner) as tools:
        assert (await tools.list_tools()).tools


async def test_no_session_that_a_header_names_keeps_a_change_with_the_owner_s_token_off_the_audit(city: Served) -> None:
    """Whoever has the token may name any session, also one that lives."""

    def on_record() -> list[tuple[str, str]]:
        rows = city.opened.store.read(lambda tx: tx.audit.page(actor=None, before=None, limit=10))
        return [(row.operation, row.surface) for row in rows]

    async def create(session: str) -> None:
        async with client(city, city.owner | {"Lamp-Session-Id": session}) as tools:
            done = await tools.call_tool("bead_create", {"title": f"from {session}"})
            assert not done.is_error, said(done)

    before = on_record()
    await create(f"ses_{city.run}")
    assert on_record() == [("bead.create", "tool"), *before]
    await create("ses_invented")
    assert on_record() == [("bead.create", "tool")] * 2 + before
