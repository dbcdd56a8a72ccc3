"""Conversations in a Slack on this machine, with an agent program that does as the test says."""

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from loops_city import Loops
from slack_city import install, member

from lamplighter.domain.access import Role
from lamplighter.store.tx import Tx
from lamplighter.testing.slack_server import SlackServer
from lamplighter.testing.slack_shapes import BOT_USER, as_form, envelope, press, signed

PROGRAM = """#!/bin/sh
[ "$1" = --version ] && { echo "codex-cli 1.2.3"; exit 0; }
echo '{"type":"thread.started","thread_id":"th-1"}'
n=1; while [ -e "$LAMP_CITY/turn$n" ]; do n=$((n + 1)); done
for word in "$@"; do printf '%s\\n' "$word"; done > "$LAMP_CITY/turn.part"
mv "$LAMP_CITY/turn.part" "$LAMP_CITY/turn$n"
said() { printf '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"%s"}}\\n' "$1"; }
[ -e "$LAMP_CITY/silent" ] || said "Looking, turn $n."
i=0; for kind in $(cat "$LAMP_CITY/tools" 2>/dev/null); do i=$((i + 1))
printf '{"type":"item.started","item":{"id":"t%s","type":"%s","command":"cat secret-input"}}\\n' "$i" "$kind"; done
until [ -e "$LAMP_CITY/go$n" ]; do sleep 0.05; done
for over in $(cat "$LAMP_CITY/over" 2>/dev/null); do IFS=: read -r id kind how <<END
$over
END
printf '{"type":"item.completed","item":{"id":"%s","type":"%s","status":"%s"}}\\n' "$id" "$kind" "$how"; done
said "$(cat "$LAMP_CITY/go$n")"
exit "$(cat "$LAMP_CITY/exit$n" 2>/dev/null || echo 0)"
"""


async def furnish(loops: Loops, monkeypatch: pytest.MonkeyPatch, *places: str) -> None:
    """The program is there, the app is installed, and ann is known."""
    bin_ = loops.root / "bin"
    bin_.mkdir()
    (bin_ / "codex").write_text(PROGRAM)
    (bin_ / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(loops.root))
    loops.parts = loops.build("own_first")
    await install(loops, preset="codex", places=places)
    await member(loops, "ann", Role.ADMIN, "U1")


async def send(web: httpx2.AsyncClient, event: Mapping[str, Any], event_id: str) -> int:
    body = httpx2.Request("POST", "http://x", json=envelope(event, event_id)).content
    return (await web.post("/slack/events", content=body, headers=signed(body))).status_code


def mention(slack: SlackServer, text: str, *, user: str = "U1", thread: str | None = None) -> dict[str, Any]:
    return slack.say("C1", user, f"<@{BOT_USER}> {text}", thread=thread) | {"type": "app_mention"}


async def step(loops: Loops) -> None:
    await loops.store.transact(lambda tx: tx.db.execute("UPDATE outbox SET due_at = 0 WHERE state = 'pending'", {}))
    await loops.parts.dispatcher.tick()
    await loops.parts.dispatcher.handling.all_done()


async def until(loops: Loops, holds: Any) -> None:
    async def stepped() -> bool:
        await step(loops)
        return bool(holds())

    await loops.until(stepped)


def go(loops: Loops, turn: int, text: str, *, ends: int = 0) -> None:
    (loops.root / f"exit{turn}").write_text(str(ends))
    part = loops.root / "go.part"
    part.write_text(text)
    part.rename(loops.root / f"go{turn}")


def count(sql: str) -> Any:
    def asked(tx: Tx) -> int:
        row = tx.db.row(f"SELECT count(*) AS n FROM {sql}", {})
        assert row is not None
        return int(row["n"])

    return asked


async def followed(loops: Loops) -> int:
    return int(await loops.store.read(count("slack_threads WHERE is_followed = 1")))


async def ended(loops: Loops) -> None:
    async def over() -> bool:
        await step(loops)
        waits = await loops.store.read(count("outbox WHERE kind LIKE 'slack%' AND state IN ('pending', 'claimed')"))
        return not await followed(loops) and not waits

    await loops.until(over)


def button(message: Mapping[str, Any], verb: str, **more: Any) -> dict[str, Any]:
    row = next(one for one in message["blocks"] if one["type"] == "actions")
    found: dict[str, Any] = next(one for one in row["elements"] if one["action_id"].startswith(f"lamp:{verb}"))
    return found | {"block_id": row["block_id"], "action_ts": "1.0"} | more


async def pressed(
    web: httpx2.AsyncClient, action: Mapping[str, Any], message: Mapping[str, Any], user: str = "U1"
) -> int:
    body = as_form(press(action, message, "C1", user))
    return (await web.post("/slack/interactions", content=body, headers=signed(body, form=True))).status_code
