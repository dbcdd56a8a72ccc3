"""What the automations of a city need in a process that is not its controller: rules, commands and conditions."""

from collections.abc import Sequence
from functools import cached_property

from lamplighter.app.automations import command_parent, command_runner, rules_of
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.conditions import check_all, try_command
from lamplighter.domain.automations.gates import Checked
from lamplighter.domain.automations.model import Automation
from lamplighter.ports.commands import Command, CommandEnded, CommandRunner
from lamplighter.ports.secrets import SecretSource
from lamplighter.services.automations.outlook import Asked


class LocalAutomations:
    def __init__(self, city: OpenCity, secrets: SecretSource) -> None:
        self._city = city
        self._secrets = secrets

    @property
    def active(self) -> ActiveConfig:
        """The configuration in force, as the run pipeline uses it."""
        city, env = self._city.config.city, self._city.settings.env
        return ActiveConfig(city, rules_of(city, env), command_parent(env), secrets=self._secrets)

    @cached_property
    def commands(self) -> CommandRunner:
        return command_runner(self._city.paths, self._city.clock, self._city.ids)

    async def check_conditions(self, asked: Sequence[Asked]) -> list[Checked]:
        return await check_all(self.active, self.commands, asked)

    async def try_command(self, automation: Automation, command: Command) -> CommandEnded:
        return await try_command(self.active, self.commands, automation, command)
