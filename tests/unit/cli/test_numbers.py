"""A number that is none is refused in plain words."""

import click
import pytest

from lamplighter.cli.numbers import AnyWhole, Number, Whole


def test_what_is_no_number_is_told_with_its_bounds() -> None:
    assert Whole(1, 7).convert("3", None, None) == 3
    with pytest.raises(click.BadParameter, match="`x` is not a whole number from 1 to 7"):
        Whole(1, 7).convert("x", None, None)
    with pytest.raises(click.BadParameter, match="1<=x<=7"):
        Whole(1, 7).convert("9", None, None)


def test_what_no_database_can_hold_is_refused() -> None:
    for kind in (AnyWhole(), Whole(0, None)):
        assert kind.convert(str(2**63 - 1), None, None) == 2**63 - 1
        with pytest.raises(click.BadParameter, match="is too large"):
            kind.convert(str(2**63), None, None)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e400"])
def test_what_is_no_finite_number_is_refused(text: str) -> None:
    assert Number(0, 7).convert("0.5", None, None) == 0.5
    with pytest.raises(click.BadParameter):
        Number(0, 7).convert(text, None, None)
