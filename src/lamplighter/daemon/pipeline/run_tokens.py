"""Opens the tokens of connections for the programs of a run."""

from dataclasses import dataclass

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.domain.automations.model import Automation
from lamplighter.domain.secrets import REFERENCE, SecretLocked, SecretUnknown
from lamplighter.kit import log
from lamplighter.services.automations.tokens import NoToken, Token, tokens_of
from lamplighter.store.tx import Store

NOT_OPENED = (SecretUnknown, SecretLocked, NoToken)


@dataclass(frozen=True)
class RunTokens:
    store: Store
    active: ActiveConfig

    async def env(self, automation: Automation) -> dict[str, str]:
        """A variable for each token; of a trigger's connection only if it can be opened.

        Raises SecretUnknown, SecretLocked, NoToken for a connection that the automation lists.
        """
        if not automation.connections:
            return {}
        opened = {}
        for token in await self.store.read(tokens_of, automation):
            try:
                opened[token.variable] = await self._value(token)
            except (SecretUnknown, SecretLocked) as error:
                if token.listed:
                    raise
                log.get().warning("run.token_left_out", connection=token.connection, error=error.message)
        return opened

    async def _value(self, token: Token) -> str:
        return (await self.active.secrets.opened({"TOKEN": f"{REFERENCE}{token.secret}"}))["TOKEN"]
