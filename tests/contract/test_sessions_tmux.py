"""The tmux provider keeps the contract, with a real server for each test."""

import asyncio
import os
import pty
import re
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from lamplighter.adapters.sessions.tmux.client import TmuxClient
from lamplighter.adapters.sessions.tmux.control import LineLost
from lamplighter.adapters.sessions.tmux.provider import TmuxProvider
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import Dialog, Readiness, SessionName, SessionSpec
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.ports.sessions import NotDelivered
from lamplighter.testing.contracts.local_sessions import LocalSessionContract
from lamplighter.testing.contracts.sessions import ALPHA, AT_ONCE, end, hear, shows
from lamplighter.testing.puppets import puppet, until
from lamplighter.testing.session_cities import RealCities

COMPOSER = Path(__file__).parents[1] / "data" / "programs" / "composer.py"
MENU = Path(__file__).parents[1] / "data" / "programs" / "menu.py"


def composer(work_dir: Path, *how: str) -> SessionSpec:
    """A session of a program that edits its input row itself; `how` are its arguments."""
    spec = puppet("alpha", work_dir, readiness=Readiness(mark="Type your message"))
    return replace(spec, command=(spec.command[-1], str(COMPOSER), *how))


def impatient(provider: TmuxProvider) -> TmuxProvider:
    provider._keyboard = replace(provider._keyboard, shown_within=timedelta(seconds=2), taken_within=(0.5, 0.5, 0.5))
    return provider


