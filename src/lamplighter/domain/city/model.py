"""The city as declared: every section and key of `city.toml` and `topology.toml`, with its default and meaning."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from lamplighter.domain.city import limits
from lamplighter.domain.city.changes import POOL_SIZE, PROMPT_MODES, AgentOverride, Patches
from lamplighter.domain.city.keys import named, pairs, rows, span, switch, table, text, texts, unused, whole
from lamplighter.domain.city.run_sections import Artifacts, Budget, Limits, RigWorkspace, Runs, Workers
from lamplighter.domain.city.sections import (
    Api,
    Automations,
    Beads,
    Daemon,
    Dolt,
    Events,
    Formulas,
    Mail,
    Notifications,
    Oidc,
    Retention,
    Session,
    Store,
    Workspace,
)
from lamplighter.kit.records import record


@dataclass(frozen=True, kw_only=True)
class TopologySource:
    source: str = field(metadata=text("Git URL to fetch from.", limits.not_empty))
    ref: str = field(default="", metadata=text("Branch, tag or commit; the default branch when unset."))
    path: str = field(default="", metadata=text("Directory of the topology inside the repository."))


@dataclass(frozen=True, kw_only=True)
class Provider:
    command: str = field(metadata=text("The program.", limits.not_empty))
    display_name: str = field(default="", metadata=text("Name for people."))
    args: tuple[str, ...] = field(default=(), metadata=texts("Its arguments."))
    prompt_mode: str = field(
        default="arg", metadata=text("How it takes its prompt: `arg`, `flag` or `none`.", PROMPT_MODES)
    )
    prompt_flag: str = field(default="", metadata=text("The flag before the prompt in mode `flag`."))
    ready_delay_ms: int | None = field(
        default=None, metadata=whole("Milliseconds until it is ready, without a prefix.", limits.at_least(0))
    )
    ready_prompt_prefix: str = field(default="", metadata=text("Start of the line that shows that it is ready."))
    process_names: tuple[str, ...] = field(default=(), metadata=texts("Names of its processes, for liveness."))
    emits_permission_warning: bool = field(default=False, metadata=switch("It asks for permission at its start."))
    env: Mapping[str, str] = field(default_factory=dict, metadata=pairs("Its environment."))


@dataclass(frozen=True, kw_only=True)
class Pool:
    min: int = field(default=0, metadata=whole("Fewest instances.", POOL_SIZE))
    max: int = field(default=0, metadata=whole("Most instances; 0 turns the pool off.", POOL_SIZE))
    check: str = field(default="", metadata=text("Command that prints how many are wanted; counts beads when unset."))
    drain_timeout: timedelta = field(
        default=timedelta(minutes=5), metadata=span("How long a draining instance may take; `0s` for ever.")
    )


@dataclass(frozen=True, kw_only=True)
class Agent:
    name: str = field(metadata=text("Its name, unique within `dir`.", limits.plain_name))
    dir: str = field(default="", metadata=text("The rig it belongs to, or its directory under the city; a template."))
    suspended: bool = field(default=False, metadata=switch("Not started; stopped when running."))
    provider: str = field(default="", metadata=text("Its provider; the workspace's when unset."))
    start_command: str = field(default="", metadata=text("Command in place of any provider; a template."))
    args: tuple[str, ...] | None = field(default=None, metadata=texts("Arguments in place of the provider's."))
    prompt_template: str = field(default="", metadata=text("File of its prompt, a template."))
    prompt_mode: str = field(
        default="", metadata=text("`arg`, `flag` or `none`; the provider's when unset.", PROMPT_MODES)
    )
    prompt_flag: str = field(default="", metadata=text("The flag before the prompt in mode `flag`."))
    nudge: str = field(default="", metadata=text("Typed once after its start."))
    resume: str = field(
        default="",
        metadata=text(
            "`always`: started again with its conversation; `never`: each time anew. Unset: `never` for a pool.",
            limits.one_of("", "always", "never"),
        ),
    )
    env: Mapping[str, str] = field(default_factory=dict, metadata=pairs("Its environment; also seen by its prompt."))
    ready_delay_ms: int | None = field(
        default=None, metadata=whole("Milliseconds until it is ready, without a prefix.", limits.at_least(0))
    )
    ready_prompt_prefix: str = field(default="", metadata=text("Start of the line that shows that it is ready."))
    process_names: tuple[str, ...] | None = field(default=None, metadata=texts("Names of its processes, for liveness."))
    emits_permission_warning: bool | None = field(default=None, metadata=switch("It asks for permission at its start."))
    pool: Pool | None = field(default=None, metadata=table("Makes it a pool of instances.", Pool))
    work_query: str = field(default="", metadata=text("Command that finds its work."))
    sling_query: str = field(default="", metadata=text("Command that gives it work; `{}` is the bead."))
    idle_timeout: timedelta | None = field(default=None, metadata=span("Restarted after this much silence."))
    install_agent_hooks: tuple[str, ...] | None = field(
        default=None, metadata=texts("Hooks to install, in place of the workspace's.", limits.hooks)
    )
    hooks_installed: bool | None = field(
        default=None, metadata=switch("Whether hooks are there; found out when unset.")
    )
    pre_start: tuple[str, ...] = field(default=(), metadata=texts("Commands before its session is made; templates."))
    session_setup: tuple[str, ...] = field(default=(), metadata=texts("Commands after its session is made; templates."))
    session_setup_script: str = field(default="", metadata=text("Script after those."))
    overlay_dir: str = field(default="", metadata=text("Directory copied into its working directory."))
    default_sling_formula: str = field(default="", metadata=unused("Not used."))
    depends_on: tuple[str, ...] = field(default=(), metadata=texts("Agents that must run before it starts."))
    config_dir: Path = field(default=Path(), compare=False)

    @property
    def qualified_name(self) -> str:
        return f"{self.dir}/{self.name}" if self.dir else self.name


@dataclass(frozen=True, kw_only=True)
class Rig:
    name: str = field(metadata=text("Its name.", limits.plain_name))
    path: str = field(metadata=text("Its directory; relative to the city.", limits.not_empty))
    prefix: str = field(
        default="", metadata=text("Prefix of its beads; derived from the name when unset.", limits.prefix)
    )
    suspended: bool = field(default=False, metadata=switch("Its agents are not started, its automations do not fire."))
    topology: str = field(default="", metadata=text("One topology for the rig; comes before `topologies`."))
    topologies: tuple[str, ...] = field(
        default=(), metadata=texts("Topologies whose agents and formulas join the rig.")
    )
    formulas_dir: str = field(default="", metadata=text("The rig's own formulas and automations."))
    overrides: tuple[AgentOverride, ...] = field(
        default=(), metadata=rows("Changes to agents of this rig.", AgentOverride)
    )
    workspace: RigWorkspace | None = field(
        default=None, metadata=table("How runs' worktrees are made ready.", RigWorkspace)
    )
    default_sling_target: str = field(default="", metadata=unused("Not used."))


@dataclass(frozen=True, kw_only=True)
class Configuration:
    name: str = field(metadata=text("Its name.", limits.plain_name))
    description: str = field(default="", metadata=text("What it is for; automations choose by it."))
    rig: str = field(default="", metadata=text("The rig a run works in."))
    path: str = field(default="", metadata=text("The directory a run works in, in place of a rig."))
    preset: str = field(default="", metadata=text("The agent program; the workspace's provider when unset."))
    model: str = field(default="", metadata=text("The model it is asked to use."))
    mode: str = field(
        default="",
        metadata=text(
            "What it may do: `approval`, `plan` or `full_access`.", limits.one_of("", "approval", "plan", "full_access")
        ),
    )
    effort: str = field(
        default="",
        metadata=text(
            "How hard the model is to think: `low`, `medium`, `high` or `max`.",
            limits.one_of("", "low", "medium", "high", "max"),
        ),
    )
    home: str = field(
        default="",
        metadata=text(
            "Directory of a login of its own for the program, absolute or below the city; else it is that of the user."
        ),
    )
    fallback_preset: str = field(
        default="", metadata=text("The agent program to take while its provider's limit is reached.")
    )
    fallback_model: str = field(default="", metadata=text("The model to take while its provider's limit is reached."))
    env: Mapping[str, str] = field(default_factory=dict, metadata=pairs("Its environment."))


@record
class FormulaLayers:
    """Directories of formulas and automations, low to high; a rig's list holds only what the city's does not.

    `automations` are those of the city's automations: the city's layers, and its root below its own layer.
    """

    city: tuple[Path, ...] = ()
    rigs: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    automations: tuple[Path, ...] = ()

    def of(self, rig: str) -> tuple[Path, ...]:
        """All layers that a rig's formulas are looked up in."""
        return (*self.city, *self.rigs.get(rig, ()))


