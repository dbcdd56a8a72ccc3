"""A number that is none is refused in plain words."""

import click
import pytest

from lamplighter.cli.numbers import Whole


def test_what_is_no_number_is_told_with_its_bounds() -> None:
    assert Whole(1, 7).convert("3", None, None) == 3
    with pytest.raises(click.BadParameter, match="`x` is not a whole number from 1 to 7"):
        Whole(1, 7).convert("x", None, None)
    with pytest.raises(click.BadParameter, match="1<=x<=7"):
        Whole(1, 7).convert("9", None, None)
