"""Whole numbers as options and answers, with a refusal in plain words."""

from typing import Any

import click


class Whole(click.IntRange):
    """A whole number within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            int(value)
        except (ValueError, TypeError):
            self.fail(f"`{value}` is not a whole number from {self.min} to {self.max}.", param, ctx)
        found: int = super().convert(value, param, ctx)
        return found
