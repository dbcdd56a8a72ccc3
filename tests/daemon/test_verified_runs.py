"""Claims of success that are verified: green ends the run, red sends the program on, in the same run and place."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from loops_city import Loops, open_loops
from test_agent_runs import add, begin, finished, said, types

from lamplighter.domain.access import of_run
from lamplighter.domain.runs.completion import BeingVerified, CompletionConflict, RoundOver
from lamplighter.domain.runs.model import Grade, Run, RunState
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import to_json
from lamplighter.services.operation import judged
from lamplighter.services.runs import review, transcripts
from lamplighter.services.runs.completing import Completed
from lamplighter.services.runs.operations import COMPLETE_RUN, completed
from lamplighter.services.runs.queries import ShowRun, show_run
from lamplighter.store.url import Place

WAIT = 'until [ -e "$LAMP_CITY/go$LAMP_RUN_ID.$LAMP_ROUND" ]; do sleep 0.05; done'
"""A program that ends by itself once it has claimed."""


@pytest.fixture
async def loops(place: Place, tmp_path: Path) -> AsyncIterator[Loops]:
    async with open_loops(place, tmp_path, owners=("own_first", "own_second")) as found:
        yield found


def repository(place: Path) -> None:
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=place, check=True)


async def claim(loops: Loops, run: str, number: int = 1, **changes: Any) -> Completed:
    ctx = changed(loops.context, actor=of_run(run))
    words = said(run, completion_id=completion_id(run, number), **changes)
    try:
        return completed(await loops.store.transact(judged, COMPLETE_RUN, words, ctx))
    finally:
        (loops.root / f"go{run}.{number}").touch()  # afterwards: its program must not end before its claim is on record


async def in_round(loops: Loops, run: str, number: int) -> Run:
    """Until its program works in that round, or the run has ended."""

    async def there() -> bool:
        row = await loops.get(run)
        return row.ended or (row.round == number and row.session_id is not None)

    await loops.until(there)
    return await loops.get(run)


async def working(loops: Loops, run: str, number: int) -> Run:
    """As `in_round`, with the worker's own loop."""
    watching = asyncio.create_task(loops.parts.worker.loop())
    row = await in_round(loops, run, number)
    watching.cancel()
    await asyncio.wait({watching})
    return row


async def test_a_claim_is_answered_at_once_and_a_green_command_makes_it_a_verified_success(loops: Loops) -> None:
    await add(loops, "good", f"sleep 60 & {WAIT}", verify="test -e mended", verify_timeout="20s")
    run = await begin(loops, "good")
    (loops.root / "mended").touch()
    told = await claim(loops, run)
    assert (told.state, told.verifying, told.grade) == (RunState.RUNNING, True, None)
    assert "being verified" in (told.message or "")
    assert (await loops.get(run)).pending == completion_id(run)
    with pytest.raises(BeingVerified):
        await claim(loops, run, 7)
    again = await claim(loops, run)
    assert (again.replayed, again.verifying) == (True, True)
    row = await finished(loops, run)
    assert (row.state, row.grade, row.pending, row.round) == (RunState.SUCCEEDED, Grade.VERIFIED, None, 1)
    assert (row.summary, row.completion_id) == ("Lit.", completion_id(run))
    assert (await claim(loops, run)).grade is Grade.VERIFIED
    happened = await types(loops, run)
    assert happened.count("completion_claimed") == happened.count("verify_passed") == 1
    shown = to_json(await loops.store.read(show_run, ShowRun(run), loops.context))
    assert (shown["grade"], shown["verifying"]) == ("verified", False)
    assert [one["name"] for one in shown["artifacts"]] == ["completion", "enrichment"]
    assert loops.sleepers() == []
    assert await loops.runner.kept() == []


async def test_without_a_command_a_success_is_claimed_and_other_ends_have_no_grade(loops: Loops) -> None:
    await add(loops, "plain", WAIT)
    run = await begin(loops, "plain")
    assert (await claim(loops, run)).grade is Grade.CLAIMED
    assert (await finished(loops, run)).grade is Grade.CLAIMED
    await add(loops, "strict", WAIT, verify="false")
    run = await begin(loops, "strict")
    assert (await claim(loops, run, outcome="failed")).state is RunState.FAILED
    row = await finished(loops, run)
    assert (row.state, row.grade) == (RunState.FAILED, None), "only a success is verified"


