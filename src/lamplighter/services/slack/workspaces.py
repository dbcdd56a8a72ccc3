"""The workspaces of Slack with their tokens, opened when something is to be sent there or was received from there."""

from dataclasses import dataclass

from lamplighter.ports.messenger import NotTaken
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.services.slack.installing import BOT, SlackUnknown, sealed_of
from lamplighter.store.slack import Installation
from lamplighter.store.tx import Store, Tx


@dataclass(frozen=True)
class Workspace:
    row: Installation
    secrets: dict[str, str]

    @property
    def token(self) -> str:
        return self.secrets[BOT]


@dataclass(frozen=True)
class Workspaces:
    store: Store
    secrets: StoredSecrets

    async def of(self, team: str) -> Workspace:
        """Raises SlackUnknown, SecretLocked."""
        row, sealed = await self.store.read(sealed_of, team)
        values = await self.secrets.values(sealed)
        return Workspace(row, {one.name.rpartition("/")[2]: value for one, value in zip(sealed, values, strict=True)})

    async def for_notices(self, team: str) -> tuple[str, str, bool]:
        """The id of the workspace, the bot's token, and whether presses of buttons reach the city; without a name the
        only workspace there is.

        Raises NotTaken, SecretLocked.
        """
        try:
            found = await self.of(team or await self.store.read(_only))
        except SlackUnknown as error:
            raise NotTaken(error.message, hint=error.hint) from error
        return found.row.team, found.token, bool(found.row.hears or found.row.has_socket)


def _only(tx: Tx) -> str:
    """Raises NotTaken."""
    found = tx.slack.all()
    if len(found) != 1:
        told = "No workspace of Slack is installed" if not found else "Several workspaces of Slack are installed"
        hint = "Install one with `lamp slack install`." if not found else "Say which one as `team` of the destination."
        raise NotTaken(f"{told}.", hint=hint)
    return found[0].team
