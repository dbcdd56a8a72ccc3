"""How browsers sign in to a city's console, as this process has it."""

import secrets
from collections.abc import Callable
from datetime import datetime

from lamplighter.adapters.files.browser_sessions import BrowserSessions
from lamplighter.adapters.files.secrets import owner_token
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.access import Actor, system
from lamplighter.domain.city.sections import Oidc
from lamplighter.kit.records import changed
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.context import acting
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.services.signing_in import sign_in

TYPE_CHECKING = False
if TYPE_CHECKING:  # the console is loaded at its first request
    from lamplighter.web.console.provider_sign_in import ProviderSignIn

ACTOR = "sign-in"


def browser_sessions(city: OpenCity) -> BrowserSessions:
    return BrowserSessions(city.paths.runtime, city.clock, owner_token(city.paths.runtime))


def at_provider(operations: CityOperations, kept: StoredSecrets) -> "ProviderSignIn":
    from lamplighter.adapters.identities.openid import OpenIdProvider
    from lamplighter.ports.identities import Client
    from lamplighter.web.console.provider_sign_in import ProviderSignIn, Settings

    configured: Callable[[], Oidc] = lambda: operations.configured().city.oidc  # noqa: E731
    store = operations.host.store

    async def settings() -> Settings:
        oidc = configured()
        opened = await kept.opened({"client": oidc.client_secret}) if oidc.client_secret else {"client": ""}
        return Settings(Client(oidc.issuer, oidc.client_id, opened["client"]), oidc.domains)

    async def admit(address: str, found: Settings, now: datetime) -> Actor:
        ctx = changed(acting(ACTOR, now, operations.ids), actor=system(address), surface="web")
        unknown = secrets.token_hex(32)
        return await store.transact(sign_in, address, found.client.issuer, found.domains, unknown, ctx)

    return ProviderSignIn(OpenIdProvider(), lambda: configured().issuer, settings, admit)
