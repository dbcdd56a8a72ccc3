"""The watch over the city's database: told once, a copy saved, and the end of a process that nobody can reach."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lamplighter.daemon.store_watch import StoreWatch
from lamplighter.kit.errors import CityGone, Kind
from lamplighter.store.errors import StoreGone, StoreUnavailable
from lamplighter.testing.clock import FakeClock


@dataclass
class Lendable:
    """A store whose file can be taken away and given back."""

    gone: bool = False
    can_save: bool = True
    saved: list[Path] = field(default_factory=list)

    def check(self) -> None:
        if self.gone:
            raise StoreGone("lamp.db", "deleted or moved away")

    async def save_copy(self, to: Path) -> None:
        if not self.can_save:
            raise StoreUnavailable("There is no place.")
        to.touch()
        self.saved.append(to)


@pytest.fixture
def store() -> Lendable:
    return Lendable()


@pytest.fixture
def watch(store: Lendable, fake_clock: FakeClock, tmp_path: Path) -> StoreWatch:
    return StoreWatch(store, fake_clock, lambda: True, tmp_path / "saved-lamp.db")


async def test_a_database_in_its_place_is_no_problem(watch: StoreWatch, store: Lendable) -> None:
    await watch.tick()
    assert (watch.problem, store.saved) == (None, [])


async def test_a_lost_database_is_a_problem_and_saved_once(watch: StoreWatch, store: Lendable) -> None:
    store.gone = True
    await watch.tick()
    await watch.tick()
    (copy,) = store.saved
    assert copy.exists()
    assert watch.problem is not None
    assert "deleted or moved away" in watch.problem
    assert str(copy) in watch.problem


async def test_a_database_that_is_back_is_no_problem_and_needs_no_copy(watch: StoreWatch, store: Lendable) -> None:
    store.gone = True
    await watch.tick()
    store.gone = False
    await watch.tick()
    assert watch.problem is None
    assert not store.saved[0].exists()


async def test_a_copy_that_cannot_be_saved_hides_nothing(watch: StoreWatch, store: Lendable) -> None:
    store.gone, store.can_save = True, False
    await watch.tick()
    assert watch.problem is not None
    assert "saved" not in watch.problem


async def test_a_process_without_its_lock_ends(store: Lendable, fake_clock: FakeClock, tmp_path: Path) -> None:
    watch = StoreWatch(store, fake_clock, lambda: False, tmp_path / "saved-lamp.db")
    with pytest.raises(CityGone) as told:
        await watch.tick()
    assert told.value.kind is Kind.GONE
