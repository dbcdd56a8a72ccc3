"""Ids, backoff, near names, masking, times and crash points."""

import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.kit import crash, log
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import Reading, SystemClock, from_rfc3339, rfc3339, set_back_by
from lamplighter.kit.errors import Kind, LampError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.masking import MASK, is_secret, masked
from lamplighter.kit.nearest import did_you_mean, nearest
from lamplighter.testing.clock import FakeClock

SPANS = st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=999_999_999))


class TestIds:
    def test_ids_name_their_kind_and_sort_by_time(self, fake_clock: FakeClock, ids: IdSource) -> None:
        made = []
        for _ in range(20):
            made.append(ids.make("run"))
            fake_clock.advance(0.001)
        assert made == sorted(made)
        assert all(len(each) == len("run_") + 26 and each.startswith("run_") for each in made)

    def test_ids_of_one_moment_differ(self, ids: IdSource) -> None:
        assert len({ids.make("run") for _ in range(1000)}) == 1000

    @given(st.integers(1, 12))
    def test_a_short_word_has_its_length(self, length: int) -> None:
        word = IdSource(FakeClock()).short(length)
        assert len(word) == length
        assert word.isalnum()
        assert word == word.lower()


class TestBackoff:
    def test_it_doubles_up_to_the_most(self) -> None:
        first, most = timedelta(seconds=30), timedelta(minutes=5)
        delays = [doubling(attempt, first=first, most=most).total_seconds() for attempt in range(6)]
        assert delays == [30, 60, 120, 240, 300, 300]

    @given(st.integers(-5, 10**9), SPANS, SPANS, st.floats(0, 1, exclude_max=True))
    def test_it_never_exceeds_the_most_nor_overflows(
        self, attempt: int, first: timedelta, most: timedelta, chance: float
    ) -> None:
        delay = doubling(attempt, first=first, most=most, chance=chance)
        assert timedelta(0) <= delay <= most
        assert delay >= min(first, most) * 0.499 - timedelta(microseconds=1)


class TestNearest:
    def test_a_mistyped_name_finds_the_one_meant(self) -> None:
        assert nearest("proivder", ["provider", "name"]) == "provider"
        assert did_you_mean("Statsu", ["status", "stop"]) == "; did you mean `status`?"

    def test_nothing_near_says_nothing(self) -> None:
        assert did_you_mean("zzz", ["status"]) == ""
        assert did_you_mean("", []) == ""


class TestMasking:
    @pytest.mark.parametrize(
        "text",
        ["postgresql://user:hush@host/db", "see postgresql://:hush@host and more", "postgresql:///db?password=hush",
         "postgresql:///db?user=u&password=hush&host=h", "x sslpassword=hush", "HTTPS://U:hush@h",
         "postgresql://user:a/b@hush@host/db", "https://u:x12/hush@host",
         "'redis://:p@/hush@host' failed"],
    )  # fmt: skip
    def test_passwords_in_urls_are_covered(self, text: str) -> None:
        assert "hush" not in masked(text)
        assert MASK in masked(text)

    @pytest.mark.parametrize("text", ["http://localhost:3000/@vite/client", "see http://host:80/?to=me@example.org"])
    def test_a_port_is_no_password(self, text: str) -> None:
        assert masked(text) == text

    @given(st.text())
    def test_other_text_stays(self, text: str) -> None:
        if "://" not in text and "password" not in text.lower():
            assert masked(text) == text

    @pytest.mark.parametrize("name", ["token", "API_KEY", "client_secret", "Authorization", "slack_bot_token"])
    def test_fields_that_hold_secrets_are_known(self, name: str) -> None:
        assert is_secret(name)

    def test_logs_show_no_secret_and_no_colour_away_from_a_terminal(self) -> None:
        out = io.StringIO()
        try:
            log.set_up(out, json=True)
            log.get().info("store.opened", url="postgresql://u:hush@h/db", token="hush")  # noqa: S106  what is to be covered
            log.set_up(out)
            log.get().warning("store.opened", url="postgresql://u:hush@h/db")
        finally:
            structlog.reset_defaults()
        first, second = out.getvalue().splitlines()
        assert json.loads(first)["token"] == MASK
        assert "hush" not in out.getvalue()
        assert "\x1b" not in second


