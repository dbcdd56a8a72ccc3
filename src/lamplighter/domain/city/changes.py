"""The keys that patches and overrides may change; an unset key leaves the value as it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lamplighter.domain.city import limits
from lamplighter.domain.city.keys import pairs, rows, span, switch, table, text, texts, unused, whole

PROMPT_MODES = limits.one_of("arg", "flag", "none")
POOL_SIZE = limits.between(0, 10_000)


@dataclass(frozen=True, kw_only=True)
class PoolChange:
    min: int | None = field(default=None, metadata=whole("Fewest instances.", POOL_SIZE))
    max: int | None = field(default=None, metadata=whole("Most instances.", POOL_SIZE))
    check: str | None = field(default=None, metadata=text("Command that prints how many are wanted."))
    drain_timeout: timedelta | None = field(default=None, metadata=span("How long a draining instance may take."))


@dataclass(frozen=True, kw_only=True)
class AgentChange:
    """What a patch or an override may change; an unset key or an empty list leaves the value as it is."""

    suspended: bool | None = field(default=None, metadata=switch("Suspend or resume it."))
    pool: PoolChange | None = field(default=None, metadata=table("Other bounds of its pool.", PoolChange))
    env: Mapping[str, str] = field(default_factory=dict, metadata=pairs("Variables to add or replace."))
    env_remove: tuple[str, ...] = field(default=(), metadata=texts("Variables to remove."))
    pre_start: tuple[str, ...] = field(default=(), metadata=texts("Other commands before its session is made."))
    prompt_template: str | None = field(default=None, metadata=text("Another prompt file, from the city's directory."))
    provider: str | None = field(default=None, metadata=text("Another provider."))
    start_command: str | None = field(default=None, metadata=text("Another command."))
    nudge: str | None = field(default=None, metadata=text("Another nudge."))
    resume: str | None = field(
        default=None, metadata=text("`always` or `never`.", limits.one_of("", "always", "never"))
    )
    idle_timeout: timedelta | None = field(default=None, metadata=span("Another idle limit."))
    install_agent_hooks: tuple[str, ...] = field(default=(), metadata=texts("Other hooks to install.", limits.hooks))
    hooks_installed: bool | None = field(default=None, metadata=switch("Whether hooks are there."))
    session_setup: tuple[str, ...] = field(default=(), metadata=texts("Other commands after its session is made."))
    session_setup_script: str | None = field(default=None, metadata=text("Another script after those."))
    overlay_dir: str | None = field(default=None, metadata=text("Another overlay, from the city's directory."))
    default_sling_formula: str | None = field(default=None, metadata=unused("Not used."))


@dataclass(frozen=True, kw_only=True)
class AgentPatch(AgentChange):
    name: str = field(metadata=text("The agent to change.", limits.not_empty))
    dir: str = field(default="", metadata=text("Its `dir`; the city when unset."))


@dataclass(frozen=True, kw_only=True)
class AgentOverride(AgentChange):
    agent: str = field(metadata=text("The agent of this rig to change.", limits.not_empty))
    dir: str | None = field(default=None, metadata=text("Another `dir`."))


@dataclass(frozen=True, kw_only=True)
class RigPatch:
    name: str = field(metadata=text("The rig to change.", limits.not_empty))
    path: str | None = field(default=None, metadata=text("Another path.", limits.not_empty))
    prefix: str | None = field(default=None, metadata=text("Another bead prefix.", limits.prefix))
    suspended: bool | None = field(default=None, metadata=switch("Suspend or resume it."))


@dataclass(frozen=True, kw_only=True)
class ProviderPatch:
    name: str = field(metadata=text("The provider to change.", limits.not_empty))
    command: str | None = field(default=None, metadata=text("Another program.", limits.not_empty))
    args: tuple[str, ...] = field(default=(), metadata=texts("Other arguments."))
    prompt_mode: str | None = field(default=None, metadata=text("Another way to take the prompt.", PROMPT_MODES))
    prompt_flag: str | None = field(default=None, metadata=text("Another flag before the prompt."))
    ready_delay_ms: int | None = field(default=None, metadata=whole("Another delay.", limits.at_least(0)))
    env: Mapping[str, str] = field(default_factory=dict, metadata=pairs("Variables to add or replace."))
    env_remove: tuple[str, ...] = field(default=(), metadata=texts("Variables to remove."))
    replace: bool = field(default=False, metadata=switch("Start from nothing instead of the old one.", name="_replace"))


@dataclass(frozen=True, kw_only=True)
class Patches:
    agents: tuple[AgentPatch, ...] = field(default=(), metadata=rows("Changes to agents.", AgentPatch))
    rigs: tuple[RigPatch, ...] = field(default=(), metadata=rows("Changes to rigs.", RigPatch))
    providers: tuple[ProviderPatch, ...] = field(default=(), metadata=rows("Changes to providers.", ProviderPatch))
