"""The configuration that city.toml and the files it names result in: checked, shown, and explained."""

import contextlib
from collections.abc import Sequence
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.kit.threads import in_thread
from lamplighter.services.context import Context
from lamplighter.services.operation import LOOK_S, Http, effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host


@record
class CheckedView:
    valid: bool
    notes: Sequence[str]
    revision: str
    agents: int
    rigs: int


@record
class ShownView:
    revision: str
    toml: str


@record
class SettingView:
    """A value, and where it was set."""

    key: str
    value: Any
    layer: str
    file: str | None
    line: int | None


@record
class CheckConfig:
    """Whether the configuration is right; every problem at once, each with file, key and line."""

    strict: bool = given("Notes count as problems, but for those about settings that are not used.", default=False)


@record
class ShowConfig:
    """The whole configuration as one file: fragments, topologies and patches in place."""

    provenance: bool = given("Say beside each value where it was set.", default=False)


@record
class ExplainConfig:
    """Which layer, file and line set KEY (`daemon.max_restarts`, or a whole section), or an agent's values."""

    key: str | None = given("A key, or a whole section.", default=None, positional=True)
    agent: str | None = given("Everything that is set for this agent.", default=None, metavar="NAME")


async def check_config(host: "Host", ask: CheckConfig, _ctx: Context) -> CheckedView:
    """Reads the files as they are now. Raises ConfigInvalid."""
    loaded = await in_thread(host.files.load, strict=ask.strict)
    notes = [str(note) for note in loaded.warnings]
    from lamplighter.domain.city.secrets import unknown_secrets
    from lamplighter.services.runs import spoken

    with contextlib.suppress(LampError):  # the database need not be there to check the files
        known = await host.store.read(lambda tx: [row.name for row in tx.secrets.all()])
        notes += unknown_secrets(loaded.city, known)
        notes += await host.store.read(spoken.led_nowhere, loaded.city)
    return CheckedView(True, notes, loaded.revision, len(loaded.city.agents), len(loaded.city.rigs))


async def show_config(host: "Host", ask: ShowConfig, _ctx: Context) -> ShownView:
    from lamplighter.domain.city.show import show

    loaded = host.roster.loaded
    return ShownView(loaded.revision, show(loaded, provenance=ask.provenance))


async def explain_config(host: "Host", ask: ExplainConfig, _ctx: Context) -> list[SettingView]:
    """Raises UsageError unless either a key or an agent is named, NotFound."""
    from lamplighter.domain.city.show import explain, explain_agent

    if (ask.key is None) == (ask.agent is None):
        raise UsageError("Name a key, or an agent with --agent.", hint="Such as `lamp config explain daemon`.")
    loaded = host.roster.loaded
    found = explain_agent(loaded, ask.agent) if ask.agent is not None else explain(loaded, ask.key or "")
    return [SettingView(one.key, one.value, one.layer, one.file or None, one.line) for one in found]


CHECK = effect(
    "config.check", Verb.READ, CheckConfig, CheckedView, check_config, here=True, http=Http("GET", "/config/check")
)
SHOW = effect(
    "config.show", Verb.READ, ShowConfig, ShownView, show_config, here_after=LOOK_S, http=Http("GET", "/config")
)
EXPLAIN = effect(
    "config.explain",
    Verb.READ,
    ExplainConfig,
    list[SettingView],
    explain_config,
    here_after=LOOK_S,
    http=Http("GET", "/config/explain"),
)
