"""Numbers as options and answers, with a refusal in plain words."""

import math
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
        return _small_enough(self, found, param, ctx)


class AnyWhole(click.types.IntParamType):
    """A whole number that databases can hold."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found: int = super().convert(value, param, ctx)
        return _small_enough(self, found, param, ctx)


class Number(click.FloatRange):
    """A number within bounds; `nan` is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"`{value}` is not a number from {self.min:g} to {self.max:g}.", param, ctx)
        return found


def _small_enough(
    kind: "click.ParamType[Any]", found: int, param: click.Parameter | None, ctx: click.Context | None
) -> int:
    from lamplighter.kit.shapes import LARGEST

    if abs(found) > LARGEST:
        kind.fail(f"`{found}` is too large.", param, ctx)
    return found
