"""The plain sections of `city.toml`: every key with its default and meaning."""

from dataclasses import dataclass, field
from datetime import timedelta

from lamplighter.domain.city import limits
from lamplighter.domain.city.keys import rows, span, switch, table, text, texts, unused, whole


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
            "Where sessions run: `tmux`, `subprocess`, `fake`, `fail` or `exec:<script>`; "
            "tmux where it is installed, else subprocess, when unset.",
            limits.provider("tmux", "subprocess", "fake", "fail"),
        ),
    )
    k8s: K8s = field(
        default_factory=K8s,
        metadata=table("Pods of a provider that is not here; accepted, not used.", K8s, unused=True),
    )


@dataclass(frozen=True, kw_only=True)
class Mail:
    provider: str = field(
        default="",
        metadata=text(
            "Where mail is kept: beads when unset, else `exec:<script>`; `fake` and `fail` are for drills.",
            limits.provider("fake", "fail"),
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
class Store:
    url: str = field(
        default="",
        metadata=text("Database, `postgresql://…`; SQLite inside `.gc/` when unset.", limits.no_password),
    )


@dataclass(frozen=True, kw_only=True)
class Api:
    host: str = field(default="127.0.0.1", metadata=text("Address to listen on.", limits.not_empty))
    port: int = field(default=5267, metadata=whole("Port to listen on; 0 takes a free one.", limits.port))
    public_url: str = field(
        default="",
        metadata=text(
            "The web address people reach it at; others than this and its own are refused.", limits.web_address
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Workers:
    enrich: int = field(
        default=8,
        metadata=whole("Runs enriched side by side by one process; 0 for none.", limits.at_least(0)),
    )
    execute: int = field(
        default=8,
        metadata=whole("Runs started side by side by one process; 0 for none.", limits.at_least(0)),
    )
    notify: int = field(
        default=5,
        metadata=whole("Notices sent side by side by one process; 0 for none.", limits.at_least(0)),
    )
    lost_after: timedelta = field(
        default=timedelta(minutes=5),
        metadata=span("How long a node may be gone before its runs end as `node_lost`.", limits.positive),
    )


@dataclass(frozen=True, kw_only=True)
class Runs:
    deadline: timedelta = field(
        default=timedelta(hours=2),
        metadata=span("The longest a run may take, where its automation says nothing.", limits.positive),
    )
    idle: timedelta = field(
        default=timedelta(minutes=30),
        metadata=span("An agent run whose session is silent for so long is told of as quiet; it goes on."),
    )
    idle_timeout: timedelta | None = field(
        default=None,
        metadata=span("An agent run whose session is silent for so long is ended; never unless set, or with `0`."),
    )
    provider: str = field(
        default="subprocess",
        metadata=text(
            "Where runs' sessions live: `subprocess`, `tmux`, `fake`, `fail` or `exec:<script>`.",
            limits.provider("subprocess", "tmux", "fake", "fail"),
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
class Retention:
    runs: timedelta = field(default=timedelta(days=90), metadata=span("Ended runs; `0` keeps for ever, as below."))
    artifacts: timedelta = field(default=timedelta(days=90), metadata=span("Artifacts of runs."))
    trigger_events: timedelta = field(default=timedelta(days=30), metadata=span("Trigger events."))
    events: timedelta = field(default=timedelta(days=30), metadata=span("Events of the bus."))
    outbox: timedelta = field(default=timedelta(days=7), metadata=span("Settled outbox items."))
