"""The contract of session providers. A test class inherits SessionContract and provides the fixture `cities`."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import pytest

from lamplighter.domain.sessions.meta import DRAIN, ENV_SESSION, ENV_SESSION_ID, RESTART_REQUESTED
from lamplighter.domain.sessions.model import SessionName, SessionSpec
from lamplighter.kit.errors import LampError
from lamplighter.kit.limits import TimeLimit
from lamplighter.ports.sessions import NoInput, SessionAlive, SessionProvider, SessionUnknown, StartFailed
from lamplighter.testing.puppets import WAIT, puppet, until

ALPHA = SessionName("alpha")
BETA = SessionName("beta")
AT_ONCE = timedelta(0)


class Cities(Protocol):
    """Opens providers on one machine; a second one of the same city stands for a restarted daemon."""

    def open(self, city: str = "first") -> SessionProvider: ...


class SessionContract:
    tells_exit_status = True

    @pytest.fixture
    def provider(self, cities: Cities) -> SessionProvider:
        return cities.open()

    async def test_a_started_session_is_seen_alive_with_its_metadata(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        started = await provider.start(puppet("alpha", tmp_path, meta={"GC_CONFIG_HASH": "abc"}))
        seen = (await provider.seen())[ALPHA]
        assert (seen.alive, seen.exit_status, seen.attached) == (True, None, False)
        assert seen.meta["GC_CONFIG_HASH"] == "abc"
        assert seen.session_id == started.session_id != ""
        assert seen.started_at is not None

    async def test_one_session_is_seen_as_all_are_seen(self, provider: SessionProvider, tmp_path: Path) -> None:
        await provider.start(puppet("alpha", tmp_path, meta={"GC_CONFIG_HASH": "abc"}))
        together, alone = (await provider.seen())[ALPHA], await provider.see(ALPHA)
        assert alone is not None
        assert replace(alone, last_activity=None) == replace(together, last_activity=None)
        assert await provider.see(BETA) is None

    async def test_starting_a_living_session_is_refused(self, provider: SessionProvider, tmp_path: Path) -> None:
        first = await provider.start(puppet("alpha", tmp_path))
        with pytest.raises(SessionAlive):
            await provider.start(puppet("alpha", tmp_path))
        assert (await provider.seen())[ALPHA].session_id == first.session_id

    async def test_of_two_starts_at_once_one_is_refused(self, provider: SessionProvider, tmp_path: Path) -> None:
        results = await asyncio.gather(
            provider.start(puppet("alpha", tmp_path)),
            provider.start(puppet("alpha", tmp_path)),
            return_exceptions=True,
        )
        assert sorted(type(result).__name__ for result in results) == ["Seen", "SessionAlive"]

    async def test_stopping_twice_is_fine_and_leaves_nothing(self, provider: SessionProvider, tmp_path: Path) -> None:
        await provider.start(puppet("alpha", tmp_path))
        await provider.stop(ALPHA, grace=AT_ONCE)
        await provider.stop(ALPHA, grace=AT_ONCE)
        assert await provider.seen() == {}

    async def test_wishes_for_an_unknown_session_are_already_true(self, provider: SessionProvider) -> None:
        await provider.stop(ALPHA)
        await provider.interrupt(ALPHA)
        await provider.nudge(ALPHA, "hello")
        await provider.send_keys(ALPHA, "Enter")
        await provider.clear_scrollback(ALPHA)
        await provider.remove_meta(ALPHA, "key")
        assert (await provider.peek(ALPHA), await provider.get_meta(ALPHA, "key")) == ("", "")

    async def test_what_needs_a_session_says_that_it_is_unknown(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        with pytest.raises(SessionUnknown):
            await provider.set_meta(ALPHA, "key", "value")
        with pytest.raises(SessionUnknown):
            await provider.attach_command(ALPHA)
        with pytest.raises(SessionUnknown):
            await provider.copy_to(ALPHA, tmp_path, "copy")

    async def test_the_end_of_a_program_is_heard_and_its_exit_status_known(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        endings = provider.ended()
        await provider.start(puppet("alpha", tmp_path))
        await provider.nudge(ALPHA, "exit 3")
        assert await hear(endings) == ALPHA
        seen = (await provider.seen())[ALPHA]
        assert (seen.alive, seen.exit_status) == (False, 3 if self.tells_exit_status else None)

    async def test_a_dead_session_is_replaced_by_a_start(self, provider: SessionProvider, tmp_path: Path) -> None:
        first = await provider.start(puppet("alpha", tmp_path, meta={RESTART_REQUESTED: "1"}))
        await end(provider, ALPHA)
        second = await provider.start(puppet("alpha", tmp_path))
        seen = (await provider.seen())[ALPHA]
        assert seen.alive
        assert first.session_id != second.session_id == seen.session_id
        assert RESTART_REQUESTED not in seen.meta

    async def test_metadata_is_set_read_removed_and_dies_with_its_session(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        await provider.start(puppet("alpha", tmp_path))
        await provider.set_meta(ALPHA, DRAIN, "1700000000")
        await provider.set_meta(ALPHA, "note", "two words\nand a line: ünï 'quoted' $HOME #{x}")
        assert (await provider.seen())[ALPHA].meta[DRAIN] == "1700000000"
        assert await provider.get_meta(ALPHA, "note") == "two words\nand a line: ünï 'quoted' $HOME #{x}"
        await provider.remove_meta(ALPHA, "note")
        assert await provider.get_meta(ALPHA, "note") == ""
        await provider.stop(ALPHA, grace=AT_ONCE)
        assert await provider.get_meta(ALPHA, DRAIN) == ""
        await provider.start(puppet("alpha", tmp_path))
        assert await provider.get_meta(ALPHA, DRAIN) == ""

    async def test_a_nudge_is_typed_and_answered(self, provider: SessionProvider, tmp_path: Path) -> None:
        await provider.start(puppet("alpha", tmp_path))
        await provider.nudge(ALPHA, 'say it\'s $HOME; `ls` "quoted" -n ünï #{x} \\ end')
        await shows(provider, ALPHA, 'said it\'s $HOME; `ls` "quoted" -n ünï #{x} \\ end')

    async def test_nudges_at_once_never_mix(self, provider: SessionProvider, tmp_path: Path) -> None:
        await provider.start(puppet("alpha", tmp_path))
        texts = [letter * 60 for letter in "abcd"]
        await asyncio.gather(*(provider.nudge(ALPHA, f"say {text}") for text in texts))
        for text in texts:
            await shows(provider, ALPHA, f"said {text}\n")

    async def test_a_first_nudge_is_typed_by_the_start(self, provider: SessionProvider, tmp_path: Path) -> None:
        await provider.start(puppet("alpha", tmp_path, nudge="say good morning"))
        await shows(provider, ALPHA, "said good morning")

    async def test_a_headless_session_takes_no_input(self, provider: SessionProvider, tmp_path: Path) -> None:
        await provider.start(puppet("alpha", tmp_path, takes_input=False))
        await shows(provider, ALPHA, "end-of-input")
        with pytest.raises(NoInput):
            await provider.nudge(ALPHA, "say hello")

    async def test_an_interrupt_is_what_control_c_does(self, provider: SessionProvider, tmp_path: Path) -> None:
        await provider.start(puppet("alpha", tmp_path))
        await shows(provider, ALPHA, "ready")
        await provider.interrupt(ALPHA)
        await shows(provider, ALPHA, "interrupted")
        assert (await provider.seen())[ALPHA].alive

    async def test_peek_shows_the_last_lines_and_clearing_forgets_them(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        await provider.start(puppet("alpha", tmp_path))
        await provider.nudge(ALPHA, "count 300")
        await shows(provider, ALPHA, "line 300")
        assert (await provider.peek(ALPHA, 2)).splitlines() == ["line 299", "line 300"]
        assert "line 1\n" in await provider.peek(ALPHA, 0)
        await provider.clear_scrollback(ALPHA)
        await shows_not(provider, ALPHA, "line 1\n")

    async def test_output_moves_the_last_activity(self, provider: SessionProvider, tmp_path: Path) -> None:
        await provider.start(puppet("alpha", tmp_path))
        await shows(provider, ALPHA, "ready")
        before = (await provider.seen())[ALPHA].last_activity
        assert before is not None

        async def moved() -> bool:
            await provider.nudge(ALPHA, "say hello")
            after = (await provider.seen())[ALPHA].last_activity
            return after is not None and after > before

        await until(moved)

    async def test_a_program_that_is_not_there_fails_the_start_and_leaves_nothing(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        spec = puppet("alpha", tmp_path)
        with pytest.raises(StartFailed):
            await provider.start(missing_program(spec))
        assert await provider.seen() == {}

    async def test_the_environment_names_the_session(self, provider: SessionProvider, tmp_path: Path) -> None:
        started = await provider.start(puppet("alpha", tmp_path))
        await provider.nudge(ALPHA, f"env {ENV_SESSION}")
        await provider.nudge(ALPHA, f"env {ENV_SESSION_ID}")
        await shows(provider, ALPHA, f"env {ENV_SESSION} is alpha")
        await shows(provider, ALPHA, f"env {ENV_SESSION_ID} is {started.session_id}")

    async def test_files_are_copied_into_its_working_directory_and_nowhere_else(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        work_dir = tmp_path / "work"
        work_dir.mkdir()
        (tmp_path / "letter").write_text("hello")
        await provider.start(puppet("alpha", work_dir))
        await provider.copy_to(ALPHA, tmp_path / "letter", "in/letter")
        assert (work_dir / "in/letter").read_text() == "hello"
        with pytest.raises(LampError):
            await provider.copy_to(ALPHA, tmp_path / "letter", "../out")

    async def test_a_person_is_told_how_to_attach(self, provider: SessionProvider, tmp_path: Path) -> None:
        await provider.start(puppet("alpha", tmp_path))
        assert all(await provider.attach_command(ALPHA))

    async def test_a_second_provider_of_the_city_finds_its_sessions_again(self, cities: Cities, tmp_path: Path) -> None:
        first = cities.open()
        started = await first.start(puppet("alpha", tmp_path))
        await first.close()
        second = cities.open()
        seen = (await second.seen())[ALPHA]
        assert (seen.alive, seen.session_id, seen.pid) == (True, started.session_id, started.pid)
        with pytest.raises(SessionAlive):
            await second.start(puppet("alpha", tmp_path))
        await second.stop(ALPHA, grace=AT_ONCE)
        assert await second.seen() == {}

    async def test_two_cities_never_touch_each_others_sessions(self, cities: Cities, tmp_path: Path) -> None:
        foo, foo_bar = cities.open("foo"), cities.open("foo-bar")
        await foo.start(puppet("alpha", tmp_path))
        assert await foo_bar.seen() == {}
        await foo_bar.stop(ALPHA, grace=AT_ONCE)
        await foo_bar.start(puppet("alpha", tmp_path))
        await foo_bar.stop(ALPHA, grace=AT_ONCE)
        assert (await foo.seen())[ALPHA].alive

    async def test_all_sessions_are_seen_in_one_look(self, provider: SessionProvider, tmp_path: Path) -> None:
        await asyncio.gather(*(provider.start(puppet(f"agent-{number}", tmp_path)) for number in range(8)))
        await end(provider, SessionName("agent-3"))
        seen = await provider.seen()
        assert {name for name, one in seen.items() if one.alive} == {f"agent-{n}" for n in range(8) if n != 3}
        assert not seen[SessionName("agent-3")].alive


async def end(provider: SessionProvider, name: SessionName, status: int = 0) -> None:
    """Let the puppet exit by itself and wait until the provider sees it."""
    await provider.nudge(name, f"exit {status}")

    async def dead() -> bool:
        return not (await provider.seen())[name].alive

    await until(dead)


async def shows(provider: SessionProvider, name: SessionName, text: str) -> None:
    async def shown() -> bool:
        return text in await provider.peek(name, 0) + "\n"

    await until(shown)


async def shows_not(provider: SessionProvider, name: SessionName, text: str) -> None:
    async def hidden() -> bool:
        return text not in await provider.peek(name, 0)

    await until(hidden)


def missing_program(spec: SessionSpec) -> SessionSpec:
    return replace(spec, command=("no-such-program-anywhere",))


async def hear(endings: AsyncIterator[SessionName]) -> SessionName:
    """The next name from a stream of endings. Raises TimeoutError."""
    async with TimeLimit(WAIT.total_seconds()):
        return await anext(endings)