class TestTmux(LocalSessionContract):
    @pytest.fixture
    async def cities(self) -> AsyncIterator[RealCities]:
        clock = SystemClock()
        with tempfile.TemporaryDirectory() as short:  # a socket's path must be short
            root = Path(short)
            cities = RealCities(
                lambda city, city_id: TmuxProvider(
                    root / city,
                    root / f"{city}.sock",
                    city=city_id,
                    clock=clock,
                    ids=IdSource(clock),
                    environ=os.environ,
                )
            )
            yield cities
            await cities.end_all()

    async def test_a_person_who_attaches_is_seen_and_stays_when_the_program_is_relit(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = cities.open()
        endings = provider.ended()
        await provider.start(puppet("alpha", tmp_path))
        ours, theirs = pty.openpty()
        person = await asyncio.create_subprocess_exec(
            *await provider.attach_command(ALPHA), stdin=theirs, stdout=theirs, stderr=theirs,
            env=os.environ | {"TERM": "xterm"},
        )  # fmt: skip
        os.close(theirs)

        async def attached() -> bool:
            return (await provider.seen())[ALPHA].attached

        await until(attached)
        await provider.nudge(ALPHA, "exit 1")
        await hear(endings)
        await provider.start(puppet("alpha", tmp_path))
        seen = (await provider.seen())[ALPHA]
        assert (seen.alive, seen.attached) == (True, True)
        person.terminate()
        await person.wait()
        os.close(ours)

    async def test_long_text_of_many_lines_arrives_whole(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        await provider.start(puppet("alpha", tmp_path))
        lines = [f"say {number:03d} " + "x" * 80 for number in range(400)]  # beyond what one tmux message holds
        await provider.nudge(ALPHA, "\n".join(lines))
        await shows(provider, ALPHA, "said 399 " + "x" * 80)
        shown = re.findall(r"said (\d{3}) x{80}", await provider.peek(ALPHA, 0))  # the echo stands between
        assert shown == [f"{number:03d}" for number in range(400)]

    async def test_a_person_who_scrolled_back_does_not_garble_a_nudge(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        await provider.start(puppet("alpha", tmp_path))
        pane = await provider._sight.pane(ALPHA)
        await provider._tmux.call("copy-mode", "-t", pane.id)
        await provider.nudge(ALPHA, "say q")
        await shows(provider, ALPHA, "said q")

    async def test_first_questions_are_answered_and_the_prompt_awaited(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = cities.open()
        spec = puppet(
            "alpha", tmp_path, dialogs=(Dialog("trust this folder", choose="Yes"),),
            readiness=Readiness(prompt_prefix="%"), nudge="hello",
        )  # fmt: skip
        await provider.start(replace(spec, command=(spec.command[-1], str(MENU))))
        await shows(provider, ALPHA, "heard hello")

    async def test_enters_that_a_program_loses_are_pressed_again(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        await provider.start(composer(tmp_path, "2", "seen", "0"))
        await provider.nudge(ALPHA, "light the lamps")
        await provider.nudge(ALPHA, "and the lanterns, " * 30)
        shown = await provider.peek(ALPHA)
        assert "heard [light the lamps]" in shown
        assert "heard [and the lanterns, and" in shown

    async def test_text_that_a_program_never_takes_is_reported_and_does_not_mix_with_the_next(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = impatient(cities.open())
        await provider.start(composer(tmp_path, "3", "seen", "0"))
        with pytest.raises(NotDelivered, match="stayed in its input row"):
            await provider.nudge(ALPHA, "the first message")
        await provider.nudge(ALPHA, "the second message")
        await shows(provider, ALPHA, "heard [the second message]")
        assert "first" not in await provider.peek(ALPHA)

    async def test_a_program_that_does_not_show_what_is_typed_gets_no_enter_and_the_nudge_is_reported(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = impatient(cities.open())
        await provider.start(composer(tmp_path, "0", "blind", "0"))
        with pytest.raises(NotDelivered, match="did not appear"):
            await provider.nudge(ALPHA, "open the gate")
        assert "heard" not in await provider.peek(ALPHA)

    async def test_a_start_tells_that_its_first_nudge_did_not_arrive(self, cities: RealCities, tmp_path: Path) -> None:
        provider = impatient(cities.open())
        seen = await provider.start(replace(composer(tmp_path, "0", "blind", "0"), nudge="open the gate"))
        assert seen.alive
        assert "did not appear" in seen.meta[meta.NUDGE_FAILED]

    async def test_a_program_that_draws_its_prompt_before_it_reads_gets_its_first_nudge_whole(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = cities.open()
        await provider.start(replace(composer(tmp_path, "1", "seen", "3"), nudge="good morning"))
        await shows(provider, ALPHA, "heard [good morning]")

    async def test_a_nudge_to_a_program_that_ends_by_it_has_arrived(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        await provider.start(puppet("alpha", tmp_path))
        await provider.nudge(ALPHA, "exit 3")

    async def test_windows_a_person_opens_are_not_the_agent(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        started = await provider.start(puppet("alpha", tmp_path))
        await provider._tmux.call("new-window", "-t", "=alpha:", "sleep 600")
        await provider.nudge(ALPHA, "say to the agent")
        await shows(provider, ALPHA, "said to the agent")
        seen = await provider.seen()
        assert (list(seen), seen[ALPHA].pid) == ([ALPHA], started.pid)

    async def test_an_agent_that_left_its_shell_behind_is_not_alive(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        spec = replace(puppet("alpha", tmp_path, process_names=("no-such-agent",)))
        await provider.start(spec)
        record = provider._records.read(ALPHA)
        pane = await provider._sight.pane(ALPHA)
        table = await provider._table.look()
        assert provider._sight.alive(pane, record, table), "it has its time to come up"
        old = replace(record, started_at=record.started_at.replace(year=2020))
        assert not provider._sight.alive(pane, old, table)

    async def test_secrets_of_the_environment_are_on_no_command_line(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        started = await provider.start(puppet("alpha", tmp_path, env={"PATH": os.environ["PATH"], "KEY": "s3cret"}))
        await provider.nudge(ALPHA, "env KEY")
        await shows(provider, ALPHA, "env KEY is s3cret")
        line = await asyncio.to_thread(Path(f"/proc/{started.pid}/cmdline").read_bytes)
        assert b"s3cret" not in line

    async def test_a_line_held_to_the_server_shows_nowhere_and_goes_with_its_provider(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = cities.open()
        await lined(provider, tmp_path)
        assert list(await provider.seen()) == [ALPHA]
        await provider.stop(ALPHA, grace=AT_ONCE)
        await provider.close()
        await until(partial(no_server, provider))

    @pytest.mark.parametrize("by_line", [True, False], ids=["line", "process"])
    async def test_words_reach_the_server_as_they_are(
        self, cities: RealCities, tmp_path: Path, *, by_line: bool
    ) -> None:
        provider = cities.open()
        await (lined(provider, tmp_path) if by_line else provider.start(puppet("alpha", tmp_path)))
        for word in ("it's", 'a "b" c', "$HOME ~ `ls`", "~", "#{pane_id}", "# no comment", "a;", "\\;", ";;", "\\n\\",
                     "two\nlines\n", "ünï", "{ }", "%if x", "-", "tab\there", "x" * 70_000):  # fmt: skip
            if len(word) > 10_000 and not by_line:
                continue  # more than one message of tmux's holds
            kept = tmp_path / "kept"
            await provider._tmux.call("set-buffer", "-b", "t", "--", word, ";", "save-buffer", "-b", "t", str(kept))
            assert kept.read_text() == word

    async def test_a_server_killed_under_its_line_is_started_again(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        endings = await lined(provider, tmp_path)
        await run_tmux(provider, "kill-server")
        assert await hear(endings) == ALPHA
        assert await provider.seen() == {}
        await provider.start(puppet("alpha", tmp_path))
        await provider.nudge(ALPHA, "say hello again")
        await shows(provider, ALPHA, "said hello again")
        await until(partial(has_line, provider))

    @pytest.mark.parametrize("looked", [True, False], ids=["seen", "unseen"])
    async def test_a_program_that_outlives_its_server_is_ended_before_it_is_started_again(
        self, cities: RealCities, tmp_path: Path, *, looked: bool
    ) -> None:
        provider = cities.open()
        endings = await lined(provider, tmp_path, stubborn(tmp_path))
        await shows(provider, ALPHA, "at work")
        await run_tmux(provider, "kill-server")
        assert await hear(endings) == ALPHA
        if looked:
            assert await provider.seen() == {}
        await provider.start(stubborn(tmp_path))
        await shows(provider, ALPHA, "at work")
        assert len((tmp_path / "starts").read_text().split()) == 2
        assert not (tmp_path / "beside").exists()

    async def test_a_start_in_a_pane_that_is_gone_does_not_touch_the_one_that_has_its_id_now(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = cities.open()
        endings = await lined(provider, tmp_path)
        await run_tmux(provider, "kill-server")
        assert await hear(endings) == ALPHA
        other = cities.open()  # does not know of the first server
        beta = await other.start(puppet("beta", tmp_path))
        assert beta.pid is not None
        pane = await other._sight.pane(SessionName("beta"))
        provider._sight.last[ALPHA] = replace(provider._sight.last[ALPHA], id=pane.id)
        await provider.start(puppet("alpha", tmp_path))
        seen = await provider.seen()
        assert {name: one.alive for name, one in seen.items()} == {ALPHA: True, SessionName("beta"): True}
        assert seen[SessionName("beta")].pid == beta.pid

    async def test_lines_that_killed_processes_left_are_ended_by_the_next(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = cities.open()
        await lined(provider, tmp_path)
        server = await ask_tmux(provider, "display-message", "-p", "#{pid}")
        dead = await asyncio.create_subprocess_exec("true")
        await dead.wait()
        holder = f"lamp-line-{dead.pid}-0123456789ab-01234567"
        client = await asyncio.create_subprocess_exec(
            "tmux", "-C", "-S", str(provider._tmux.socket), "new-session", "-s", holder, "sleep 600",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        await client.stdout.readuntil(holder.encode())  # it is attached
        await provider.cleanup()
        assert await client.wait() != 0
        kept = await ask_tmux(provider, "list-sessions", "-F", "#{session_name}")
        assert sorted(kept.split()) == sorted(["alpha", provider._tmux._holder])
        assert await ask_tmux(provider, "display-message", "-p", "#{pid}") == server

    async def test_a_line_that_somebody_cuts_is_opened_anew(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        await lined(provider, tmp_path)
        provider._tmux._line._process.kill()

        async def lost() -> bool:
            return not provider._tmux._line.is_open

        await until(lost)
        assert (await provider.seen())[ALPHA].alive
        await until(partial(has_line, provider))

        async def swept() -> bool:  # the line is used before what the old one left is ended
            kept = await ask_tmux(provider, "list-sessions", "-F", "#{session_name}")
            return sorted(kept.split()) == sorted(["alpha", provider._tmux._holder])

        await until(swept)

    async def test_a_start_whose_answer_was_lost_is_not_done_twice(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        provider._opening = replace(provider._opening, tmux=Forgetful(provider._tmux.socket, provider._tmux.env))
        for _ in range(2):  # in a new session, then in its dead pane
            started = await provider.start(puppet("alpha", tmp_path))

            async def marked(session_id: str = started.session_id) -> list[int]:
                table = await provider._table.look()
                return [one.pid for one in table.values() if one.session_id == session_id and not one.zombie]

            async def is_marked() -> bool:
                return bool(await marked())

            await until(is_marked)  # its mark comes with its program, a moment after the pane
            assert await marked() == [started.pid]
            await end(provider, ALPHA)


class Forgetful(TmuxClient):
    """Does what it is told, and loses the answer."""

    async def call_once(self, *words: str) -> str:
        await super().call_once(*words)
        raise LineLost


def stubborn(work_dir: Path) -> SessionSpec:
    """A program whose terminal may go, as that of its shell; it notes its starts, and those it finds at work."""
    script = """
        trap '' HUP
        for one in $(cat starts); do
          case $(cat /proc/$one/stat) in *") Z "*) ;; ?*) echo $one >> beside ;; esac
        done
        echo $$ >> starts
        echo at work
        sleep 600
    """
    spec = puppet("alpha", work_dir)
    return replace(spec, command=(*spec.command[:2], '/bin/sh -c "$0" 2>/dev/null; exit 1', script))


async def lined(provider: TmuxProvider, work_dir: Path, spec: SessionSpec | None = None) -> AsyncIterator[SessionName]:
    """Start a session and have the line to its server open."""
    endings = provider.ended()
    await provider.start(spec or puppet("alpha", work_dir))
    await until(partial(has_line, provider))
    return endings


async def has_line(provider: TmuxProvider) -> bool:
    await provider.seen()
    return provider._tmux._line is not None and provider._tmux._line.is_open


async def no_server(provider: TmuxProvider) -> bool:
    return await run_tmux(provider, "list-sessions", check=False) != 0


async def ask_tmux(provider: TmuxProvider, *words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "tmux", "-S", str(provider._tmux.socket), *words, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    return said.decode()


async def run_tmux(provider: TmuxProvider, *words: str, check: bool = True) -> int:
    process = await asyncio.create_subprocess_exec(
        "tmux", "-S", str(provider._tmux.socket), *words, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    status = await process.wait()
    assert status == 0 or not check
    return status
