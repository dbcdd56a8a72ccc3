"""What every command shares: `--city` and `--json` anywhere on the line, and groups that load commands on demand."""

import importlib
from collections.abc import Mapping
from typing import Any

import click

from lamplighter.kit.errors import LampError
from lamplighter.kit.nearest import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.app.wiring import OpenCity
    from lamplighter.store.engine.patience import Patience

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class LampCommand(click.Command):
    """A command that accepts `--city PATH` and `--json` anywhere on the line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _common()


class LampGroup(click.Group):
    command_class = LampCommand

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]] | None = None, **kwargs: Any) -> None:
        """`lazy` maps a command name to (module, one line of help); the module's `command_for` is called on demand."""
        super().__init__(*args, **kwargs)
        self._lazy = dict(lazy or {})
        self.params += _common()

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
            known = self.list_commands(ctx)
            raise click.UsageError(f"There is no command `{name}`{did_you_mean(name, known)}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading any of the lazy ones."""
        rows = [(name, help_line) for name, (_, help_line) in self._lazy.items() if help_line]
        for name in super().list_commands(ctx):
            command = super().get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(limit=80)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def group(help_text: str) -> LampGroup:
    return LampGroup(help=help_text, context_settings=CONTEXT, no_args_is_help=True)


def city(*, tells_problems: bool = False) -> "OpenCity":
    """The city this command is about, opened once and closed when the command ends.

    Problems of its files are printed in one line on standard error, unless the command `tells_problems` itself.
    """
    return _opened(patient=False, tells_problems=tells_problems)


def patient_city() -> "OpenCity":
    """Like `city`, for commands that agents call during their work: waits for an unreachable database for a while."""
    return _opened(patient=True, tells_problems=False)


def _opened(*, patient: bool, tells_problems: bool) -> "OpenCity":
    from lamplighter.app.settings import from_environment
    from lamplighter.app.wiring import open_city
    from lamplighter.cli.output import note

    root = click.get_current_context().find_root()
    if "lamp.opened" not in root.meta:
        settings = from_environment(root.meta.get("lamp.city"))
        patience = _patience(settings.env) if patient else None
        opened = open_city(settings, warn=None if tells_problems else note, patience=patience)
        root.meta["lamp.opened"] = opened
        root.call_on_close(opened.close)
        if not tells_problems:
            opened.look_for_problems()
    found: OpenCity = root.meta["lamp.opened"]
    return found


def _patience(env: Mapping[str, str]) -> "Patience":
    from lamplighter.app.settings import store_wait
    from lamplighter.store.engine.patience import Patience

    seconds = store_wait(env)

    def tell(error: LampError) -> None:
        click.echo(f"{error.message} Waiting for it, up to {seconds:g} s in all.", err=True)

    return Patience(seconds, tell)


def _common() -> list[click.Parameter]:
    return [
        click.Option(
            ["--city"], metavar="PATH", expose_value=False, callback=_remember("lamp.city"),
            help="The city's directory; else LAMP_CITY, else the one around the working directory.",
        ),
        click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_remember("lamp.json"),
            help="Print JSON.",
        ),
    ]  # fmt: skip


def _remember(key: str) -> Any:
    def callback(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        if value:
            ctx.find_root().meta[key] = value

    return callback
