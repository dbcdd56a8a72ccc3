"""Processes as the system prints them, and which of them belong to a session."""

import os
from datetime import UTC, datetime, timedelta

from lamplighter.adapters.processes.table import Identity, Process, boot_id, booted_at, parse_ps, parse_stat
from lamplighter.adapters.processes.tree import Marks, members

PS = """\
    1     0 Ss   Sun Nov  1 10:00:00 2026 /sbin/launchd
  501     1 S    Sun Nov 15 21:42:21 2026 /usr/bin/node a.js LAMP_SESSION_ID=ses_1 LAMP_SESSION=alpha LAMP_CITY_ID=c
  502   501 Z    Sun Nov 15 21:42:22 2026 (sh)
rubbish
"""


def test_a_name_with_brackets_and_blanks_does_not_confuse_the_reading() -> None:
    line = "77 (a) b (c) S 5 77 77 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 123456 0 0"
    assert parse_stat(line) == Process(77, 5, "123456", "a) b (c")
    assert parse_stat("77 (cut off") is None


def test_the_lines_of_ps_are_read_with_their_marks() -> None:
    found = {process.pid: process for process in parse_ps(PS)}
    assert found[501] == Process(
        501, 1, "Sun Nov 15 21:42:21 2026", "node", session_id="ses_1", session="alpha", city="c"
    )
    assert found[1].start == "Sun Nov 1 10:00:00 2026"
    assert found[502].zombie


def table(*processes: Process) -> dict[int, Process]:
    return {process.pid: process for process in processes}


NOBODY = Marks("", "", "")


def test_members_are_descendants_and_the_marked_with_theirs_parents_first() -> None:
    world = table(
        Process(10, 1, "a", "agent"),
        Process(11, 10, "b", "sh"),
        Process(12, 11, "c", "sleep"),
        Process(20, 1, "d", "daemon", session_id="ses_1"),
        Process(21, 20, "e", "helper"),
        Process(30, 1, "f", "stranger", session_id="ses_2"),
    )
    root = Identity(10, "a", boot_id())
    assert [process.pid for process in members(world, (root,), Marks("ses_1", "", ""))] == [10, 20, 11, 21, 12]


def test_a_pid_that_went_to_another_is_nobodys_root() -> None:
    world = table(Process(10, 1, "later", "stranger"))
    assert members(world, (Identity(10, "a", boot_id()),), NOBODY) == []


def test_the_same_name_in_another_city_is_not_ours() -> None:
    world = table(Process(10, 1, "a", "agent", session_id="x", session="alpha", city="foo-bar"))
    assert members(world, (), Marks("ses_1", "alpha", "foo")) == []
    assert members(world, (), Marks("ses_1", "alpha", "foo-bar")) != []


def test_no_process_is_ever_asked_to_end_itself() -> None:
    world = table(Process(os.getpid(), 1, "a", "pytest", session_id="ses_1"))
    assert members(world, (), Marks("ses_1", "", "")) == []


def test_unmarked_processes_do_not_match_an_unmarked_session() -> None:
    assert members(table(Process(10, 1, "a", "x")), (), NOBODY) == []


def test_it_is_known_when_the_machine_was_started() -> None:
    found, now = booted_at(), datetime.now(UTC)
    assert found is not None
    assert now - timedelta(days=4000) < found < now
