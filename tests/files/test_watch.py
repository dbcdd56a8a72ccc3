import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.watch import Watch
from lamplighter.domain.city.loaded import Sources

LIMIT_S = 120.0


def a_city(root: Path) -> Sources:
    (root / "formulas" / "automations").mkdir(parents=True)
    (root / "city.toml").write_text("a = 1\n")
    return Sources((root / "city.toml",), (root / "formulas",))


@asynccontextmanager
async def watching(watch: Watch) -> AsyncIterator[asyncio.Queue[frozenset[Path]]]:
    """The batches of a watch that is ready, as a queue."""
    batches: asyncio.Queue[frozenset[Path]] = asyncio.Queue()

    async def gather() -> None:
        async for changed in watch.changes():
            batches.put_nowait(changed)

    task = asyncio.create_task(gather())
    async with asyncio.timeout(LIMIT_S):
        await watch.ready.wait()
    yield batches
    watch.close()
    async with asyncio.timeout(LIMIT_S):
        await task


async def following(batches: asyncio.Queue[frozenset[Path]]) -> frozenset[Path]:
    async with asyncio.timeout(LIMIT_S):
        return await batches.get()


async def test_a_changed_file_is_told_by_its_path(tmp_path: Path) -> None:
    async with watching(Watch(a_city(tmp_path))) as batches:
        (tmp_path / "city.toml").write_text("a = 2\n")
        assert await following(batches) == {tmp_path / "city.toml"}


async def test_a_changed_file_is_told_where_the_system_tells_nothing(tmp_path: Path) -> None:
    async with watching(Watch(a_city(tmp_path), quiet=timedelta(milliseconds=20), _polling=True)) as batches:
        (tmp_path / "city.toml").write_text("a = 22\n")
        assert await following(batches) == {tmp_path / "city.toml"}


async def test_many_changes_in_a_row_are_told_together(tmp_path: Path) -> None:
    async with watching(Watch(a_city(tmp_path))) as batches:
        paths = [tmp_path / "formulas" / f"x{number}.formula.toml" for number in range(300)]
        for path in paths:
            path.write_text("x = 1\n")
        told: set[Path] = set()
        while len(told) < len(paths):
            told |= await following(batches)
        assert told == set(paths)


async def test_a_file_put_in_place_by_a_rename_is_noticed(tmp_path: Path) -> None:
    async with watching(Watch(a_city(tmp_path))) as batches:
        for number in (2, 3):
            (tmp_path / "new").write_text(f"a = {number}\n")
            (tmp_path / "new").replace(tmp_path / "city.toml")
            assert await following(batches) == {tmp_path / "city.toml"}


async def test_bug_unrelated_files_in_the_city_root_and_same_content_are_not_told(tmp_path: Path) -> None:
    async with watching(Watch(a_city(tmp_path))) as batches:
        (tmp_path / "scratch.txt").write_text("an agent was here")
        (tmp_path / "city.toml").write_text("a = 1\n")
        (tmp_path / "formulas" / ".x.swp").write_text("x")
        (tmp_path / "formulas" / "x.formula.toml").write_text("x = 1\n")
        assert await following(batches) == {tmp_path / "formulas" / "x.formula.toml"}
        assert batches.empty()


async def test_bug_directories_made_later_below_a_source_are_watched_too(tmp_path: Path) -> None:
    watch = Watch(a_city(tmp_path))
    async with watching(watch) as batches:
        deep = tmp_path / "formulas" / "automations" / "sweep"
        deep.mkdir()
        (deep / "automation.toml").write_text("gate = 1\n")
        assert await following(batches) == {deep / "automation.toml"}
        (deep / "automation.toml").write_text("gate = 2\n")
        assert await following(batches) == {deep / "automation.toml"}


async def test_a_source_that_did_not_exist_is_noticed_when_it_appears(tmp_path: Path) -> None:
    (tmp_path / "city.toml").write_text("")
    watch = Watch(Sources((tmp_path / "city.toml",), (tmp_path / ".gc" / "formulas",)))
    async with watching(watch) as batches:
        (tmp_path / ".gc" / "formulas").mkdir(parents=True)
        (tmp_path / ".gc" / "formulas" / "a.toml").write_text("1")
        assert await following(batches) == {tmp_path / ".gc" / "formulas" / "a.toml"}


async def test_an_automation_put_beside_city_toml_is_told_and_changes_the_revision(tmp_path: Path) -> None:
    (tmp_path / "city.toml").write_text('[workspace]\nname = "town"\n')
    before = load_city(tmp_path, env={})
    async with watching(Watch(before.sources)) as batches:
        file = tmp_path / "automations" / "nightly" / "automation.toml"
        file.parent.mkdir(parents=True)
        file.write_text('[automation]\nexec = "true"\ngate = "manual"\n')
        assert await following(batches) == {file}
    assert load_city(tmp_path, env={}).revision != before.revision


async def test_bug_the_watch_set_is_refreshed(tmp_path: Path) -> None:
    sources = a_city(tmp_path)
    watch = Watch(sources)
    async with watching(watch) as batches:
        pack = tmp_path / "pack"
        pack.mkdir()
        watch.refresh(Sources(sources.files, (*sources.directories, pack)))
        async with asyncio.timeout(LIMIT_S):
            await watch.ready.wait()
        (pack / "topology.toml").write_text("x = 1\n")
        assert await following(batches) == {pack / "topology.toml"}


async def test_a_deleted_file_is_told(tmp_path: Path) -> None:
    async with watching(Watch(a_city(tmp_path))) as batches:
        (tmp_path / "city.toml").unlink()
        assert await following(batches) == {tmp_path / "city.toml"}
