"""`lamp completion` and `lamp version`."""

import click
from click.shell_completion import get_completion_class

from lamplighter import __version__
from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand


@click.command("completion", cls=LampCommand, context_settings=CONTEXT)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL; put `eval "$(lamp completion bash)"` into your shell's start-up file."""
    from lamplighter.cli.main import root

    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    click.echo(completer(root, {}, "lamp", "_LAMP_COMPLETE").source())


@click.command("version", cls=LampCommand, context_settings=CONTEXT)
def version() -> None:
    """The version of this program."""
    output.record({"version": __version__}, f"lamp {__version__}")


def command_for(name: str) -> click.Command:
    return completion if name == "completion" else version