async def test_a_red_command_sends_the_program_on_and_its_repair_is_verified(loops: Loops) -> None:
    script = 'echo "round $LAMP_ROUND"; cp "$LAMP_MESSAGE_FILE" told 2>/dev/null; ' + WAIT
    await add(loops, "mends", script, verify="echo lamps are dark; test -e mended")
    run = await begin(loops, "mends")
    first = (await loops.get(run)).session_id
    await claim(loops, run)
    row = await working(loops, run, 2)
    assert (row.state, row.round, row.pending) == (RunState.RUNNING, 2, None)
    assert row.session_id != first
    await loops.until(lambda: _says(loops.root / "told", "lamps are dark"))
    assert "could not be verified" in (loops.root / "told").read_text()
    assert "lamps are dark" in (loops.root / "told").read_text()
    old = await claim(loops, run)
    assert old.replayed
    assert completion_id(run, 2) in (old.message or ""), "a replay gets its round's answer"
    with pytest.raises(RoundOver):
        await claim(loops, run, summary_markdown="Lit, really.")
    (loops.root / "mended").touch()
    await claim(loops, run, 2, summary_markdown="Mended.")
    row = await finished(loops, run)
    assert (row.state, row.grade, row.round, row.summary) == (RunState.SUCCEEDED, Grade.VERIFIED, 2, "Mended.")
    told = await loops.store.read(transcripts.of_run, run)
    assert [one.body["text"] for one in told if one.kind == "text"] == ["round 1", "round 2"]
    happened = await types(loops, run)
    assert [one for one in happened if one.startswith(("verify", "session"))] == [
        "session_created", "verify_failed", "session_created", "verify_passed",
    ]  # fmt: skip
    events = await loops.store.read(lambda tx: tx.events.after(0))
    assert [one.payload["round"] for one in events if one.type == "run.verify_failed"] == [1]
    with pytest.raises(CompletionConflict):
        await claim(loops, run, 2, summary_markdown="Otherwise.")


async def test_after_its_rounds_the_run_has_failed_by_what_the_command_said(loops: Loops) -> None:
    await add(loops, "never", WAIT, verify="echo still dark; exit 4", rounds=0)
    run = await begin(loops, "never")
    await claim(loops, run)
    row = await finished(loops, run)
    assert (row.state, row.reason, row.exit_code, row.grade) == (RunState.FAILED, "verify", 4, None)
    assert row.output_tail.strip() == "still dark"
    assert row.error.endswith("the check `echo still dark; exit 4` ended with exit code 4: still dark")
    again = await claim(loops, run)
    assert (again.replayed, again.state) == (True, RunState.FAILED)


async def test_a_command_that_takes_too_long_is_red(loops: Loops) -> None:
    await add(loops, "slow", WAIT, verify="sleep 4711", verify_timeout="1s", rounds=0)
    run = await begin(loops, "slow")
    await claim(loops, run)
    row = await finished(loops, run)
    assert (row.state, row.reason) == (RunState.FAILED, "verify")
    assert "time limit" in row.error
    assert loops.sleepers() == []


async def test_a_run_canceled_while_it_is_verified_ends_with_all_its_processes(loops: Loops) -> None:
    await add(loops, "long", WAIT, verify="sleep 4712")
    run = await begin(loops, "long")
    await claim(loops, run)

    async def verifies() -> bool:
        return any(key.endswith(".verify1") for key in await loops.runner.kept())

    watching = asyncio.create_task(loops.parts.worker.loop())
    await loops.until(verifies)
    watching.cancel()
    await asyncio.wait({watching})
    await loops.store.transact(review.cancel, run, ctx=loops.context)
    row = await finished(loops, run)
    assert (row.state, row.pending, row.grade) == (RunState.CANCELED, None, None)
    assert loops.sleepers() == []


async def test_it_is_verified_in_the_run_s_worktree_which_is_not_removed_before(loops: Loops) -> None:
    await asyncio.to_thread(repository, loops.root / "web")
    await add(loops, "tree", f"touch lit; {WAIT}", rig="web", verify="test -e lit && pwd > ../../../where")
    run = await begin(loops, "tree:rig:web")
    await loops.until(lambda: _exists(loops.root / ".gc" / "worktrees" / run / "lit"))
    await claim(loops, run)
    row = await finished(loops, run)
    assert (row.state, row.grade) == (RunState.SUCCEEDED, Grade.VERIFIED)
    assert (loops.root / "where").read_text().strip() == str(loops.root / ".gc" / "worktrees" / run)


async def test_a_command_s_run_is_verified_too(loops: Loops) -> None:
    await loops.add("makes", exec="touch made", verify="test -e made")
    row = await loops.work("makes")
    assert (row.state, row.grade) == (RunState.SUCCEEDED, Grade.VERIFIED)
    await loops.add("claims", exec="echo made", verify="echo nothing there; exit 3")
    row = await loops.work("claims")
    assert (row.state, row.reason, row.exit_code, row.grade) == (RunState.FAILED, "verify", 3, None)
    assert row.output_tail.split("\n")[:2] == ["made", "nothing there"]
    assert row.error.endswith("the check `echo nothing there; exit 3` ended with exit code 3: nothing there")
    await loops.add("plain", exec="true")
    assert (await loops.work("plain")).grade is None


async def _exists(path: Path) -> bool:
    return path.exists()


async def _says(path: Path, text: str) -> bool:
    """A file is there before its text is."""
    return path.exists() and text in path.read_text()
