"""The city as declared: every section and key of `city.toml` and `topology.toml`, with its default and meaning."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from lamplighter.domain.city import limits
from lamplighter.domain.city.keys import named, pairs, rows, span, switch, table, text, texts, unused, whole

_MODES = limits.one_of("arg", "flag", "none")


@dataclass(frozen=True, kw_only=True)
class Workspace:
    name: str = field(default="", metadata=text("The city's name; its directory's name when unset."))
    provider: str = field(default="", metadata=text("Provider of agents that name none; found on `PATH` when unset."))
    start_command: str = field(default="", metadata=text("Command for agents when no provider is named anywhere."))
    suspended: bool = field(default=False, metadata=switch("Start nothing, and stop what runs."))
    session_template: str = field(
        default="gc-{{.City}}-{{.Agent}}",
        metadata=text("Session name; variables `.City`, `.Agent` (with `/` as `--`), `.Dir`, `.Name`."),
    )
    install_agent_hooks: tuple[str, ...] = field(
        default=(), metadata=texts("Programs to install hooks for.", limits.hooks)
    )
    topology: str = field(default="", metadata=text("One topology for the city; stands before `topologies`."))
    topologies: tuple[str, ...] = field(
        default=(), metadata=texts("Topologies whose agents and formulas join the city.")
    )
    timezone: str = field(default="", metadata=text("Zone of schedules that name none, such as `Europe/Berlin`."))
    isolation: str = field(default="", metadata=unused("Not used."))


@dataclass(frozen=True, kw_only=True)
class Beads:
    provider: str = field(
        default="store",
        metadata=text(
            "Where beads live: `store`, `file` (the same, with an import), `bd` or `exec:<script>`.",
            limits.provider("store", "file", "bd"),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class K8s:
    namespace: str = field(default="gc", metadata=text("Namespace of the pods."))
    image: str = field(default="", metadata=text("Image of the agents' container."))
    context: str = field(default="", metadata=text("Context of the kubeconfig; its current one when unset."))
    cpu_request: str = field(default="500m", metadata=text("CPU asked for a pod."))
    mem_request: str = field(default="1Gi", metadata=text("Memory asked for a pod."))
    cpu_limit: str = field(default="2", metadata=text("Most CPU of a pod."))
    mem_limit: str = field(default="4Gi", metadata=text("Most memory of a pod."))
    prebaked: bool = field(default=False, metadata=switch("The image holds the work directory; stage nothing."))


@dataclass(frozen=True, kw_only=True)
class Session:
    provider: str = field(
        default="",
        metadata=text(
            "Where sessions run: `tmux`, `subprocess`, `k8s`, `fake`, `fail` or `exec:<script>`; "
            "tmux where it is installed, else subprocess, when unset.",
            limits.provider("tmux", "subprocess", "k8s", "fake", "fail"),
        ),
    )
    k8s: K8s = field(default_factory=K8s, metadata=table("Pods of the `k8s` provider.", K8s))


@dataclass(frozen=True, kw_only=True)
class Mail:
    provider: str = field(
        default="",
        metadata=text(
            "Mail: beads when unset, else `fake`, `fail` or `exec:<script>`.", limits.provider("fake", "fail")
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Events:
    provider: str = field(
        default="",
        metadata=text(
            "Event bus: the store when unset, else `fake`, `fail` or `exec:<script>`.", limits.provider("fake", "fail")
        ),
    )
    export: bool = field(default=False, metadata=switch("Also write events to `.gc/events.jsonl`, rotated."))


@dataclass(frozen=True, kw_only=True)
class Dolt:
    port: int = field(default=3307, metadata=whole("Not used.", limits.port))
    host: str = field(default="localhost", metadata=text("Not used."))


@dataclass(frozen=True, kw_only=True)
class Formulas:
    dir: str = field(default=".gc/formulas", metadata=text("The city's own formulas and automations."))


@dataclass(frozen=True, kw_only=True)
class Daemon:
    patrol_interval: timedelta = field(
        default=timedelta(seconds=30), metadata=span("The longest time between two patrols.", limits.positive)
    )
    max_restarts: int = field(
        default=5, metadata=whole("Starts within the window that bring quarantine; 0 for never.", limits.at_least(0))
    )
    restart_window: timedelta = field(
        default=timedelta(hours=1), metadata=span("The sliding window in which starts count.", limits.positive)
    )
    shutdown_timeout: timedelta = field(
        default=timedelta(seconds=5), metadata=span("Grace between interrupt and kill; `0s` kills at once.")
    )
    wisp_gc_interval: timedelta | None = field(
        default=None, metadata=span("How often closed wisps are collected; never when unset.")
    )
    wisp_ttl: timedelta | None = field(
        default=None, metadata=span("How long a closed wisp is kept; for ever when unset.")
    )
    startup_grace: timedelta = field(
        default=timedelta(seconds=60), metadata=span("A session younger than this is never called idle.")
    )
    strategy: str = field(
        default="one_for_one",
        metadata=text(
            "Who else restarts when an agent dies: `one_for_one`, `one_for_all` or `rest_for_one`.",
            limits.one_of("one_for_one", "one_for_all", "rest_for_one"),
        ),
    )
    keep_quarantine: bool = field(default=True, metadata=switch("Quarantine outlives a restart of the daemon."))


@dataclass(frozen=True, kw_only=True)
class AutomationOverride:
    name: str = field(metadata=text("The automation to change.", limits.not_empty))
    rig: str | None = field(default=None, metadata=text("Only in this rig; everywhere when unset."))
    enabled: bool | None = field(default=None, metadata=switch("Whether it fires."))
    gate: str | None = field(default=None, metadata=text("Another gate."))
    interval: timedelta | None = field(default=None, metadata=span("Another interval."))
    schedule: str | None = field(default=None, metadata=text("Another cron line."))
    check: str | None = field(default=None, metadata=text("Another condition."))
    on: str | None = field(default=None, metadata=text("Another event type."))
    pool: str | None = field(default=None, metadata=text("Another target pool."))
    timeout: timedelta | None = field(default=None, metadata=span("Another time limit.", limits.positive))


@dataclass(frozen=True, kw_only=True)
class Automations:
    skip: tuple[str, ...] = field(default=(), metadata=texts("Names that never fire, in the city and every rig."))
    max_timeout: timedelta | None = field(
        default=None, metadata=span("Upper bound of every time limit.", limits.positive)
    )
    overrides: tuple[AutomationOverride, ...] = field(
        default=(), metadata=rows("Changes to single automations.", AutomationOverride)
    )


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
    prompt_mode: str = field(default="arg", metadata=text("How it takes its prompt: `arg`, `flag` or `none`.", _MODES))
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
    min: int = field(default=0, metadata=whole("Fewest instances.", limits.at_least(0)))
    max: int = field(default=0, metadata=whole("Most instances; 0 turns the pool off.", limits.at_least(0)))
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
    prompt_mode: str = field(default="", metadata=text("`arg`, `flag` or `none`; the provider's when unset.", _MODES))
    prompt_flag: str = field(default="", metadata=text("The flag before the prompt in mode `flag`."))
    nudge: str = field(default="", metadata=text("Typed once after its start."))
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
    default_sling_formula: str = field(default="", metadata=text("Formula attached to work given to it."))
    depends_on: tuple[str, ...] = field(default=(), metadata=texts("Agents that must run before it starts."))
    config_dir: Path = field(default=Path(), compare=False)

    @property
    def qualified_name(self) -> str:
        return f"{self.dir}/{self.name}" if self.dir else self.name


@dataclass(frozen=True, kw_only=True)
class PoolChange:
    min: int | None = field(default=None, metadata=whole("Fewest instances.", limits.at_least(0)))
    max: int | None = field(default=None, metadata=whole("Most instances.", limits.at_least(0)))
    check: str | None = field(default=None, metadata=text("Command that prints how many are wanted."))
    drain_timeout: timedelta | None = field(default=None, metadata=span("How long a draining instance may take."))


@dataclass(frozen=True, kw_only=True)
class AgentChange:
    """What a patch or an override may change; unset leaves as it is, and so does an empty list."""

    suspended: bool | None = field(default=None, metadata=switch("Suspend or resume it."))
    pool: PoolChange | None = field(default=None, metadata=table("Other bounds of its pool.", PoolChange))
    env: Mapping[str, str] = field(default_factory=dict, metadata=pairs("Variables to add or replace."))
    env_remove: tuple[str, ...] = field(default=(), metadata=texts("Variables to remove."))
    pre_start: tuple[str, ...] = field(default=(), metadata=texts("Other commands before its session is made."))
    prompt_template: str | None = field(default=None, metadata=text("Another prompt file, from the city's directory."))
    provider: str | None = field(default=None, metadata=text("Another provider."))
    start_command: str | None = field(default=None, metadata=text("Another command."))
    nudge: str | None = field(default=None, metadata=text("Another nudge."))
    idle_timeout: timedelta | None = field(default=None, metadata=span("Another idle limit."))
    install_agent_hooks: tuple[str, ...] = field(default=(), metadata=texts("Other hooks to install.", limits.hooks))
    hooks_installed: bool | None = field(default=None, metadata=switch("Whether hooks are there."))
    session_setup: tuple[str, ...] = field(default=(), metadata=texts("Other commands after its session is made."))
    session_setup_script: str | None = field(default=None, metadata=text("Another script after those."))
    overlay_dir: str | None = field(default=None, metadata=text("Another overlay, from the city's directory."))
    default_sling_formula: str | None = field(default=None, metadata=text("Another formula for its work."))


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
    prompt_mode: str | None = field(default=None, metadata=text("Another way to take the prompt.", _MODES))
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


@dataclass(frozen=True, kw_only=True)
class Rig:
    name: str = field(metadata=text("Its name.", limits.plain_name))
    path: str = field(metadata=text("Its directory; relative to the city.", limits.not_empty))
    prefix: str = field(
        default="", metadata=text("Prefix of its beads; derived from the name when unset.", limits.prefix)
    )
    suspended: bool = field(default=False, metadata=switch("Its agents are not started, its automations do not fire."))
    topology: str = field(default="", metadata=text("One topology for the rig; stands before `topologies`."))
    topologies: tuple[str, ...] = field(
        default=(), metadata=texts("Topologies whose agents and formulas join the rig.")
    )
    formulas_dir: str = field(default="", metadata=text("The rig's own formulas and automations."))
    overrides: tuple[AgentOverride, ...] = field(
        default=(), metadata=rows("Changes to agents of this rig.", AgentOverride)
    )
    default_sling_target: str = field(default="", metadata=text("Agent that gets work given to the rig."))


@dataclass(frozen=True, kw_only=True)
class Store:
    url: str = field(
        default="",
        metadata=text("Database, `postgresql://…`; SQLite inside `.gc/` when unset.", limits.no_password),
    )


@dataclass(frozen=True, kw_only=True)
class Api:
    host: str = field(default="127.0.0.1", metadata=text("Address to listen on.", limits.not_empty))
    port: int = field(default=5267, metadata=whole("Port to listen on; 0 takes a free one.", limits.port))
    public_url: str = field(default="", metadata=text("The address people and agents reach it at.", limits.no_password))


@dataclass(frozen=True, kw_only=True)
class Workers:
    enrich: int = field(default=5, metadata=whole("Runs enriched side by side.", limits.at_least(0)))
    execute: int = field(default=3, metadata=whole("Runs started side by side.", limits.at_least(0)))
    notify: int = field(default=5, metadata=whole("Notices sent side by side.", limits.at_least(0)))


@dataclass(frozen=True, kw_only=True)
class Runs:
    deadline: timedelta = field(
        default=timedelta(hours=2),
        metadata=span("The longest a run may take, where its automation says nothing.", limits.positive),
    )
    idle: timedelta = field(
        default=timedelta(minutes=30), metadata=span("A running run this long without a sign of life is looked at.")
    )
    provider: str = field(
        default="subprocess",
        metadata=text(
            "Where runs' sessions live: `subprocess`, `tmux`, `k8s`, `fake`, `fail` or `exec:<script>`.",
            limits.provider("subprocess", "tmux", "k8s", "fake", "fail"),
        ),
    )
    isolation: str = field(
        default="worktree",
        metadata=text(
            "Where an agent run works: in a git worktree of its own (`worktree`) or in place (`none`).",
            limits.one_of("worktree", "none"),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Artifacts:
    url: str = field(
        default="",
        metadata=text("`s3://bucket/prefix` or a directory; `.gc/artifacts` when unset.", limits.no_password),
    )


@dataclass(frozen=True, kw_only=True)
class Notifications:
    slack_channel: str = field(default="", metadata=text("Slack channel for notices without another destination."))
    on: tuple[str, ...] = field(
        default=("succeeded", "failed", "needs_human", "timed_out"),
        metadata=texts(
            "Ends of runs that are told.",
            limits.some_of("succeeded", "failed", "needs_human", "timed_out", "canceled", "skipped"),
        ),
    )


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
    env: Mapping[str, str] = field(default_factory=dict, metadata=pairs("Its environment."))


@dataclass(frozen=True, kw_only=True)
class Retention:
    runs: timedelta = field(default=timedelta(days=90), metadata=span("Ended runs; `0` keeps for ever, as below."))
    artifacts: timedelta = field(default=timedelta(days=90), metadata=span("Artifacts of runs."))
    trigger_events: timedelta = field(default=timedelta(days=30), metadata=span("Trigger events."))
    events: timedelta = field(default=timedelta(days=30), metadata=span("Events of the bus."))
    outbox: timedelta = field(default=timedelta(days=7), metadata=span("Settled outbox items."))


@dataclass(frozen=True)
class FormulaLayers:
    """Directories of formulas and automations, low to high; a rig's list holds only what the city's does not."""

    city: tuple[Path, ...] = ()
    rigs: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)

    def of(self, rig: str) -> tuple[Path, ...]:
        """All layers that a rig's formulas are looked up in."""
        return (*self.city, *self.rigs.get(rig, ()))


@dataclass(frozen=True, kw_only=True)
class City:
    include: tuple[str, ...] = field(default=(), metadata=texts("Files merged into this one, in order."))
    workspace: Workspace = field(default_factory=Workspace, metadata=table("The city itself.", Workspace))
    store: Store = field(default_factory=Store, metadata=table("The database.", Store))
    api: Api = field(default_factory=Api, metadata=table("The HTTP API and the console.", Api))
    daemon: Daemon = field(default_factory=Daemon, metadata=table("The controller.", Daemon))
    session: Session = field(default_factory=Session, metadata=table("Sessions of agents.", Session))
    runs: Runs = field(default_factory=Runs, metadata=table("Runs of automations.", Runs))
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
    version: str = field(default="", metadata=text("Its own version."))
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
