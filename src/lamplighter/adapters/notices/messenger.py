"""Sends notices by what their destination is."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from lamplighter.adapters.notices import apprise, command, email, ntfy, webhook
from lamplighter.domain.city.destination_kinds import IN_SLACK
from lamplighter.domain.city.sections import Destination
from lamplighter.domain.delivery.effects import Answer, CannotAsk
from lamplighter.domain.secrets import SecretLocked, SecretUnknown, masking
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.ports.messenger import Gone, Message, Messenger, NotTaken
from lamplighter.ports.secrets import NoSecrets, SecretSource


@dataclass(frozen=True)
class CityMessenger:
    """`env` returns the environment of commands; `daemon_env` is where `signing_env` is looked up."""

    root: Path
    clock: Clock
    env: Callable[[], Mapping[str, str]]
    daemon_env: Mapping[str, str]
    secrets: SecretSource = field(default_factory=NoSecrets)
    slack: Messenger | None = None
    """Sends to destinations of the kinds IN_SLACK."""

    async def look(self, destination: Destination, message: Message, since: datetime) -> Answer:
        if destination.kind in IN_SLACK and self.slack is not None:
            return await self.slack.look(destination, message, since)
        return CannotAsk()

    async def send(self, destination: Destination, message: Message) -> Mapping[str, Any]:
        """What a destination answers is masked: it may repeat what it was sent."""
        if destination.kind in IN_SLACK and self.slack is not None:
            return await self.slack.send(destination, message)
        given = await self._opened(destination)
        try:
            return await self._sent(destination, message, given)
        except (NotTaken, Unavailable) as error:
            failed = await self._masked(destination, error, given)
        raise failed  # out here: the error as it was is no part of it

    async def _sent(self, destination: Destination, message: Message, given: Mapping[str, str]) -> Mapping[str, Any]:
        send = SENDERS.get(destination.kind)
        if send is None:
            raise NotTaken(f"{destination.name} is of kind `{destination.kind}`, which this version cannot send to.")
        return await send(self, destination, message, given)

    async def _opened(self, destination: Destination) -> dict[str, str]:
        """The secrets it refers to, by their references. Raises NotTaken: without them nothing is sent."""
        one = destination
        named = {text: text for text in (*one.signing, one.user, one.password, one.token, one.service) if text}
        try:
            return await self.secrets.opened(named)
        except (SecretUnknown, SecretLocked) as error:
            raise NotTaken(f"{one.name}: {error.message}", hint=error.hint) from error

    async def _masked(self, destination: Destination, error: LampError, given: Mapping[str, str]) -> LampError:
        own = masking([*given.values(), self.daemon_env.get(destination.signing_env, "")])
        kept = await self.secrets.mask()
        kind = Gone if isinstance(error, Gone) else NotTaken if isinstance(error, NotTaken) else Unavailable
        return kind(kept(own(error.message)), hint=error.hint)


async def _command(by: CityMessenger, to: Destination, message: Message, _given: Mapping[str, str]) -> Any:
    return await command.send(to, message, by.env(), by.root)


async def _webhook(by: CityMessenger, to: Destination, message: Message, given: Mapping[str, str]) -> Any:
    secrets = webhook.secrets_of(to, [given[one] for one in to.signing], by.daemon_env)
    return await webhook.send(to, message, secrets, by.clock.now().timestamp())


async def _email(_by: CityMessenger, to: Destination, message: Message, given: Mapping[str, str]) -> Any:
    login = email.Login(given.get(to.user, to.user), given.get(to.password, ""))
    return await email.send(to, message, login)


async def _ntfy(_by: CityMessenger, to: Destination, message: Message, given: Mapping[str, str]) -> Any:
    return await ntfy.send(to, message, given.get(to.token, "").strip())


async def _apprise(_by: CityMessenger, to: Destination, message: Message, given: Mapping[str, str]) -> Any:
    return await apprise.send(to, message, given[to.service])


Send = Callable[[CityMessenger, Destination, Message, Mapping[str, str]], Awaitable[Mapping[str, Any]]]
SENDERS: Mapping[str, Send] = {
    "command": _command,
    "webhook": _webhook,
    "email": _email,
    "ntfy": _ntfy,
    "apprise": _apprise,
}
"""How notices get to each kind of destination but those in Slack."""
