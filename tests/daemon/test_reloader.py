"""The reload phase: whole new configuration or the old one, with the reason."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.last_good import ConfigFiles, Rejected, last_good, rejected
from lamplighter.adapters.files.layers import load_city
from lamplighter.daemon.reload import Candidate, NotInForce, Reloader
from lamplighter.daemon.ticks import Phase, Ticks
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.reload import WORKER_BINDS, Same, Swap, judge
from lamplighter.domain.events import EventFilter
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.services.context import acting
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import SqliteUrl, open_store
from lamplighter.testing.clock import FakeClock

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
CITY = '[workspace]\nname = "town"\n\n[daemon]\npatrol_interval = "30s"\n'


class Bench:
    """A city's file, a reloader over it, and what it swapped in."""

    def __init__(self, root: Path, store: Store, clock: FakeClock) -> None:
        self.file = root / "city.toml"
        self.file.write_text(CITY)
        self.root = root
        self.store = store
        self.swapped: list[LoadedCity] = []
        self.swap: Callable[[LoadedCity], None] = self.swapped.append
        self.failing: LampError | None = None
        self.paths = CityPaths(root)
        record = ConfigFiles(self.paths, clock)
        self.reloader = Reloader(self.load(), self.load, self._build, store, clock, record=record)

    def load(self) -> LoadedCity:
        return load_city(self.root, env={})

    async def _build(self, new: LoadedCity) -> Candidate:
        return Candidate(self._write, lambda: self.swap(new))

    def _write(self, tx: Tx) -> None:
        tx.events.append(acting("test", NEW_YEAR).event("test.written"))
        if self.failing is not None:
            raise self.failing

    async def edit(self, old: str, new: str) -> None:
        self.file.write_text(self.file.read_text().replace(old, new))
        self.reloader.touch()
        await self.reloader.tick()

    async def told(self) -> list[str]:
        return [event for event in await self.events() if event.startswith("config.")]

    async def events(self) -> list[str]:
        found = await self.store.read(lambda tx: tx.events.latest(EventFilter(), limit=100))
        return [event.type for event in found]


@pytest.fixture
async def bench(tmp_path: Path, sqlite_place: SqliteUrl, fake_clock: FakeClock) -> AsyncIterator[Bench]:
    store = open_store(sqlite_place, "cty_1", Wakes())
    yield Bench(tmp_path, store, fake_clock)
    await store.close()


def test_only_the_sections_that_differ_are_named(bench: Bench) -> None:
    before = bench.load()
    assert judge(before, bench.load()) == Same()
    bench.file.write_text(CITY.replace("30s", "5s"))
    assert judge(before, bench.load()) == Swap(("daemon",))


async def test_a_changed_value_is_swapped_in_and_told(bench: Bench) -> None:
    await bench.edit('"30s"', '"5s"')
    assert [city.city.daemon.patrol_interval.total_seconds() for city in bench.swapped] == [5]
    assert bench.reloader.current is bench.swapped[-1]
    assert await bench.told() == ["config.reloaded"]


async def test_bug_a_change_of_nothing_but_a_comment_that_keeps_the_content_equal_wipes_nothing(bench: Bench) -> None:
    bench.file.write_text(bench.file.read_text())
    bench.reloader.touch()
    await bench.reloader.tick()
    assert bench.swapped == []
    assert await bench.told() == []


async def test_a_broken_file_keeps_the_old_configuration_and_says_why_once(bench: Bench) -> None:
    await bench.edit("[daemon]", "[deamon]")
    assert bench.reloader.error == "city.toml: deamon: is not a setting; did you mean `daemon`? (line 4)"
    bench.reloader.touch()
    await bench.reloader.tick()
    assert bench.swapped == []
    assert await bench.told() == ["config.rejected"]


async def test_mending_the_file_clears_the_error(bench: Bench) -> None:
    await bench.edit("[daemon]", "[deamon]")
    await bench.edit("[deamon]", "[daemon]")
    assert bench.reloader.error is None
    assert bench.swapped == []


