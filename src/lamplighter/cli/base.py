"""What every command shares: which city it is about, `--json`, and groups that load commands on demand."""

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.nearest import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.app.contexts import Named, Remote
    from lamplighter.app.settings import Settings
    from lamplighter.app.wiring import OpenCity
    from lamplighter.client import Client
    from lamplighter.store.patience import Patience

F = TypeVar("F", bound=Callable[..., Any])
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


NOT_HERE = {
    "serve": "There is no command `serve`: each city serves its own API and console, by `lamp up`.",
}
"""What people look for and this program does not have."""
ONLY_HERE = {
    "init": "it makes a city on this machine",
    "up": "it runs a city on this machine",
    "start": "it starts processes on the city's own machine",
    "stop": "it ends the process that would answer",
    "restart": "it ends the process that would answer",
    "daemon": "it is about a process on the city's own machine; `lamp status` tells how the city is",
    "worker": "it is a process of the city on this machine",
    "mcp": "it is a process beside an agent; the city offers the same tools at /mcp",
    "store": "it works on the database itself",
    "backup": "it writes a file on the city's own machine",
    "restore": "it makes a city on this machine",
    "uninstall": "it ends the process that would answer",
    "open": "its link is for a browser on the city's own machine; elsewhere sign in with a token",
    "agent attach": "it takes over a terminal on the city's own machine; `lamp agent peek` and `logs -f` show it here",
}
"""Commands, or groups of them, that cannot be asked of a city on another machine, with the reason of each."""


class OnlyHere(UsageError):
    def __init__(self, command: str, why: str, by: str) -> None:
        super().__init__(
            f"`lamp {command}` cannot be asked of a city on another machine: {why}.",
            hint=f"The city was named by {by}. `--city PATH` names one on this machine.",
        )


class LampCommand(click.Command):
    """A command that accepts `--city PATH`, `--json` and the like anywhere on the line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _common(hidden=True)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the arguments mean, then the options."""
        rows = [
            (one.make_metavar(ctx).strip("[]").removesuffix("..."), text)
            for one in self.params
            if isinstance(one, click.Argument) and (text := meaning_of(one))
        ]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        words = ctx.command_path.split()[1:]
        why = ONLY_HERE.get(words[0]) or ONLY_HERE.get(" ".join(words[:2])) if words else None
        found = _remote_chosen() if why is not None else None
        if why is not None and found is not None:
            raise OnlyHere(" ".join(words), why, found.by)
        return super().invoke(ctx)


def meaning_of(argument: click.Argument) -> str:
    """What its field says, else what it names, as the completion of it knows; empty if neither is known."""
    completed_by = getattr(argument, "_custom_shell_complete", None)
    return str(getattr(argument, "meaning", "") or _MEANINGS.get(getattr(completed_by, "noun", ""), ""))


_MEANINGS = {
    "run": "A run: its id or a part of it, `last`, or an automation's name for its newest run.",
    "automation": "An automation; NAME:rig:RIG for one of a rig.",
    "bead": "A bead: its id or the beginning of it.",
    "session": "A session: its id, its name, or a run's id.",
}


def in_short(text: str) -> str:
    """The beginning of a command's help that says what it does: as many parts of its first sentence as fit a line."""
    sentence = " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].removesuffix(".")
    parts = re.split(r"(?<=[;:]) ", sentence)
    if len(parts[0]) >= SHORT_HELP:
        parts = re.split(r"(?<=,) ", parts[0])
    told = parts.pop(0)
    while parts and len(told) + len(parts[0]) < SHORT_HELP:
        told += f" {parts.pop(0)}"
    return f"{told.rstrip(',;:')}."


SHORT_HELP = 64