@dataclass(frozen=True, kw_only=True)
class City:
    include: tuple[str, ...] = field(default=(), metadata=texts("Files merged into this one, in order."))
    workspace: Workspace = field(default_factory=Workspace, metadata=table("The city itself.", Workspace))
    store: Store = field(default_factory=Store, metadata=table("The database.", Store))
    api: Api = field(default_factory=Api, metadata=table("The HTTP API and the console.", Api))
    oidc: Oidc = field(default_factory=Oidc, metadata=table("Signing in at an OpenID provider.", Oidc))
    daemon: Daemon = field(default_factory=Daemon, metadata=table("The controller.", Daemon))
    session: Session = field(default_factory=Session, metadata=table("Sessions of agents.", Session))
    runs: Runs = field(default_factory=Runs, metadata=table("Runs of automations.", Runs))
    limits: Limits = field(default_factory=Limits, metadata=table("What may be at work at once.", Limits))
    budget: Budget = field(default_factory=Budget, metadata=table("What agent runs may use in a day.", Budget))
    workers: Workers = field(default_factory=Workers, metadata=table("The run pipeline.", Workers))
    automations: Automations = field(default_factory=Automations, metadata=table("All automations.", Automations))
    formulas: Formulas = field(default_factory=Formulas, metadata=table("Formulas.", Formulas))
    beads: Beads = field(default_factory=Beads, metadata=table("Beads.", Beads))
    mail: Mail = field(default_factory=Mail, metadata=table("Mail between agents.", Mail))
    events: Events = field(default_factory=Events, metadata=table("The event bus.", Events))
    artifacts: Artifacts = field(default_factory=Artifacts, metadata=table("What runs leave behind.", Artifacts))
    notifications: Notifications = field(
        default_factory=Notifications, metadata=table("Notices to people.", Notifications)
    )
    retention: Retention = field(default_factory=Retention, metadata=table("How long records are kept.", Retention))
    dolt: Dolt = field(
        default_factory=Dolt,
        metadata=table("The SQL server behind `bd`; accepted, not used.", Dolt, unused=True),
    )
    providers: Mapping[str, Provider] = field(default_factory=dict, metadata=named("Agent programs.", Provider))
    topologies: Mapping[str, TopologySource] = field(
        default_factory=dict, metadata=named("Topologies from git.", TopologySource)
    )
    agents: tuple[Agent, ...] = field(default=(), metadata=rows("Agents.", Agent))
    rigs: tuple[Rig, ...] = field(default=(), metadata=rows("Project directories.", Rig))
    configurations: tuple[Configuration, ...] = field(
        default=(), metadata=rows("Where and with what agent runs work.", Configuration)
    )
    patches: Patches = field(default_factory=Patches, metadata=table("Changes to what other files declare.", Patches))
    root: Path = field(default=Path(), compare=False)
    prefix: str = ""
    layers: FormulaLayers = field(default_factory=FormulaLayers, compare=False)

    @property
    def name(self) -> str:
        return self.workspace.name

    def rig(self, name: str) -> Rig | None:
        return next((rig for rig in self.rigs if rig.name == name), None)

    def rig_path(self, rig: Rig) -> Path:
        return self.root / rig.path

    def agent(self, qualified: str) -> Agent | None:
        return next((agent for agent in self.agents if agent.qualified_name == qualified), None)