async def test_the_configuration_in_force_is_kept_and_a_rejected_one_is_noted(bench: Bench) -> None:
    await bench.reloader.begin(None)
    assert last_good(bench.root).texts == {bench.file: CITY.encode()}
    await bench.edit('"30s"', '"5s"')
    kept = last_good(bench.root)
    await bench.edit("[daemon]", "[deamon]")
    assert last_good(bench.root) == kept
    assert rejected(bench.paths.rejected) == Rejected(str(bench.reloader.error), readable=False)
    await bench.edit("[deamon]", "[daemon]")
    assert not bench.paths.rejected.exists()
    await bench.edit('"town"', '"village"')
    assert rejected(bench.paths.rejected) == Rejected(str(bench.reloader.error), readable=True)


async def test_a_start_from_the_last_good_configuration_is_told_and_ends_with_the_mended_file(bench: Bench) -> None:
    await bench.reloader.begin("city.toml: is not valid TOML")
    assert (bench.reloader.error, await bench.told()) == ("city.toml: is not valid TOML", ["config.rejected"])
    bench.reloader.touch()
    await bench.reloader.tick()
    assert (bench.reloader.error, bench.paths.rejected.exists()) == (None, False)


async def test_a_changed_city_name_is_refused(bench: Bench) -> None:
    await bench.edit('"town"', '"village"')
    assert bench.reloader.error is not None
    assert "stop it before you rename it" in bench.reloader.error
    assert bench.swapped == []


async def test_another_database_is_refused_while_the_city_runs(bench: Bench) -> None:
    await bench.edit("[daemon]", '[store]\nurl = "postgresql://elsewhere/lamp"\n\n[daemon]')
    assert bench.reloader.error == "store.url: cannot change while the city runs; `lamp restart` restarts it"


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("runs.provider", '[runs]\nprovider = "tmux"\n'),
        ("artifacts.url", '[artifacts]\nurl = "elsewhere"\n'),
        ("api.port", "[api]\nport = 1\n"),
        ("api.host", '[api]\nhost = "::1"\n'),
        ("beads.provider", '[beads]\nprovider = "bd"\n'),
        ("session.provider", '[session]\nprovider = "fake"\n'),
    ],
)
async def test_what_is_taken_once_at_the_start_cannot_change_while_the_city_runs(
    bench: Bench, setting: str, text: str
) -> None:
    await bench.edit("[daemon]", f"{text}\n[daemon]")
    assert bench.reloader.error == f"{setting}: cannot change while the city runs; `lamp restart` restarts it"
    assert bench.swapped == []


async def test_a_worker_is_not_bound_by_what_only_the_controller_takes(bench: Bench) -> None:
    bench.reloader.bound = WORKER_BINDS
    await bench.edit("[daemon]", "[api]\nport = 1\n\n[daemon]")
    assert bench.reloader.error is None
    assert len(bench.swapped) == 1


async def test_a_configuration_that_cannot_be_written_leaves_the_old_one_in_force_and_is_tried_again(
    bench: Bench,
) -> None:
    bench.failing = Unavailable("The database is away.")
    before = bench.reloader.current
    with pytest.raises(NotInForce, match="The database is away"):
        await bench.edit('"30s"', '"5s"')
    assert (bench.reloader.current, bench.swapped, await bench.events()) == (before, [], [])
    assert "tried again" in str(bench.reloader.error)
    bench.failing = None
    await bench.reloader.tick()  # nobody touched the file again
    assert [city.city.daemon.patrol_interval.total_seconds() for city in bench.swapped] == [5]
    assert bench.reloader.error is None
    assert await bench.events() == ["test.written", "config.reloaded"]


async def test_whoever_asks_hears_that_it_could_not_be_brought_into_force(bench: Bench) -> None:
    bench.failing = Unavailable("The database is away.")
    bench.file.write_text(bench.file.read_text().replace('"30s"', '"5s"'))
    answer = bench.reloader.asked()
    with pytest.raises(NotInForce):
        await bench.reloader.tick()
    assert "The database is away." in str(await answer)


async def test_bug_a_rig_that_is_wrong_is_fatal_to_a_reload_too(bench: Bench) -> None:
    await bench.edit("[daemon]", '[[rigs]]\nname = "a"\npath = "a"\n[[rigs]]\nname = "a"\npath = "b"\n\n[daemon]')
    assert bench.reloader.error is not None
    assert bench.swapped == []


