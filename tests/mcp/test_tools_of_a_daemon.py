"""The tools that a running daemon serves work on the configuration in force and on an open database."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from lamp_program import lamp
from mcp.client.streamable_http import streamable_http_client

from lamplighter.adapters.control import ask
from lamplighter.adapters.files.secrets import owner_token
from mcp import Client

AT = "2026-01-01T00:00:00Z"
CITY = '[workspace]\nname = "town"\n\n[api]\nport = 0\n\n[beads]\nprovider = "file"\n'


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "town"
    assert lamp("init", str(root), cwd=tmp_path).code == 0
    (root / "city.toml").write_text(CITY)
    kept = {"seq": 1, "beads": [{"id": "gc-1", "title": "kept", "status": "open", "type": "task", "created_at": AT}]}
    (root / ".gc/beads.json").write_text(json.dumps(kept))
    started = lamp("daemon", "start", cwd=root)
    assert started.code == 0, started.err
    yield root
    assert lamp("stop", cwd=root).code == 0


async def call(root: Path, tool: str, arguments: dict[str, Any]) -> Any:
    url = lamp("status", "--json", cwd=root).json["controller"]["api"]
    headers = {"Authorization": f"Bearer {owner_token(root / '.gc')}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=180) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as tools,
    ):
        answer = await tools.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def test_beads_taken_over_from_a_file_are_there_for_the_tools(town: Path) -> None:
    assert (await call(town, "bead_get", {"id": "gc-1"}))["title"] == "kept"


async def test_a_rig_added_while_the_daemon_runs_is_known_to_the_tools(town: Path) -> None:
    await call(town, "bead_create", {"title": "before"})
    (town / "shop").mkdir()
    assert lamp("rig", "add", "shop", "--name", "shop", cwd=town).code == 0
    assert ask(town / ".gc/controller.sock", "reload") == {"config_error": None}
    made = await call(town, "bead_create", {"title": "after", "rig": "shop"})
    assert made["id"].startswith("sh-")
