"""The notes and the cursor of an automation: handed to every run, written by whoever names what it read."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from loops_city import Loops, open_loops
from test_agent_runs import add, begin, finished
from test_verified_runs import WAIT, claim

from lamplighter.domain.access import Forbidden, RunOver, of_run
from lamplighter.domain.automations.cursors import CursorKind
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import changed
from lamplighter.services.automations import editing
from lamplighter.services.automations.cursors import KEEP_CURSOR, CursorMoved, CursorView, KeepCursor
from lamplighter.services.automations.firing import AutomationUnknown
from lamplighter.services.automations.notes import KEEP_NOTES, KeepNotes, NoSuchNotes, NotesChanged, NotesView
from lamplighter.services.operation import judged
from lamplighter.store.url import Place


@pytest.fixture
async def loops(place: Place, tmp_path: Path) -> AsyncIterator[Loops]:
    async with open_loops(place, tmp_path) as found:
        yield found


async def keep(loops: Loops, run: str | None = None, **fields: Any) -> NotesView:
    ctx = loops.context if run is None else changed(loops.context, actor=of_run(run))
    found: NotesView = await loops.store.transact(judged, KEEP_NOTES, KeepNotes(**fields), ctx)
    return found


async def cursor(loops: Loops, run: str | None = None, **fields: Any) -> CursorView:
    ctx = loops.context if run is None else changed(loops.context, actor=of_run(run))
    found: CursorView = await loops.store.transact(judged, KEEP_CURSOR, KeepCursor(**fields), ctx)
    return found


async def test_a_run_is_told_the_cursor_and_moves_its_own_only(loops: Loops) -> None:
    await add(loops, "light", f'echo "at $LAMP_CURSOR" > "$LAMP_CITY/seen"; {WAIT}')
    await add(loops, "other", WAIT)
    assert (await cursor(loops, name="light")).value is None
    assert (await cursor(loops, name="light", set="0041", expect="", type=CursorKind.INTEGER)).value == "41"
    run = await begin(loops, "light")
    await loops.until(lambda: _has(loops.root / "seen", "at 41\n"))
    moved = await cursor(loops, run, set="57", expect="+41")
    assert (moved.value, moved.type, moved.version, moved.written_by) == ("57", "integer", 2, f"run:{run}")
    for fields, error in (
        ({"name": "other"}, Forbidden),
        ({"set": "58", "expect": "41"}, CursorMoved),
        ({"set": "58", "expect": ""}, CursorMoved),
        ({"set": "later", "expect": "57"}, UsageError),
        ({"set": "58"}, UsageError),
        ({"expect": "57"}, UsageError),
    ):
        with pytest.raises(error):
            await cursor(loops, run, **fields)
    await claim(loops, run)
    with pytest.raises(RunOver):
        await cursor(loops, run, set="60", expect="57")
    await finished(loops, run)
    assert (await cursor(loops, name="other")).value is None, "nothing leaks between automations"
    assert (await cursor(loops, name="light", set="b", expect="57", type=CursorKind.TEXT)).type == "text"
    await loops.store.transact(editing.delete, "light", ctx=loops.context)
    assert await loops.store.read(lambda tx: tx.db.rows("SELECT value FROM cursors", {})) == []


async def test_of_two_that_move_the_cursor_at_once_one_is_told_that_it_came_late(loops: Loops) -> None:
    await add(loops, "light", "true")
    for expected in ("", "a"):
        tries = (cursor(loops, name="light", set="a" if not expected else new, expect=expected) for new in "bcd")
        found = await asyncio.gather(*tries, return_exceptions=True)
        assert [type(one) for one in found].count(CursorMoved) == 2
    assert (await cursor(loops, name="light")).version == 2


async def test_a_run_gets_the_notes_and_hands_on_its_own(loops: Loops) -> None:
    script = f'cat "$LAMP_NOTES_FILE" > "$LAMP_CITY/notes.$LAMP_NOTES_VERSION"; {WAIT}'
    await add(loops, "light", script, overlap="allow")
    await add(loops, "other", WAIT)
    assert (await keep(loops, name="light")).version == 0
    assert (await keep(loops, name="light", text="Mind the oil.", version=0)).version == 1
    run = await begin(loops, "light")
    await loops.until(lambda: _has(loops.root / "notes.1", "Mind the oil."))
    assert (await keep(loops, run)).text == "Mind the oil."
    with pytest.raises(Forbidden):
        await keep(loops, run, name="other")
    written = await keep(loops, run, text="Mind the oil. And the wicks.", version=1)
    assert (written.version, written.written_by) == (2, f"run:{run}")
    await claim(loops, run)
    with pytest.raises(RunOver):
        await keep(loops, run, text="Late.", version=2)
    await finished(loops, run)
    assert (await keep(loops, name="other")).version == 0, "nothing leaks between automations"
    events = await loops.store.read(lambda tx: tx.events.after(0))
    assert [one.payload["version"] for one in events if one.type == "automation.noted"] == [1, 2]


async def test_two_that_write_at_once_lose_nothing(loops: Loops) -> None:
    await add(loops, "light", "true")
    tries = (keep(loops, name="light", text=text, version=0) for text in ("one", "two", "three"))
    found = await asyncio.gather(*tries, return_exceptions=True)
    assert [type(one) for one in found].count(NotesChanged) == 2
    assert (await keep(loops, name="light")).version == 1


async def test_what_is_too_long_or_no_text_is_refused_and_fifty_versions_are_kept(loops: Loops) -> None:
    await add(loops, "light", "true")
    for wrong in ("x" * 16_385, "ä" * 8_193, "a\0b", "\udcff"):
        with pytest.raises(UsageError):
            await keep(loops, name="light", text=wrong, version=0)
    for fields in ({"text": "x"}, {"version": 1}, {"text": "x", "version": 0, "at": 1}):
        with pytest.raises(UsageError):
            await keep(loops, name="light", **fields)
    with pytest.raises(UsageError):
        await keep(loops)
    with pytest.raises(AutomationUnknown):
        await keep(loops, name="nothing")
    assert (await keep(loops, name="light", text="ä" * 8_192, version=0)).version == 1
    for number in range(1, 55):
        await keep(loops, name="light", text=f"The {number}th.", version=number)
    assert (await keep(loops, name="light")).version == 55
    assert (await keep(loops, name="light", at=6)).text == "The 5th."
    with pytest.raises(NoSuchNotes):
        await keep(loops, name="light", at=5)
    await loops.store.transact(editing.delete, "light", ctx=loops.context)
    assert await loops.store.read(lambda tx: tx.db.rows("SELECT version FROM notes", {})) == []


async def _has(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text
