"""Who is signed in with a browser, in files: links that work once, sessions that end."""

import stat
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from lamplighter.adapters.files.browser_sessions import LINK_LASTS, MOST_SESSIONS, SESSION_LASTS, BrowserSessions
from lamplighter.domain.access import Actor, Role, owner
from lamplighter.testing.clock import FakeClock

ADA = Actor("ada", Role.MEMBER)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sessions(tmp_path: Path, clock: FakeClock) -> BrowserSessions:
    return BrowserSessions(tmp_path, clock, "lot_" + "t" * 40)


def test_a_link_signs_in_once_as_whoever_made_it(sessions: BrowserSessions) -> None:
    secret = sessions.link(ADA)
    assert sessions.redeem(secret) == ADA
    assert sessions.redeem(secret) is None


def test_of_many_at_once_one_gets_in(sessions: BrowserSessions) -> None:
    secret, got = sessions.link(ADA), []
    together = threading.Barrier(8)

    def use() -> None:
        together.wait()
        got.append(sessions.redeem(secret))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got.count(ADA) == 1
    assert got.count(None) == 7


def test_an_old_link_is_worth_nothing_and_neither_is_an_old_session(
    sessions: BrowserSessions, clock: FakeClock
) -> None:
    secret, session = sessions.link(ADA), sessions.begin(ADA)
    clock.advance(LINK_LASTS)
    assert sessions.redeem(secret) is None
    assert sessions.actor(session) == ADA
    clock.advance(SESSION_LASTS - LINK_LASTS)
    assert sessions.actor(session) is None


def test_a_link_is_no_session_and_a_session_no_link(sessions: BrowserSessions) -> None:
    link, session = sessions.link(ADA), sessions.begin(ADA)
    assert sessions.actor(link) is None
    assert sessions.redeem(session) is None
    assert sessions.actor(session) == ADA
    assert sessions.redeem(link) is not None, "neither was used up"


def test_signed_out_is_signed_out(sessions: BrowserSessions) -> None:
    secret, other = sessions.begin(ADA), sessions.begin(ADA)
    sessions.end(secret)
    sessions.end(secret)
    assert sessions.actor(other) == ADA
    assert sessions.actor(secret) is None


def test_a_new_owner_token_signs_every_browser_out(sessions: BrowserSessions, tmp_path: Path, clock: FakeClock) -> None:
    secret = sessions.begin(owner("ada"))
    assert sessions.actor(secret) == owner("ada")
    assert BrowserSessions(tmp_path, clock, "lot_" + "n" * 40).actor(secret) is None


def test_only_the_user_can_read_them_and_no_file_holds_a_secret(sessions: BrowserSessions, tmp_path: Path) -> None:
    secrets = [sessions.link(ADA), sessions.begin(ADA)]
    folder = tmp_path / "console"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not any(secret in path.name + path.read_text() for secret in secrets)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"until": 7}', '{"until": "2999-01-01T00:00:00Z", "name": "eve"}'])
def test_a_broken_file_lets_nobody_in(sessions: BrowserSessions, tmp_path: Path, text: str) -> None:
    secret = sessions.begin(ADA)
    (path,) = (tmp_path / "console").glob("session-*")
    path.write_text(text)
    assert sessions.actor(secret) is None
    sessions.begin(ADA)  # and the rubbish is taken away or does no harm


@pytest.mark.parametrize("secret", ["", "../../owner.token", "x" * 10_000, "\udcff", "a/b"])
def test_rubbish_is_no_secret(sessions: BrowserSessions, secret: str) -> None:
    assert sessions.actor(secret) is None
    assert sessions.redeem(secret) is None


def test_sessions_are_bounded_and_the_oldest_goes_first(sessions: BrowserSessions, clock: FakeClock) -> None:
    first = sessions.begin(ADA)
    clock.advance(timedelta(seconds=1))
    rest = [sessions.begin(ADA) for _ in range(MOST_SESSIONS)]
    assert sessions.actor(first) is None
    assert sessions.actor(rest[-1]) == ADA
