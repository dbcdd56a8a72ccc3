"""What Slack tells the city: proved over the raw bytes, then kept or carried out in one transaction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lamplighter.domain.access import Unauthenticated
from lamplighter.domain.slack.events import said as read_said
from lamplighter.domain.slack.events import stopped
from lamplighter.domain.slack.requests import unverified
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.records import changed
from lamplighter.services.context import Configured, Context, acting
from lamplighter.services.slack import conversing, picking, pressing, stopping
from lamplighter.services.slack.installing import SIGNING
from lamplighter.services.slack.workspaces import Workspace, Workspaces

ACTOR = "slack"
NOTED_EVERY = 10.0


class NotSlack(Unauthenticated):
    def __init__(self, why: str) -> None:
        LampError.__init__(self, f"The request is not Slack's: {why}.", hint="Check the signing secret.")


@dataclass(frozen=True)
class SlackReceiver:
    workspaces: Workspaces
    clock: Clock
    ids: IdSource
    configured: Callable[[], Configured]
    _noted: dict[str, float] = field(default_factory=dict)
    """When it was last noted that a workspace told something, by the clock that never steps back."""

    async def proved(self, headers: Mapping[str, str], body: bytes) -> Workspace:
        """The workspace whose signing secret proves the request. Raises NotSlack, SecretLocked."""
        why = "no workspace with a signing secret is installed"
        for row in await self.workspaces.store.read(lambda tx: tx.slack.all()):
            if row.hears:
                found = await self.workspaces.of(row.team)
                why = unverified(found.secrets.get(SIGNING, ""), headers, body, self.clock.now())
                if not why and found.secrets.get(SIGNING):
                    return found
        raise NotSlack(why)

    async def pressed(self, team: str, payload: Mapping[str, Any]) -> None:
        """Carry out the press of a button; anything else is nothing to us. Raises UsageError, StoreUnavailable."""
        ours = pressing.button(payload)
        if ours is None:
            return
        if ours.team != team:
            raise UsageError("The press is of another workspace.")
        await self._came(team)
        store, ctx = self.workspaces.store, self.context()
        pressed, ended, chosen = pressing.read(payload), stopping.read(payload), picking.read(payload)
        if pressed is not None:
            await pressing.press(store, pressed, ctx)
        elif ended is not None:
            await stopping.stop(store, ended, ctx)
        elif chosen is not None:
            await picking.pick(store, chosen, ctx)

    async def told(self, workspace: Workspace, payload: Mapping[str, Any]) -> None:
        """Take up what an event tells, if it is a message to us or in a thread of ours, or is to end what works there.

        Raises UsageError, StoreUnavailable.
        """
        event, team = payload.get("event"), workspace.row.team
        if payload.get("type") != "event_callback" or not isinstance(event, Mapping):
            return
        if payload.get("team_id") != team:
            raise UsageError("The event is of another workspace.")
        await self._came(team)
        row = workspace.row
        said = read_said(team, event, bot_user=row.bot_user, bot_id=row.bot_id)
        if said is not None:
            await conversing.speak(self.workspaces.store, said, self.context())
        wanted = stopped(team, event, bot_user=row.bot_user)
        if wanted is not None:
            await stopping.stop(self.workspaces.store, wanted, self.context())

    async def _came(self, team: str) -> None:
        """Note that Slack told something, though not each time."""
        now = self.clock.monotonic()
        if now - self._noted.get(team, -NOTED_EVERY) >= NOTED_EVERY:
            await self.workspaces.store.transact(lambda tx: tx.slack.came(team, self.clock.now()))
            self._noted[team] = now

    def context(self) -> Context:
        return changed(acting(ACTOR, self.clock.now(), self.ids), configured=self.configured())
