"""`lamp mcp`, started as an agent program starts it."""

import asyncio
import sys
from pathlib import Path

from mcp.client.stdio import StdioServerParameters
from served import a_town

from lamplighter.app.open_beads import bead_store
from lamplighter.domain.events import EventFilter
from mcp import Client


async def test_lamp_mcp_serves_what_the_city_has(tmp_path: Path) -> None:
    opened = a_town(tmp_path / "town")
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "lamplighter", "mcp", "--city", str(opened.paths.root)],
        env={"LAMP_AGENT": "amber", "LAMP_RUN_ID": "run_7"},
    )
    async with asyncio.timeout(60), Client(server) as tools:
        names = [tool.name for tool in (await tools.list_tools()).tools]
        made = await tools.call_tool("bead_create", {"title": "Light it"})
        await tools.call_tool("event_emit", {"type": "lamp.lit"})
    assert {"bead_create", "bead_close", "event_emit"} <= set(names)
    assert made.structured_content is not None
    assert bead_store(opened).get(made.structured_content["id"]).sender == "amber"
    events = opened.store.read(lambda tx: tx.events.latest(EventFilter(), limit=10))
    assert [(event.type, event.actor, event.run) for event in events] == [
        ("bead.created", "amber", "run_7"),
        ("lamp.lit", "amber", "run_7"),
    ]
    opened.close()
