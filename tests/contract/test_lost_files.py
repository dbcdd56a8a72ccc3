"""A SQLite database that is taken away from under the program that has it open: told, and nothing more is written."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from lamplighter.services.context import acting
from lamplighter.store.engine import SqliteDatabase, Wakes
from lamplighter.store.errors import StoreGone, StoreLost
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import SqliteUrl, file_of, migrate, open_direct, open_store
from lamplighter.testing.contracts.store import AT, CITY

OTHER_CITY = "cty_other"


def say(tx: Tx, subject: str = "something") -> None:
    tx.events.append(acting("tester", AT).event("test.said", subject=subject))


def said(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        count: int = connection.execute("SELECT count(*) FROM events").fetchone()[0]
        return count
    finally:
        connection.close()


def file(store: Store) -> SqliteDatabase:
    found = file_of(store)
    assert found is not None
    return found


@pytest.fixture
async def store(sqlite_place: SqliteUrl) -> AsyncIterator[Store]:
    opened = open_store(sqlite_place, CITY, Wakes())
    await opened.transact(lambda tx: tx.cities.ensure("here", AT))
    await opened.transact(say)
    yield opened
    await opened.close()


@pytest.fixture
def another(tmp_path: Path) -> Path:
    """The database of another city."""
    runtime = tmp_path / "another"
    runtime.mkdir()
    place = SqliteUrl(runtime / "other.db", runtime)
    migrate(place)
    direct = open_direct(place, OTHER_CITY)
    direct.transact(lambda tx: tx.cities.ensure("there", AT))
    direct.close()
    return place.path


def delete_all(path: Path, _another: Path) -> None:
    for file in path.parent.glob("lamp.db*"):
        file.unlink()


def delete_log(path: Path, _another: Path) -> None:
    Path(f"{path}-wal").unlink()


def delete_index(path: Path, _another: Path) -> None:
    Path(f"{path}-shm").unlink()


def put_another_there(path: Path, another: Path) -> None:
    another.replace(path)


def move_directory(path: Path, _another: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))


def overwrite(path: Path, another: Path) -> None:
    """As `cp` does: the same file with other content."""
    path.write_bytes(another.read_bytes())


Harm = Callable[[Path, Path], None]
TAKEN = [delete_all, delete_log, delete_index, put_another_there, move_directory]


@pytest.mark.parametrize("harm", [*TAKEN, overwrite])
async def test_nothing_is_written_or_read_once_the_file_is_not_its_own(
    store: Store, sqlite_place: SqliteUrl, another: Path, harm: Harm
) -> None:
    await store.read(lambda tx: tx.cities.find())
    file(store).check()
    # As a checkpoint leaves it: the file itself knows its city.
    await store.read(lambda tx: tx.cities.find())
    _checkpoint(sqlite_place.path)
    await store.transact(say)
    harm(sqlite_place.path, another)
    ran: list[str] = []
    with pytest.raises(StoreGone):
        await store.transact(lambda _tx: ran.append("ran"))
    with pytest.raises(StoreGone):
        await store.read(lambda tx: tx.cities.find())
    with pytest.raises(StoreGone) as told:
        file(store).check()
    assert ran == []
    assert not told.value.passing


@pytest.mark.parametrize("harm", TAKEN)
async def test_what_a_lost_file_held_can_still_be_saved(
    store: Store, sqlite_place: SqliteUrl, another: Path, harm: Harm, tmp_path: Path
) -> None:
    await store.transact(say)
    harm(sqlite_place.path, another)
    await file(store).save_copy(tmp_path / "copy.db")
    assert said(tmp_path / "copy.db") == 2
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600


async def test_overwritten_content_is_not_saved_as_if_it_were_its_own(
    store: Store, sqlite_place: SqliteUrl, another: Path, tmp_path: Path
) -> None:
    await store.transact(say)
    _checkpoint(sqlite_place.path)
    await store.transact(say)
    overwrite(sqlite_place.path, another)
    with pytest.raises(StoreGone):
        file(store).check()
    with pytest.raises(StoreGone):
        await file(store).save_copy(tmp_path / "copy.db")


@pytest.mark.parametrize("harm", [put_another_there, overwrite])
async def test_a_store_that_closes_leaves_the_file_in_its_place_alone(
    sqlite_place: SqliteUrl, another: Path, harm: Harm
) -> None:
    path = sqlite_place.path
    opened = open_store(sqlite_place, CITY, Wakes())
    await opened.transact(lambda tx: tx.cities.ensure("here", AT))
    _checkpoint(path)
    await opened.transact(say)
    content = another.read_bytes()
    harm(path, another)
    with pytest.raises(StoreGone):
        await opened.transact(say)
    await opened.close()
    assert path.read_bytes() == content


async def test_a_file_that_comes_back_is_used_again(store: Store, sqlite_place: SqliteUrl) -> None:
    runtime = sqlite_place.runtime
    moved = runtime.with_name("moved")
    runtime.rename(moved)
    with pytest.raises(StoreGone):
        await store.transact(say)
    moved.rename(runtime)
    await store.transact(say)
    assert await store.read(lambda tx: tx.db.row("SELECT count(*) AS n FROM events", {})["n"]) == 2  # type: ignore[index]


async def test_checkpoints_and_a_vacuum_by_hand_are_no_loss(store: Store, sqlite_place: SqliteUrl) -> None:
    for n in range(200):
        await store.transact(say, f"{n} {'long ' * 100}")
    _checkpoint(sqlite_place.path)
    await store.transact(lambda tx: tx.db.execute("DELETE FROM events", {}))
    _checkpoint(sqlite_place.path)
    await store.transact(say)
    by_hand = sqlite3.connect(sqlite_place.path)
    by_hand.execute("VACUUM")
    by_hand.close()
    _checkpoint(sqlite_place.path)
    await store.transact(say)
    file(store).check()


def test_a_direct_store_does_not_write_into_a_file_that_is_gone(sqlite_place: SqliteUrl, another: Path) -> None:
    direct = open_direct(sqlite_place, CITY)
    put_another_there(sqlite_place.path, another)
    with pytest.raises(StoreGone):
        direct.transact(say)
    with pytest.raises(StoreGone):
        direct.read(lambda tx: tx.cities.find())
    direct.close()


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_a_lost_database_is_not_made_anew_unless_asked_for(sqlite_place: SqliteUrl, left: str) -> None:
    sqlite_place.path.unlink()
    if left == "an empty file":
        sqlite_place.path.touch()
    with pytest.raises(StoreLost, match="was made before"):
        migrate(sqlite_place, make=False)
    assert migrate(sqlite_place)


def _checkpoint(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] in (0, 1)
    connection.close()
