"""The sections of `city.toml` about runs: their pipeline, limits and budgets, and the worktrees they work in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lamplighter.domain.city import limits
from lamplighter.domain.city.keys import counts, number, span, switch, table, text, texts, whole


@dataclass(frozen=True, kw_only=True)
class RepositoryWorkspace:
    """How a run's worktree is made ready, and left: what a repository may say of itself."""

    setup: str = field(default="", metadata=text("A command run in a run's worktree before its agent starts."))
    setup_timeout: timedelta = field(
        default=timedelta(minutes=10), metadata=span("How long `setup` may take.", limits.positive)
    )
    teardown: str = field(default="", metadata=text("A command run in the worktree when the run has ended."))
    teardown_timeout: timedelta = field(
        default=timedelta(minutes=2), metadata=span("How long `teardown` may take.", limits.positive)
    )
    copy: tuple[str, ...] = field(
        default=(), metadata=texts("Files of the rig's directory that a worktree gets, such as `.env`.", limits.below)
    )
    cache: tuple[str, ...] = field(
        default=(), metadata=texts("Directories that all worktrees of the rig share.", limits.below)
    )
    ports: int = field(
        default=0,
        metadata=whole(
            "So many free ports for each run, from `LAMP_PORT_BASE` on; at most 10,000.", limits.between(0, 10_000)
        ),
    )


@dataclass(frozen=True, kw_only=True)
class RigWorkspace(RepositoryWorkspace):
    """How a run's worktree of the rig is made ready, and left."""

    from_repository: bool = field(
        default=False,
        metadata=switch("Take what is not set here from `[workspace]` in the repository's own `.lamplighter.toml`."),
    )


@dataclass(frozen=True, kw_only=True)
class RepositoryFile:
    """The `.lamplighter.toml` of a repository."""

    workspace: RepositoryWorkspace = field(
        default_factory=RepositoryWorkspace,
        metadata=table("How runs' worktrees are made ready.", RepositoryWorkspace),
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
        metadata=whole(
            "Notices that one process sends to one destination side by side; 0 for none.", limits.at_least(0)
        ),
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
    stuck_after: int = field(
        default=10,
        metadata=whole(
            "So many times in a row an agent may make the same call of a tool with the same result before it is told, "
            "and then ended; 0 for any number.",
            limits.at_least(0),
        ),
    )
    provider: str = field(
        default="subprocess",
        metadata=text(
            "Where runs' sessions live: `subprocess`, `tmux`, `fake`, `fail` or `exec:<script>`.",
            limits.provider("subprocess", "tmux", "fake", "fail", default="subprocess"),
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
class Limits:
    """What may be at work at once; a run that comes too early waits, and says for what."""

    runs: int = field(
        default=0, metadata=whole("Commands and agents of runs at work at once; 0 for no limit.", limits.at_least(0))
    )
    per_rig: int = field(
        default=0,
        metadata=whole("The same in each rig that `rigs` does not name; 0 for no limit.", limits.at_least(0)),
    )
    per_preset: int = field(
        default=0,
        metadata=whole(
            "Agents at work of each preset that `presets` does not name; 0 for no limit.", limits.at_least(0)
        ),
    )
    per_login: int = field(
        default=0,
        metadata=whole("Agents at work with the same login of a program; 0 for no limit.", limits.at_least(0)),
    )
    rigs: Mapping[str, int] = field(default_factory=dict, metadata=counts("Of single rigs: `{ shop = 2 }`."))
    presets: Mapping[str, int] = field(default_factory=dict, metadata=counts("Of single presets: `{ claude = 3 }`."))
    memory: int = field(
        default=0,
        metadata=whole(
            "Megabytes of memory that must be available before a run starts; 0 does not look. Linux only.",
            limits.at_least(0),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What all agent runs of a day may use together; a day begins at midnight in the city's zone."""

    day_cost: float | None = field(
        default=None, metadata=number("US dollars; programs that do not tell their cost cannot run.", limits.above_zero)
    )
    day_tokens: int | None = field(
        default=None, metadata=whole("Tokens; programs that do not tell theirs cannot run.", limits.at_least(1))
    )
    day_time: timedelta | None = field(default=None, metadata=span("Time at work, added up.", limits.positive))


@dataclass(frozen=True, kw_only=True)
class Artifacts:
    url: str = field(
        default="",
        metadata=text("`s3://bucket/prefix` or a directory; `.gc/artifacts` when unset.", limits.no_password),
    )
