"""Completion of names on the command line: what there is of a kind, asked of the city when the shell asks."""

from collections.abc import Callable
from typing import Any

import click

Complete = Callable[[click.Context, click.Parameter, str], Any]


def names(noun: str) -> Complete:
    """Completes an argument that names a run, an automation, an agent, a rig, a bead, a preset or a configuration."""

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Any:
        from click.shell_completion import CompletionItem

        from lamplighter.app.completing import names_of
        from lamplighter.app.settings import from_environment
        from lamplighter.cli.base import is_elsewhere

        if is_elsewhere(ctx):
            return []
        found = names_of(from_environment(ctx.find_root().meta.get("lamp.city")), noun)
        return [CompletionItem(name, help=about or None) for name, about in found if name.startswith(incomplete)]

    complete.noun = noun  # type: ignore[attr-defined]  # read by `meaning_of`
    return complete