class LampGroup(click.Group):
    command_class = LampCommand

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]] | None = None, **kwargs: Any) -> None:
        """`lazy` maps a command name to (module, one line of help); the module's `command_for` is called on demand."""
        super().__init__(*args, **kwargs)
        self._lazy = dict(lazy or {})
        self.params += _common(hidden=lazy is None)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self._lazy:
            command: click.Command = importlib.import_module(self._lazy[cmd_name][0]).command_for(cmd_name)
            return command
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]  # click empties the list while it checks for a mistyped option
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            why = NOT_HERE.get(name) if ctx.parent is None else None
            if why is None:
                why = f"There is no command `{name}`{did_you_mean(name, self.list_commands(ctx))}"
            raise click.UsageError(why, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading any of the lazy ones."""
        rows = [(name, help_line) for name, (_, help_line) in self._lazy.items() if help_line]
        for name in super().list_commands(ctx):
            command = super().get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, in_short(command.help or "")))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def carries_out(name: str) -> Callable[[F], F]:
    """Mark a hand-written command with the operation that it carries out."""

    def mark(callback: F) -> F:
        callback.operation = name  # type: ignore[attr-defined]  # read by `operation_of`
        return callback

    return mark


def group(help_text: str) -> LampGroup:
    return LampGroup(help=help_text, context_settings=CONTEXT, no_args_is_help=True)


def settings() -> "Settings":
    """What the environment and the line of this command say, without opening a city."""
    from lamplighter.app.settings import from_environment

    return from_environment(click.get_current_context().find_root().meta.get("lamp.city"))


def remote() -> "Client | None":
    """The city on another machine that this command is about, connected once; None for a city on this one."""
    found = _remote_chosen()
    if found is None:
        return None
    root = click.get_current_context().find_root()
    if "lamp.client" not in root.meta:
        from lamplighter.client import Client

        root.meta["lamp.client"] = client = Client(found.url, found.token)
        root.call_on_close(client.close)
    connected: Client = root.meta["lamp.client"]
    return connected


def _remote_chosen() -> "Remote | None":
    root = click.get_current_context().find_root()
    if "lamp.remote" not in root.meta:
        from lamplighter.app.contexts import chosen

        root.meta["lamp.remote"] = chosen(named_city(), settings().env)
    found: Remote | None = root.meta["lamp.remote"]
    return found


def named_city() -> "Named":
    """What the line of this command names of a city and a token."""
    from lamplighter.app.contexts import Named

    meta = click.get_current_context().find_root().meta
    return Named(**{key: meta.get(f"lamp.{key}") for key in ("city", "url", "context", "token", "token_file")})


def same_city() -> list[str]:
    """Options by which another command within this process is about the same city."""
    found, named = _remote_chosen(), named_city()
    if found is not None:
        return [f"--url={found.url}", f"--token={found.token}"]
    return [f"--city={named.city}"] if named.city else []


def is_elsewhere(ctx: click.Context) -> bool:
    """For the completion of a line: whether it is about a city on another machine."""
    with ctx.scope(cleanup=False):
        return _remote_chosen() is not None


def tells_problems() -> None:
    """Said by a command that tells problems of the city's files itself, before anything else opens the city."""
    if remote() is None:
        city(tells_problems=True)


def city(*, tells_problems: bool = False) -> "OpenCity":
    """The city this command is about, opened once and closed when the command ends.

    Problems of its files are printed in one line on standard error, unless the command `tells_problems` itself.
    """
    return _opened(patient=False, tells_problems=tells_problems)


def patient_city() -> "OpenCity":
    """Like `city`, for commands that agents call during their work: waits for an unreachable database for a while."""
    return _opened(patient=True, tells_problems=False)


def _opened(*, patient: bool, tells_problems: bool) -> "OpenCity":
    from lamplighter.app.wiring import open_city
    from lamplighter.cli.output import note

    root = click.get_current_context().find_root()
    if "lamp.opened" not in root.meta:
        elsewhere = _remote_chosen()
        if elsewhere is not None:  # never the city around here in place of the one that is meant
            words = click.get_current_context().command_path.partition(" ")[2]
            raise OnlyHere(words, "it works on the city's own files", elsewhere.by)
        told = settings()
        patience = _patience(told.env) if patient else None
        opened = open_city(told, warn=None if tells_problems else note, patience=patience)
        root.meta["lamp.opened"] = opened
        root.call_on_close(opened.close)
        if not tells_problems:
            opened.look_for_problems()
    found: OpenCity = root.meta["lamp.opened"]
    return found


def _patience(env: Mapping[str, str]) -> "Patience":
    from lamplighter.app.settings import store_wait
    from lamplighter.store.patience import Patience

    seconds = store_wait(env)

    def tell(error: LampError) -> None:
        click.echo(f"{error.message} Waiting for it, up to {seconds:g} s in all.", err=True)

    return Patience(seconds, tell)


def _common(*, hidden: bool) -> list[click.Parameter]:
    """`hidden`: the help of single commands leaves out how a city on another machine is named."""
    return [
        *(
            click.Option(
                [f"--{name}", f"lamp_{key}"], metavar=metavar, help=text, hidden=hidden,
                expose_value=False, callback=_remember(f"lamp.{key}"),
            )
            for name, key, metavar, text in _ELSEWHERE
        ),
        click.Option(
            ["--city"], metavar="PATH", expose_value=False, callback=_remember("lamp.city"),
            help="The city's directory; else LAMP_CITY, else the one around the working directory.",
        ),
        click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_remember("lamp.json"),
            help="Print JSON.",
        ),
    ]  # fmt: skip


_ELSEWHERE = (
    ("url", "url", "URL", "The address of a city on another machine; else LAMP_URL."),
    ("context", "context", "NAME", "A city that `lamp context add` keeps; else LAMP_CONTEXT, else the one in use."),
    ("token", "token", "TOKEN", "Shown to that city; `-` reads it from standard input. Else LAMP_TOKEN."),
    ("token-file", "token_file", "FILE", "A file with the token; else LAMP_TOKEN_FILE."),
)


def _remember(key: str) -> Any:
    def callback(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        if value:
            ctx.find_root().meta[key] = value

    return callback
