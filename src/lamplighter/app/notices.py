"""What sends the notices of a city."""

from collections.abc import Callable, Mapping

from lamplighter.adapters.notices.messenger import CityMessenger
from lamplighter.adapters.slack.notices import SlackNotices
from lamplighter.adapters.slack.web_api import SlackWebApi
from lamplighter.app.automations import command_parent
from lamplighter.app.fronts import with_fronts
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.model import City
from lamplighter.ports.secrets import SecretSource
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.services.slack.workspaces import Workspaces
from lamplighter.store.tx import Store


def messenger_of(
    opened: OpenCity,
    env: Callable[[], Mapping[str, str]],
    secrets: SecretSource,
    workspaces: Workspaces,
    city: Callable[[], City],
) -> CityMessenger:
    calls = SlackWebApi.of(opened.settings.env)
    slack = SlackNotices(calls, workspaces.for_notices, lambda: city().api.public_url)
    return CityMessenger(opened.paths.root, opened.clock, env, opened.settings.env, secrets, slack)


def messenger_here(opened: OpenCity, store: Store, secrets: StoredSecrets, city: Callable[[], City]) -> CityMessenger:
    """For a process that has no loops, such as a command."""
    return messenger_of(
        opened, lambda: command_parent(with_fronts(opened, city())), secrets, Workspaces(store, secrets), city
    )