@dataclass(frozen=True, kw_only=True)
class TopologyMeta:
    name: str = field(metadata=text("Its name.", limits.plain_name))
    schema: int = field(metadata=whole("Version of this format: 1."))
    version: str = field(default="", metadata=unused("Not used."))
    requires_gc: str = field(default="", metadata=unused("Not used."))
    city_agents: tuple[str, ...] = field(default=(), metadata=texts("Agents for the city; the others are for rigs."))
    includes: tuple[str, ...] = field(
        default=(), metadata=texts("Topologies it builds on: directories, or `<git-url>//<subdir>#<ref>`.")
    )


@dataclass(frozen=True, kw_only=True)
class TopologyFormulas:
    dir: str = field(default="formulas", metadata=text("Its formulas and automations, from its own directory."))


@dataclass(frozen=True, kw_only=True)
class TopologyFile:
    topology: TopologyMeta = field(metadata=table("The topology itself.", TopologyMeta))
    agents: tuple[Agent, ...] = field(default=(), metadata=rows("Its agents.", Agent))
    providers: Mapping[str, Provider] = field(default_factory=dict, metadata=named("Its agent programs.", Provider))
    formulas: TopologyFormulas = field(
        default_factory=TopologyFormulas, metadata=table("Its formulas.", TopologyFormulas)
    )