class TestTimes:
    @given(st.datetimes(timezones=st.just(UTC)))
    def test_a_time_survives_being_written_and_read(self, at: datetime) -> None:
        assert from_rfc3339(rfc3339(at)) == at

    @given(st.lists(st.datetimes(timezones=st.just(UTC), min_value=datetime(1000, 1, 1))))  # noqa: DTZ001  hypothesis asks for a naive one
    def test_the_order_of_texts_is_the_order_of_times(self, times: list[datetime]) -> None:
        assert sorted(map(rfc3339, times)) == [rfc3339(at) for at in sorted(times)]

    def test_another_zone_is_written_in_utc(self) -> None:
        at = datetime(2026, 3, 2, 9, 0, tzinfo=timezone(timedelta(hours=2)))
        assert rfc3339(at) == "2026-03-02T07:00:00.000000Z"

    @pytest.mark.parametrize("text", ["", "yesterday", "2026-03-02T09:00:00"])
    def test_a_text_without_time_or_zone_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError):  # noqa: PT011  the standard library words some of them
            from_rfc3339(text)


class TestErrors:
    def test_an_error_carries_sentence_hint_and_kind(self) -> None:
        error = LampError("It is so.", hint="Do this.")
        assert (str(error), error.message, error.hint, error.kind) == ("It is so.", "It is so.", "Do this.", Kind.NO)


class TestCrashPoints:
    def test_a_point_kills_only_after_its_passes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        killed: list[int] = []
        monkeypatch.setattr(crash.os, "kill", lambda pid, _signal: killed.append(pid))
        monkeypatch.setattr(crash, "_armed", {})
        point = crash.CrashPoint.STORE_BEFORE_COMMIT
        crash.crash_point(point)
        crash.arm(point, passes=2)
        crash.crash_point(crash.CrashPoint.STORE_AFTER_COMMIT)
        crash.crash_point(point)
        crash.crash_point(point)
        assert killed == []
        crash.crash_point(point)
        assert len(killed) == 1


def test_a_process_and_its_child_make_different_ids() -> None:
    ids = IdSource(SystemClock())
    ids.make("run")  # chance is fetched for many
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, " ".join(ids.make("run") for _ in range(3)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 200).decode().split()
    os.close(reading)
    os.close(writing)
    assert len(theirs) == 3
    assert not {one[-16:] for one in theirs} & {ids.make("run")[-16:] for _ in range(3)}


def test_ids_made_by_many_threads_are_all_different() -> None:
    ids = IdSource(SystemClock())
    with ThreadPoolExecutor(8) as threads:
        made = [one for some in threads.map(lambda _: [ids.make("x") for _ in range(500)], range(8)) for one in some]
    assert len(set(made)) == 4000


@pytest.mark.timeout(10)
def test_covering_passwords_takes_no_longer_for_one_long_word() -> None:
    word = "x" * 200_000
    assert masked(word) == word
    assert masked(f"{word}://{word}") == f"{word}://{word}"
    assert masked("1http://me:secret@host") == f"1http://me:{MASK}@host"


def test_a_clock_is_set_back_when_it_falls_behind_the_one_that_only_goes_on() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    before = Reading(noon, 100.0)
    assert set_back_by(before, Reading(noon + timedelta(seconds=7), 107.0)) is None
    assert set_back_by(before, Reading(noon + timedelta(hours=9), 107.0)) is None
    assert set_back_by(before, Reading(noon + timedelta(seconds=3), 107.0)) is None
    assert set_back_by(before, Reading(noon - timedelta(hours=1), 107.0)) == timedelta(hours=1, seconds=7)
