"""The plain sections of `city.toml`: every key with its default and meaning."""

from dataclasses import dataclass, field
from datetime import timedelta

from lamplighter.domain.city import limits
from lamplighter.domain.city.destination_kinds import DESTINATION_KINDS
from lamplighter.domain.city.keys import (
    rows,
    span,
    switch,
    table,
    text,
    texts,
    unused,
    whole,
)


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
    topology: str = field(default="", metadata=text("One topology for the city; comes before `topologies`."))
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
    gc_fronts: str = field(
        default="missing",
        metadata=text(
            "Fronts for Gas City's programs `gc` and `bd` on the PATH of sessions and commands: "
            "where they are `missing`, `always` or `never`.",
            limits.one_of("missing", "always", "never"),
        ),
    )
    permission_wait: timedelta = field(
        default=timedelta(minutes=2),
        metadata=span(
            "How long a program may stand at a permission prompt of its own; then its run ends as `needs_human`, or "
            "its agent is in the inbox.",
            limits.positive,
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
    provider: str = field(default="", metadata=unused("Not used: events are kept in the store."))
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
        default=5,
        metadata=whole(
            "So many starts within the window bring quarantine, apart from those asked for; 0 or -1 for never.",
            limits.at_least(-1),
        ),
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
    drift_timeout: timedelta = field(
        default=timedelta(minutes=1),
        metadata=span("How long an agent with changed settings may take to finish; `0s` for ever."),
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
class Oidc:
    issuer: str = field(
        default="",
        metadata=text("The OpenID provider at which people may sign in; none when unset.", limits.issuer),
    )
    client_id: str = field(default="", metadata=text("The name under which the provider knows this city."))
    client_secret: str = field(
        default="",
        metadata=text("The client's secret, as `secret:NAME`; of a public client, none.", limits.secret_reference),
    )
    domains: tuple[str, ...] = field(
        default=(),
        metadata=texts(
            "Whoever has a verified mail address of these domains becomes a member at the first sign-in. Others must "
            "be members already, under their address.",
            limits.mail_domains,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Destination:
    name: str = field(metadata=text("Its name, for `to` and `notify`.", limits.destination_name))
    kind: str = field(
        metadata=text(
            f"How people are told: {', '.join(f'`{kind}`' for kind in DESTINATION_KINDS)}.",
            limits.destination_kind,
        )
    )
    url: str = field(
        default="",
        metadata=text("Of a webhook: where it is sent. Of ntfy: the address of the server.", limits.web_address),
    )
    signing: tuple[str, ...] = field(
        default=(),
        metadata=texts(
            "Of a webhook: its secrets, each as `secret:NAME`. With two, both sign, while the receiver changes over.",
            limits.secret_references,
        ),
    )
    signing_env: str = field(
        default="",
        metadata=text("Of a webhook: the variable of the environment that holds its secret, `whsec_…`."),
    )
    allow_private: bool = field(
        default=False,
        metadata=switch("Of a webhook: its url may lead to this machine or into a private network."),
    )
    channel: str = field(
        default="",
        metadata=text("Of a `slack_channel`: the channel's id, such as `C0123456789`.", limits.slack_channel),
    )
    team: str = field(
        default="",
        metadata=text("Of Slack: the workspace's id, where several are installed.", limits.slack_team),
    )
    command: str = field(
        default="", metadata=text("Of a command: a line for the shell, with the notice as JSON on its standard input.")
    )
    host: str = field(default="", metadata=text("Of email: the SMTP server."))
    port: int = field(
        default=0,
        metadata=whole("Of email: its port; 0 for the usual one: 587, with `tls` 465, with `none` 25.", limits.port),
    )
    security: str = field(
        default="starttls",
        metadata=text(
            "Of email: `starttls`, `tls` from the first byte, or `none`, which only a server on this machine may have.",
            limits.one_of("starttls", "tls", "none"),
        ),
    )
    user: str = field(
        default="", metadata=text("Of email: who signs in, if anybody has to; `secret:NAME` or the name.")
    )
    password: str = field(
        default="", metadata=text("Of email: the password of `user`, as `secret:NAME`.", limits.secret_reference)
    )
    sender: str = field(default="", metadata=text("Of email: the address it comes from.", limits.mail_address))
    recipients: tuple[str, ...] = field(
        default=(), metadata=texts("Of email: the addresses it goes to.", limits.mail_addresses)
    )
    topic: str = field(default="", metadata=text("Of ntfy: the topic.", limits.ntfy_topic))
    token: str = field(
        default="",
        metadata=text("Of ntfy: the access token, as `secret:NAME`, if it needs one.", limits.secret_reference),
    )
    priority: int = field(
        default=0,
        metadata=whole("Of ntfy: 1 to 5; 0 gives questions and quarantines 4 and the rest 3.", limits.between(0, 5)),
    )
    service: str = field(
        default="",
        metadata=text(
            "Of apprise: the address of the service, which holds its keys, as `secret:NAME`.", limits.secret_reference
        ),
    )
    after: int = field(
        default=0,
        metadata=whole("Told from so many failures on; 0 for what `[notifications]` says.", limits.at_least(0)),
    )


SLACK = "slack:"
"""What the name of a destination begins with that is the id of a channel or a user of Slack."""


def slack_destination(name: str) -> Destination | None:
    """The destination that such a name stands for; None for any other name."""
    place = name.removeprefix(SLACK)
    if not name.startswith(SLACK) or not place:
        return None
    if limits.slack_user(place) is None:
        return Destination(name=name, kind="slack_dm_user", user=place)
    return Destination(name=name, kind="slack_channel", channel=place) if limits.slack_channel(place) is None else None


@dataclass(frozen=True, kw_only=True)
class Notifications:
    destinations: tuple[Destination, ...] = field(
        default=(), metadata=rows("Where people are told what needs them.", Destination)
    )
    to: tuple[str, ...] = field(
        default=(), metadata=texts("Destinations of what has none of its own; every one when unset, `none` for none.")
    )
    on: tuple[str, ...] = field(
        default=("failed", "needs_human", "timed_out"),
        metadata=texts(
            "Ends of runs that are told, where the automation says nothing.",
            limits.some_of("failed", "needs_human", "timed_out"),
        ),
    )
    after: int = field(
        default=1, metadata=whole("A failure is told when it has happened so many times.", limits.at_least(1))
    )
    recovery: bool = field(default=True, metadata=switch("Tell, too, when what was told is over by itself."))
    quiet_hours: str = field(
        default="",
        metadata=text(
            "Such as `22:00-07:00`: only questions and quarantines are told, the rest afterwards in one message.",
            limits.quiet_hours,
        ),
    )
    quiet_zone: str = field(
        default="",
        metadata=text("The zone of the quiet hours, such as `Europe/Berlin`; the city's when unset.", limits.zone),
    )
    slack_channel: str = field(
        default="",
        metadata=text(
            "A channel of Slack, by its id, that is told as a destination of the name `slack:ID`.", limits.slack_channel
        ),
    )

    @property
    def every(self) -> "tuple[Destination, ...]":
        """The destinations that are declared, and the channel of Slack."""
        implied = slack_destination(f"{SLACK}{self.slack_channel}") if self.slack_channel else None
        return self.destinations if implied is None else (*self.destinations, implied)

    def named(self, name: str) -> "Destination | None":
        """A destination by its name, or by `slack:` and the id of a channel or a user."""
        return next((one for one in self.destinations if one.name == name), None) or slack_destination(name)


@dataclass(frozen=True, kw_only=True)
class Retention:
    runs: timedelta = field(default=timedelta(days=90), metadata=span("Ended runs; `0` keeps for ever, as below."))
    artifacts: timedelta = field(default=timedelta(days=90), metadata=span("Artifacts of runs."))
    rollups: timedelta = field(
        default=timedelta(days=730), metadata=span("Rollups of ended runs, which `lamp cost` and strips of days show.")
    )
    trigger_events: timedelta = field(default=timedelta(days=30), metadata=span("Trigger events."))
    events: timedelta = field(default=timedelta(days=30), metadata=span("Events of the bus."))
    outbox: timedelta = field(default=timedelta(days=7), metadata=span("Settled outbox items."))
    inbox: timedelta = field(default=timedelta(days=90), metadata=span("Settled inbox items."))
    notices: timedelta = field(default=timedelta(days=30), metadata=span("Notices."))
    deliveries: timedelta = field(default=timedelta(days=14), metadata=span("Deliveries, with their verdicts."))
    bulk_actions: timedelta = field(
        default=timedelta(days=30), metadata=span("Ended bulk actions, with their results.")
    )
    worktrees_mb: int = field(
        default=0,
        metadata=whole(
            "Megabytes that the worktrees of ended runs on a node may have together; 0 for any. Of the oldest, what "
            "a setup made goes first, such as `node_modules`, then the worktree.",
            limits.at_least(0),
        ),
    )
