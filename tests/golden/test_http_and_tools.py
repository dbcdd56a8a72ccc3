"""What the city's HTTP routes and its tools for agents answer, to its owner, to a run and to a stranger."""

import asyncio
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import golden_files
import httpx2
import pytest
from golden_city import FINALISED, WAITING, GoldenCity, a_city, running
from mcp.client.stdio import StdioServerParameters

from mcp import Client

HEADERS = ("content-type", "location", "www-authenticate", "allow")
NOWHERE = "run_" + "0" * 26
CONFIGURATIONS = "/api/v1/configurations"
SHOP = {"name": "shop", "description": "The shop.", "path": "/srv/shop", "env": {"API_TOKEN": "x"}}


@dataclass
class Surfaces:
    """`routes` and `tools` are what was answered, by the name of the golden file."""

    city: GoldenCity
    client: httpx2.Client
    routes: dict[str, Any] = field(default_factory=dict)
    tools: dict[str, Any] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        return (self.city.root / ".gc" / "owner.token").read_text().strip()

    def of_run(self, run: str) -> str:
        return (self.city.root / ".gc" / "runs" / run / "token").read_text().strip()

    def ask(self, name: str, method: str, path: str, *, token: str | None, body: Any = None) -> Any:
        """One request, captured with its status and the headers that mean something; its answer."""
        headers = {"X-Request-Id": "on-record"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
        found = self.client.request(method, path, headers=headers, json=body)
        shown = {one: found.headers[one] for one in HEADERS if one in found.headers}
        answer = found.json() if found.content else None
        assert found.status_code < 500, f"{name}: {answer}"
        self.routes[name] = self.city.masked({"status": found.status_code, "headers": shown, "body": answer})
        return answer

    def tool(self, name: str, /, *, token: str, case: str = "", **arguments: Any) -> Any:
        """One call of a tool, captured; its structured answer. The same answer as text must be the same JSON."""
        result = self._rpc("tools/call", {"name": name, "arguments": arguments}, token)
        value = result.get("structuredContent")
        if value is not None:
            assert json.loads(result["content"][0]["text"]) == value
            result = result | {"content": [{"type": "text", "text": "<the same>"}]}
        self.tools[name + (f"--{case}" if case else "")] = self.city.masked(result)
        return value

    def listed(self, name: str, *, token: str) -> None:
        self.tools[name] = self.city.masked(self._rpc("tools/list", {}, token))

    def _rpc(self, method: str, params: dict[str, Any], token: str) -> dict[str, Any]:
        found = self.client.post(
            "/mcp",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"},
            json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
        )
        result: dict[str, Any] = found.json()["result"]
        return result


@pytest.mark.timeout(600)
def test_routes_and_tools_answer_as_on_record(tmp_path: Path) -> None:
    with a_city(tmp_path) as city, running(city, "up"):
        url = city.json("daemon", "status")["api"]
        with httpx2.Client(base_url=url, trust_env=False, timeout=180) as client:
            surfaces = Surfaces(city, client)
            lit = city.fired("light", until_events=FINALISED)
            city.release(lit)
            ask_for_health(surfaces)
            ask_for_runs(surfaces, lit)
            complete_a_run(surfaces)
            look_at_the_inbox(surfaces)
            keep_configurations(surfaces)
            use_tools_as_owner(surfaces, lit)
            use_tools_as_a_run(surfaces)
            surfaces.tools["list--stdio"] = asyncio.run(tools_over_stdio(city))
    golden_files.check("http", surfaces.routes)
    golden_files.check("tools", surfaces.tools)


def ask_for_health(surfaces: Surfaces) -> None:
    surfaces.ask("node-list", "GET", "/api/v1/nodes", token=surfaces.owner)
    surfaces.ask("login-list", "GET", "/api/v1/logins", token=surfaces.owner)
    surfaces.ask("healthz", "GET", "/healthz", token=None)
    surfaces.ask("readyz", "GET", "/readyz", token=None)
    surfaces.ask("nowhere", "GET", "/nowhere", token=surfaces.owner)
    surfaces.ask("wrong-method", "DELETE", f"/api/v1/runs/{NOWHERE}/complete", token=surfaces.owner)


def ask_for_runs(surfaces: Surfaces, lit: str) -> None:
    surfaces.ask("run", "GET", f"/api/v1/runs/{lit}", token=surfaces.owner)
    surfaces.ask("run--not-found", "GET", f"/api/v1/runs/{NOWHERE}", token=surfaces.owner)
    surfaces.ask("run--no-token", "GET", f"/api/v1/runs/{lit}", token=None)


def complete_a_run(surfaces: Surfaces) -> None:
    run = surfaces.city.fired("wait", until_events=WAITING)
    own, path = surfaces.of_run(run), f"/api/v1/runs/{run}/complete"
    body = {"completion_id": f"run:{run}:completion:v1", "outcome": "failed", "summary_markdown": "No oil."}
    surfaces.ask("run--forbidden", "GET", f"/api/v1/runs/{run}", token=own)
    surfaces.ask("complete--of-another-run", "POST", f"/api/v1/runs/{NOWHERE}/complete", token=own, body=body)
    surfaces.ask("complete--wrong-body", "POST", path, token=own, body={"citations": 3})
    surfaces.ask("complete", "POST", path, token=own, body=body)
    surfaces.ask("complete--again", "POST", path, token=surfaces.owner, body=body)
    surfaces.ask("complete--conflict", "POST", path, token=surfaces.owner, body=body | {"outcome": "succeeded"})


def look_at_the_inbox(surfaces: Surfaces) -> None:
    """The run that was completed as failed is there."""
    items = surfaces.ask("inbox-list", "GET", "/api/v1/inbox?kind=failed", token=surfaces.owner)
    path = f"/api/v1/inbox/{items['data'][0]['id']}"
    surfaces.ask("inbox-show", "GET", path, token=surfaces.owner)
    surfaces.ask("inbox-claim", "POST", f"{path}/claim", token=surfaces.owner)
    surfaces.ask("inbox-snooze", "POST", f"{path}/snooze", token=surfaces.owner, body={"until": "2h"})
    surfaces.ask("inbox-snooze--wrong-time", "POST", f"{path}/snooze", token=surfaces.owner, body={"until": "soon"})
    surfaces.ask("inbox-dismiss", "POST", f"{path}/dismiss", token=surfaces.owner)
    surfaces.ask("inbox-dismiss--again", "POST", f"{path}/dismiss", token=surfaces.owner)
    surfaces.ask("inbox-show--not-found", "GET", "/api/v1/inbox/inb_nothing", token=surfaces.owner)
    surfaces.ask("outbox-list", "GET", "/api/v1/outbox", token=surfaces.owner)
    surfaces.ask("destination-list", "GET", "/api/v1/destinations", token=surfaces.owner)
    surfaces.ask("notice-list", "GET", "/api/v1/notices", token=surfaces.owner)


def keep_configurations(surfaces: Surfaces) -> None:
    owner, shop = surfaces.owner, f"{CONFIGURATIONS}/shop"
    surfaces.ask("configuration-create", "POST", CONFIGURATIONS, token=owner, body=SHOP)
    surfaces.ask("configuration-create--conflict", "POST", CONFIGURATIONS, token=owner, body=SHOP)
    surfaces.ask("configuration-create--wrong-body", "POST", CONFIGURATIONS, token=owner, body={"naem": "x"})
    surfaces.ask("configuration-list", "GET", CONFIGURATIONS, token=owner)
    surfaces.ask("configuration-show", "GET", shop, token=owner)
    surfaces.ask("configuration-edit", "PATCH", shop, token=owner, body={"model": "big"})
    surfaces.ask("configuration-delete", "DELETE", shop, token=owner)
    surfaces.ask("configuration-show--not-found", "GET", shop, token=owner)


def use_tools_as_owner(surfaces: Surfaces, lit: str) -> None:
    owner = surfaces.owner
    surfaces.listed("list--owner", token=owner)
    surfaces.tool("run_get", token=owner, run_id=lit)
    surfaces.tool("run_get", token=owner, case="not-found", run_id=NOWHERE)
    surfaces.tool("automation_list", token=owner)
    proposal = {"name": "propose", "action": {"kind": "exec", "command": "true"}}
    surfaces.tool("automation_create", token=owner, **proposal)
    surfaces.tool("automation_create", token=owner, case="conflict", **proposal)
    bead = surfaces.tool("bead_create", token=owner, title="Fetch oil", labels=["urgent"])["id"]
    surfaces.tool("bead_create", token=owner, case="usage")
    surfaces.tool("bead_get", token=owner, id=bead)
    surfaces.tool("bead_list", token=owner, label="urgent")
    surfaces.tool("bead_ready", token=owner, label="urgent")
    surfaces.tool("bead_claim", token=owner, id=bead)
    surfaces.tool("bead_update", token=owner, id=bead, title="Fetch more oil")
    surfaces.tool("bead_close", token=owner, id=bead)
    surfaces.tool("node_list", token=owner)


def use_tools_as_a_run(surfaces: Surfaces) -> None:
    run = surfaces.city.fired("wait", until_events=WAITING)
    own = surfaces.of_run(run)
    surfaces.listed("list--run", token=own)
    surfaces.tool("event_emit", token=own, type="lamp.lit", subject="north", payload={"ok": True})
    surfaces.tool("run_get", token=own, case="hidden-from-a-run", run_id=run)
    surfaces.tool("automation_cursor", token=own, set="42", expect="")
    surfaces.tool("automation_notes", token=own, text="Mind the oil.", version=0)
    surfaces.tool("automation_notes", token=own, case="changed-meanwhile", text="Mind it.", version=0)
    said = {"run_id": run, "completion_id": f"run:{run}:completion:v1", "outcome": "succeeded"}
    surfaces.tool("automation_complete", token=own, **said)
    surfaces.tool("automation_complete", token=own, case="conflict", **said | {"outcome": "failed"})
    asking = surfaces.city.fired("wait", until_events=WAITING)
    question = {"run_id": asking, "question": "Which lamp?", "choices": ["left", "right"]}
    surfaces.tool("automation_ask", token=surfaces.of_run(asking), **question)


async def tools_over_stdio(city: GoldenCity) -> list[str]:
    """The names that `lamp mcp` offers."""
    words = ["-m", "lamplighter", "mcp", "--city", str(city.root)]
    server = StdioServerParameters(command=sys.executable, args=words, env=city.env)
    async with asyncio.timeout(60), Client(server) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


def test_every_tool_on_record_has_an_answer_on_record() -> None:
    folder = golden_files.HERE / "tools"
    listed = json.loads((folder / "list--owner.json").read_text())["tools"]
    assert [tool["name"] for tool in listed if not (folder / f"{tool['name']}.json").exists()] == []
