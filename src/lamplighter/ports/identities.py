"""Who somebody is, as an OpenID provider says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Client:
    """What a city is at its provider; without a secret it is a public client."""

    issuer: str
    client_id: str
    secret: str = ""


@dataclass(frozen=True)
class Asked:
    """What a sign-in was begun with; only the process that began it knows it all."""

    returns_to: str
    state: str
    nonce: str
    verifier: str


class IdentityProvider(Protocol):
    async def address(self, client: Client, asked: Asked) -> str:
        """Where a browser is sent to sign in. Raises Unavailable."""
        ...

    async def claims(self, client: Client, asked: Asked, code: str) -> Mapping[str, Any]:
        """What the provider says of whoever came back with this code, verified. Raises NotProved, Unavailable."""
        ...
