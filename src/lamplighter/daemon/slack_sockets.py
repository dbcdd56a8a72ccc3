"""Socket Mode: two sockets to each workspace that has a token for it, opened again whenever one ends.

Slack sends each envelope over one of them, and again if it is not acknowledged; that happens once it is committed.
"""

import asyncio
import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lamplighter.kit import json_text, log
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.loop import every
from lamplighter.kit.tasks import spawn
from lamplighter.ports.slack import LEAVE, Dial, Method, SlackCalls
from lamplighter.services.slack.installing import APP
from lamplighter.services.slack.receiving import SlackReceiver
from lamplighter.services.slack.workspaces import Workspace
from lamplighter.store.tx import Tx

LOOK_EVERY = timedelta(seconds=30)
"""How often workspaces are looked for that were installed or removed."""
SOCKETS = 2
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(minutes=1)


@dataclass
class SlackSockets:
    receiver: SlackReceiver
    calls: SlackCalls
    dial: Dial
    clock: Clock
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _open: dict[tuple[str, str, int], "asyncio.Task[None]"] = field(default_factory=dict)
    _live: Counter[str] = field(default_factory=Counter)
    """How many sockets of each workspace are open."""

    async def loop(self) -> None:
        try:
            await every(lambda: LOOK_EVERY, self.tick, clock=self.clock, wake=self.wake)
        finally:
            await self._close(list(self._open))

    async def tick(self) -> None:
        """Keep sockets open to the workspaces that are installed, and to no others."""
        try:
            rows = await self.receiver.workspaces.store.read(lambda tx: tx.slack.all())
        except LampError as error:
            log.get().warning("slack.not_looked", error=error.message)
            return
        # Installed again means with other tokens: those sockets are opened anew.
        wanted = {
            (row.team, row.installed_at.isoformat(), number)
            for row in rows if row.has_socket for number in range(SOCKETS)
        }  # fmt: skip
        await self._close([key for key, task in self._open.items() if key not in wanted or task.done()])
        for key in sorted(wanted - self._open.keys()):
            self._open[key] = spawn(self._kept_open(key[0]), name=f"slack socket {key[0]} {key[2]}")
        for team in sorted({key[0] for key in wanted}):
            await self._noted(team)

    async def _noted(self, team: str, error: LampError | None = None) -> None:
        """Say how many sockets are open, and what failed; whether that can be kept changes nothing."""
        now = self.clock.now()

        def note(tx: Tx) -> None:
            if tx.slack.get(team) is not None:
                tx.slack.looked(team, self._live[team], now)
                if error is not None:
                    tx.slack.failed(team, error.message, now)

        with suppress(LampError):
            await self.receiver.workspaces.store.transact(note)

    async def _close(self, keys: list[tuple[str, str, int]]) -> None:
        tasks = [self._open.pop(key) for key in keys]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _kept_open(self, team: str) -> None:
        failures = 0

        async def live() -> None:
            nonlocal failures
            workspace: Workspace | None = None
            is_live = False
            ended: LampError | None = None

            async def hear(text: str) -> str | None:
                nonlocal failures, is_live
                failures = 0
                if not is_live:  # it has said hello
                    is_live = True
                    self._live[team] += 1
                    await self._noted(team)
                assert workspace is not None  # noqa: S101  it was found before anything could be heard
                return await self._answer(workspace, _read(text))

            try:
                workspace = await self.receiver.workspaces.of(team)
                said = await self.calls.call(Method.OPEN_SOCKET, workspace.secrets.get(APP, ""), {})
                await self.dial(str(said.get("url", "")), hear)
            except LampError as error:
                failures += 1
                log.get().warning("slack.socket_ended", team=team, error=error.message)
                ended = error
            finally:
                self._live[team] -= is_live
            await self._noted(team, ended)

        def pause() -> timedelta:
            return doubling(failures - 2, first=FIRST_PAUSE, most=LONGEST_PAUSE) if failures > 1 else timedelta(0)

        await every(pause, live, clock=self.clock, wake=asyncio.Event())

    async def _answer(self, workspace: Workspace, told: dict[str, Any]) -> str | None:
        if told.get("type") == "disconnect":  # Slack is about to close it: another one is opened at once
            return LEAVE
        envelope = told.get("envelope_id")
        if isinstance(envelope, str) and await self._taken(workspace, told):
            return json.dumps({"envelope_id": envelope})
        return None

    async def _taken(self, workspace: Workspace, told: dict[str, Any]) -> bool:
        """Whether it is committed, or can never be: Slack sends again what is not acknowledged."""
        payload = told.get("payload")
        if not isinstance(payload, dict):
            return True
        try:
            if told.get("type") == "events_api":
                await self.receiver.told(workspace, payload)
            elif told.get("type") == "interactive":
                await self.receiver.pressed(workspace.row.team, payload)
        except UsageError as error:
            log.get().warning("slack.refused", reason=error.message)
        except LampError as error:
            log.get().warning("slack.failed", reason=error.message)
            return False
        except Exception as error:  # noqa: BLE001  one message's bug must not end the socket
            log.get().error("slack.failed", exc_info=error)
            return False
        return True


def _read(text: str) -> dict[str, Any]:
    try:
        found = json_text.parse(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
