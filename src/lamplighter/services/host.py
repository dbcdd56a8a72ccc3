"""What effects and streams work on: the parts of a city that one process holds."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from lamplighter.domain.access import Actor
from lamplighter.store.tx import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.automations.gates import Checked
    from lamplighter.domain.automations.model import Automation
    from lamplighter.domain.city.model import Agent
    from lamplighter.domain.city.wanted import Roster
    from lamplighter.domain.sessions.actions import Verdict
    from lamplighter.domain.sessions.crashes import SessionHistory
    from lamplighter.domain.sessions.logins import Login
    from lamplighter.domain.sessions.model import Seen, SessionName
    from lamplighter.kit.clock import Clock
    from lamplighter.ports.beads import BeadStore
    from lamplighter.ports.city_files import CityFiles
    from lamplighter.ports.commands import CommandEnded, CommandRunner
    from lamplighter.ports.formulas import FormulaFiles
    from lamplighter.ports.mail import Mail
    from lamplighter.ports.messenger import Messenger
    from lamplighter.ports.secrets import SecretBox, SecretSource
    from lamplighter.ports.sessions import SessionProvider
    from lamplighter.ports.slack import SlackCalls
    from lamplighter.ports.worktrees import Worktrees
    from lamplighter.services.agents.terminals import Terminals
    from lamplighter.services.automations.outlook import Asked
    from lamplighter.services.doctor import Finding
    from lamplighter.services.event_tail import EventTail, Waker
    from lamplighter.services.keeping import BackupView, UninstalledView
    from lamplighter.services.status_views import ControllerView
    from lamplighter.store.owners import Owner


class Patrol(Protocol):
    """The patrol of the controller: what it last saw and decided, and what a person can have it do at once."""

    @property
    def sight(self) -> "Mapping[SessionName, Seen]": ...

    @property
    def histories(self) -> "Mapping[SessionName, SessionHistory]": ...

    @property
    def verdicts(self) -> "Mapping[SessionName, Verdict]": ...

    @property
    def unknown_pools(self) -> Mapping[str, str]:
        """Pools whose demand is not known, each with the reason."""
        ...

    async def kill(self, session: "SessionName", by: str) -> bool:
        """End a session without grace; False if there is no such session."""
        ...

    def forget_crashes(self, session: "SessionName") -> None:
        """The agent may be started again at once."""
        ...

    def look_soon(self) -> None:
        """Look at all sessions as soon as possible."""
        ...


class Host(Protocol):
    """The process that carries out an operation: the city's daemon, a worker, or a command where no daemon runs."""

    @property
    def store(self) -> Store: ...

    @property
    def wakes(self) -> "Waker":
        """Wakes whoever waits for a topic, when a transaction here or in another process of the city asks for it."""
        ...

    @property
    def event_tail(self) -> "EventTail":
        """The one reader at the end of the event log, for all who follow it in this process."""
        ...

    @property
    def clock(self) -> "Clock": ...

    @property
    def root(self) -> Path:
        """The city's directory."""
        ...

    @property
    def store_name(self) -> str:
        """Where the store is, as people are told it."""
        ...

    def outside_beads(self) -> "BeadStore | None":
        """The store of another program in which the city's beads live; None if they live in the city's own store."""
        ...

    def outside_mail(self) -> "Mail | None":
        """The program that keeps the city's mail; None if it is kept in the city's own store."""
        ...

    @property
    def formulas(self) -> "FormulaFiles":
        """The formulas in the city's files."""
        ...

    # ── the configuration ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def roster(self) -> "Roster":
        """The agents of the configuration in force; `roster.loaded` is that configuration.

        Raises what is wrong with the files if there is no configuration that could be in force.
        """
        ...

    @property
    def config_problem(self) -> str | None:
        """Why the configuration in force is not that of the files; None if it is."""
        ...

    @property
    def files(self) -> "CityFiles": ...

    async def reload(self) -> str | None:
        """Bring edited files into force at once, where this process is the controller.

        Returns why they are not; None if they are, or if no controller runs here.
        """
        ...

    def need_own(self) -> None:
        """Raises CopiedCity for a copy, which must not start, stop or signal the agents of its original."""
        ...

    def prompt(self, agent: "Agent", name: str) -> str:
        """The agent's prompt, rendered; empty if it has none."""
        ...

    async def work_query(self, agent: "Agent", name: str) -> str:
        """What the agent's own work query prints. Raises QueryFailed."""
        ...

    # ── sessions and processes ────────────────────────────────────────────────────────────────────────────────────

    @property
    def sessions(self) -> "SessionProvider":
        """The sessions of agents."""
        ...

    @property
    def terminals(self) -> "Terminals":
        """The terminals of agents that people watch by this process."""
        ...

    @property
    def all_sessions(self) -> "Sequence[SessionProvider]":
        """The provider of agents' sessions, and that of runs if it is a different one."""
        ...

    @property
    def patrol(self) -> Patrol | None:
        """None if this process is not the controller, and so does not look after the agents."""
        ...

    @property
    def is_kept(self) -> bool:
        """Whether a controller, here or in another process, looks after the city."""
        ...

    @property
    def commands(self) -> "CommandRunner":
        """What runs the commands of automations on this machine, and keeps their output."""
        ...

    @property
    def worktrees(self) -> "Worktrees":
        """The worktrees of runs on this machine."""
        ...

    async def check_conditions(self, asked: "Sequence[Asked]") -> "list[Checked]":
        """Run the commands of these conditions as the daemon does, several at once; the answers are in their order."""
        ...

    async def try_command(
        self, key: str, automation: "Automation", line: str, limit: timedelta, trigger: Mapping[str, Any]
    ) -> "CommandEnded":
        """Run a command of the automation once, where and with what its runs have it; the values of secrets are masked.

        Raises CommandNotStarted, NotFound for a rig that is gone, SecretUnknown, SecretLocked.
        """
        ...

    async def ask_login(self, login: "Login") -> bool | None:
        """Ask the program whether it is signed in; None if it cannot be asked here."""
        ...

    async def controller(self) -> "ControllerView": ...

    def remember_for_status(self) -> str | None:
        """Keep what the status of the stopped city needs of the configuration: it is then told at little cost.

        Returns what is wrong with files of automations, where no controller tells it.
        """
        ...

    @property
    def messenger(self) -> "Messenger":
        """What sends notices to the destinations of the city."""
        ...

    @property
    def slack(self) -> "SlackCalls":
        """What calls Slack."""
        ...

    @property
    def secret_box(self) -> "SecretBox":
        """What encrypts the city's secrets."""
        ...

    @property
    def secrets(self) -> "SecretSource":
        """The secrets of the city, as programs are given them and as they are masked."""
        ...

    async def knock(self, connection: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        """Send a delivery to the running city as its sender would; its status and what it says. Raises Unavailable."""
        ...

    async def living(self) -> "Sequence[Owner]":
        """The processes of the city that live, by their proofs of life."""
        ...

    async def back_up(self, file: str | None, *, artifacts: bool) -> "BackupView":
        """Save the city in one file, while it may run."""
        ...

    async def uninstall(self, *, purge: bool) -> "UninstalledView":
        """Stop the city and its service; `purge` deletes its `.gc`."""
        ...

    def sign_in_link(self, actor: Actor) -> tuple[str, timedelta]:
        """The secret of a link that signs a browser in as `actor`, once, and how long it lasts."""
        ...

    async def examine(self, *, fix: bool) -> "Sequence[Finding]":
        """The checks of `lamp doctor`; `fix` has them repair what can be repaired without asking."""
        ...