async def test_whoever_asks_for_a_reload_hears_its_outcome(bench: Bench) -> None:
    bench.file.write_text(bench.file.read_text().replace("[daemon]", "[deamon]"))
    answer = bench.reloader.asked()
    await bench.reloader.tick()
    assert "did you mean `daemon`" in str(await answer)


async def test_bug_a_swap_gives_ticks_the_new_interval_and_phases_and_keeps_what_they_remember(
    fake_clock: FakeClock,
) -> None:
    ran: list[str] = []

    def phase(name: str) -> Phase:
        async def tick() -> None:
            ran.append(name)

        return Phase(name, tick, at_most_every=timedelta(minutes=5))

    ticks = Ticks([phase("old"), phase("both")], fake_clock, timedelta(seconds=30))
    await ticks.tick()
    ticks.swap([phase("both"), phase("new")], timedelta(seconds=5))
    assert ticks.until_next() == timedelta(0)
    await ticks.tick()
    assert ran == ["old", "both", "new"]  # `both` keeps its floor of five minutes
    assert ticks.patrol_interval == timedelta(seconds=5)


async def test_a_pass_ends_with_the_phase_that_swapped_and_a_whole_one_follows_at_once(fake_clock: FakeClock) -> None:
    ran: list[str] = []
    ticks = Ticks([], fake_clock, timedelta(seconds=30))

    async def after() -> None:
        ran.append("after")

    async def reload() -> None:
        ran.append("reload")
        if len(ran) == 1:
            ticks.swap([Phase("reload", reload), Phase("after", after)], timedelta(seconds=30))

    ticks.phases = [Phase("reload", reload), Phase("after", after)]
    assert await ticks.tick() == ["reload"]
    assert ticks.wake.is_set()
    assert await ticks.tick() == ["reload", "after"]


async def test_reloads_under_load_lose_no_tick(bench: Bench, fake_clock: FakeClock) -> None:
    """Work is asked for all the time while the configuration changes again and again: none of it is forgotten."""
    asked: list[int] = []
    done: list[int] = []

    async def work() -> None:
        done.extend(asked)
        asked.clear()

    def phases() -> list[Phase]:
        return [Phase("reload", bench.reloader.tick), Phase("work", work)]

    ticks = Ticks(phases(), fake_clock, timedelta(seconds=30))

    def swap(new: LoadedCity) -> None:
        bench.swapped.append(new)
        ticks.swap(phases(), new.city.daemon.patrol_interval)

    bench.swap = swap
    for turn in range(60):
        asked.append(turn)
        ticks.wake_phase("work")
        bench.file.write_text(CITY.replace('"30s"', f'"{turn + 1}s"'))
        bench.reloader.touch()
        ticks.wake_phase("reload")
        await ticks.tick()
        if ticks.wake.is_set():
            ticks.wake.clear()
            await ticks.tick()
    assert len(bench.swapped) == 60
    assert done == list(range(60))


async def test_files_that_the_machine_could_not_read_just_now_are_read_again(bench: Bench) -> None:
    load, failing = bench.reloader.load, [OSError(24, "Too many open files")]

    def loads() -> LoadedCity:
        if failing:
            raise failing.pop()
        return load()

    bench.reloader.load = loads
    with pytest.raises(OSError, match="Too many"):
        await bench.edit('"30s"', '"5s"')
    assert "tried again" in str(bench.reloader.error)
    await bench.reloader.tick()
    assert (len(bench.swapped), bench.reloader.error) == (1, None)


async def test_a_problem_of_a_phase_that_is_gone_is_told_no_more(fake_clock: FakeClock) -> None:
    async def fail() -> None:
        raise Unavailable("no room")

    ticks = Ticks([Phase("export", fail), Phase("clock", fail)], fake_clock, timedelta(seconds=30))
    await ticks.tick()
    ticks.swap([Phase("clock", fail)], timedelta(seconds=30))
    assert ticks.problems == {"clock": "no room"}
