"""Wake-ups inside a process and by datagram between processes; and how statements are rendered."""

import asyncio
import contextlib
import socket
import threading
from pathlib import Path

import pytest

from lamplighter.app.wakeups import listening
from lamplighter.kit.errors import UsageError
from lamplighter.store.engine.datagrams import Datagrams, topics
from lamplighter.store.engine.dialect import POSTGRES, SQLITE
from lamplighter.store.engine.wakes import ALL, Wakes
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.url import PostgresUrl, SqliteUrl, parse_store_url

WITHIN = 120


class TestWakes:
    async def test_a_topic_wakes_those_who_wait_for_it(self) -> None:
        wakes = Wakes()
        mine, both, other = wakes.subscribe("a"), wakes.subscribe("a", "b"), wakes.subscribe("c")
        thread = threading.Thread(target=wakes.publish, args=({"a"},))
        thread.start()
        async with asyncio.timeout(WITHIN):
            await mine.wait()
            await both.wait()
        thread.join()
        assert not other.is_set()

    async def test_all_wakes_everyone(self) -> None:
        wakes = Wakes()
        mine = wakes.subscribe("a")
        wakes.publish({ALL})
        async with asyncio.timeout(WITHIN):
            await mine.wait()

    async def test_whoever_left_is_not_woken(self) -> None:
        wakes = Wakes()
        mine = wakes.subscribe("a")
        wakes.unsubscribe(mine)
        wakes.publish({"a"})
        await asyncio.sleep(0)
        assert not mine.is_set()

    def test_a_loop_that_closed_is_forgotten(self) -> None:
        wakes = Wakes()

        async def subscribe() -> None:
            wakes.subscribe("a")

        asyncio.run(subscribe())
        wakes.publish({"a"})
        assert wakes._waiting == []


def waiting(receiver: socket.socket) -> int:
    """How many datagrams lie in it."""
    found = 0
    with contextlib.suppress(BlockingIOError):
        while receiver.recv(100):
            found += 1
    return found


class TestDatagrams:
    def test_topics_reach_every_listener_but_those_left_out(self, tmp_path: Path) -> None:
        sender, first, second = (Datagrams(tmp_path / "wake") for _ in range(3))
        with sender.listen("me") as own, first.listen("a") as one, second.listen("b") as two:
            sender.publish({"beads", "events"}, but={"me"})
            assert topics(one.recv(100)) == topics(two.recv(100)) == {"beads", "events"}
            with pytest.raises(BlockingIOError):
                own.recv(100)
        sender.close()

    def test_a_socket_whose_process_died_is_cleared_away(self, tmp_path: Path) -> None:
        sender = Datagrams(tmp_path / "wake")
        Datagrams(tmp_path / "wake").listen("dead").close()
        assert len(list((tmp_path / "wake").iterdir())) == 1
        sender.publish({"x"})
        assert list((tmp_path / "wake").iterdir()) == []
        sender.close()

    def test_a_full_listener_delays_nobody(self, tmp_path: Path) -> None:
        sender = Datagrams(tmp_path / "wake")
        with Datagrams(tmp_path / "wake").listen("slow") as slow:
            for _ in range(5000):
                sender.publish({"x"})
            with Datagrams(tmp_path / "wake").listen("quick") as quick:
                sender.publish({"y"})
                assert quick.recv(100) == b"y"
            assert 0 < waiting(slow) < 5000
        sender.close()

    def test_nobody_listens_and_nothing_happens(self, tmp_path: Path) -> None:
        sender = Datagrams(tmp_path / "missing")
        sender.publish({"x"})
        assert not (tmp_path / "missing").exists()
        with Datagrams(tmp_path / "missing").listen("late") as late:
            sender.publish(set())
            sender.publish({"y"})
            assert late.recv(100) == b"y"
            assert waiting(late) == 0
        sender.close()

    def test_what_is_no_socket_disturbs_nobody(self, tmp_path: Path) -> None:
        directory = tmp_path / "wake"
        (directory / "directory").mkdir(parents=True)
        sender = Datagrams(directory)
        with Datagrams(directory).listen("b") as receiver:
            sender.publish({"x"})
            assert receiver.recv(100) == b"x"
        sender.close()

    def test_a_place_where_no_socket_can_be_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "wake").write_text("in the way", encoding="utf-8")
        with pytest.raises(StoreUnavailable, match="No socket"):
            Datagrams(tmp_path / "wake").listen("a")

    def test_a_deep_directory_is_reached(self, tmp_path: Path) -> None:
        deep = tmp_path / ("d" * 100) / ("é" * 50)
        sender = Datagrams(deep)
        with Datagrams(deep).listen("own_01234567890123456789012345") as receiver:
            sender.publish({"x"})
            assert receiver.recv(100) == b"x"
        sender.close()

    async def test_rubbish_from_outside_wakes_nobody_wrongly(self, tmp_path: Path) -> None:
        place = SqliteUrl(tmp_path / "lamp.db", tmp_path)
        wakes = Wakes()
        with listening(place, "me", wakes):
            mine = wakes.subscribe("a")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
                other.sendto(b"\xff\x00" * 1000, str(tmp_path / "wake" / "me"))
                other.sendto(b"", str(tmp_path / "wake" / "me"))
                await asyncio.sleep(0)
                assert not mine.is_set()
                other.sendto(b"a", str(tmp_path / "wake" / "me"))
            async with asyncio.timeout(WITHIN):
                await mine.wait()
        assert list((tmp_path / "wake").iterdir()) == []


class TestPlaces:
    def test_a_place_comes_from_its_url(self, tmp_path: Path) -> None:
        runtime = tmp_path / ".gc"
        assert parse_store_url("", runtime) == SqliteUrl(runtime / "lamp.db", runtime)
        assert parse_store_url("sqlite:data/x.db", runtime) == SqliteUrl(tmp_path / "data/x.db", runtime)
        assert parse_store_url("sqlite:///abs/x.db", runtime) == SqliteUrl(Path("/abs/x.db"), runtime)
        assert parse_store_url("sqlite:////abs/x.db", runtime) == SqliteUrl(Path("/abs/x.db"), runtime)
        assert parse_store_url("postgres://h/db", runtime) == PostgresUrl("postgres://h/db", runtime)

    @pytest.mark.parametrize("url", ["mysql://u:hush@h/db", "nonsense", "/a/path"])
    def test_another_url_is_a_mistake(self, url: str, tmp_path: Path) -> None:
        with pytest.raises(UsageError) as told:
            parse_store_url(url, tmp_path)
        assert "hush" not in told.value.message

    def test_a_place_names_itself_without_its_password(self, tmp_path: Path) -> None:
        assert "hush" not in str(PostgresUrl("postgresql://u:hush@h/db", tmp_path))


class TestDialect:
    def test_parameters_are_named_once_for_both(self) -> None:
        sql = "SELECT a::text, '10%' FROM t WHERE x = :one AND y = :two_2 {for_update}"
        assert SQLITE.render(sql) == sql.replace(" {for_update}", " ")
        assert POSTGRES.render(sql) == (
            "SELECT a::text, '10%%' FROM t WHERE x = %(one)s AND y = %(two_2)s FOR NO KEY UPDATE"
        )

    def test_a_list_is_bound_as_one_text(self) -> None:
        assert SQLITE.render("id {any:ids}") == "id IN (SELECT value FROM json_each(:ids))"
        assert "%(ids)s" in POSTGRES.render("id {any:ids}")
