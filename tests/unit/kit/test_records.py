"""Records made and changed the fast way: the same as frozen dataclasses and `dataclasses.replace`."""

from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from lamplighter.kit.records import changed, record


@dataclass(frozen=True)
class Lamp:
    name: str
    lit: bool = False
    oil: int = 0


def test_it_is_the_record_with_those_fields_changed_and_the_old_one_stays() -> None:
    lamp = Lamp("north", oil=3)
    after = changed(lamp, lit=True)
    assert after == replace(lamp, lit=True)
    assert hash(after) == hash(replace(lamp, lit=True))
    assert lamp == Lamp("north", oil=3)


def test_a_field_that_it_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="Lamp has no such field: colour"):
        changed(Lamp("north"), colour="red")


@record
class Lantern:
    """Made the fast way."""

    name: str
    colours: list[str] = field(default_factory=list)
    oil: int = 0
    hung: str | None = None


def test_a_record_is_a_frozen_dataclass_however_it_is_made() -> None:
    lantern = Lantern("east", oil=2)
    assert lantern == Lantern("east", [], 2, None)
    assert (repr(lantern), lantern.colours) == ("Lantern(name='east', colours=[], oil=2, hung=None)", [])
    assert Lantern("a").colours is not Lantern("a").colours
    assert replace(lantern, oil=3) == changed(lantern, oil=3) == Lantern("east", [], 3)
    with pytest.raises(FrozenInstanceError):
        lantern.oil = 4  # type: ignore[misc]
    with pytest.raises(TypeError, match="name"):
        Lantern()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="colour"):
        Lantern("a", colour="red")  # type: ignore[call-arg]


def test_a_record_may_be_given_the_values_that_stand_for_none() -> None:
    assert (Lantern("a", hung=None).hung, Lantern("a", colours=[]).colours) == (None, [])
