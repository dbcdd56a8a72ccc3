"""Runs that ask a person: they end as needs_human, and an answer starts the run that goes on in the same place."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from loops_city import Loops, open_loops
from test_agent_runs import add, begin, finished, types
from test_verified_runs import WAIT, claim, repository

from lamplighter.domain.access import Forbidden, of_run
from lamplighter.domain.inbox.items import NotOpen, Shown
from lamplighter.domain.runs.completion import CompletionConflict, CompletionInvalid
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import to_json
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.inbox.operations import ANSWER, AnswerItem, NoQuestion
from lamplighter.services.inbox.queries import LIST as LIST_INBOX
from lamplighter.services.inbox.queries import ItemView, ListInbox
from lamplighter.services.inbox.sweep import REBUILD
from lamplighter.services.operation import judged
from lamplighter.services.runs import continuing, people, review, transcripts
from lamplighter.services.runs.completing import Completed
from lamplighter.services.runs.continuing import AlreadyAnswered, NoConversation, NotAsking
from lamplighter.services.runs.operations import ANSWER_RUN, ASK_PERSON, AnswerRun, completed
from lamplighter.services.runs.queries import ShowRun, show_run
from lamplighter.services.runs.questions import not_a_choice
from lamplighter.services.runs.views import NotedRun, QuestionView, RunView
from lamplighter.store.url import Place


@pytest.fixture
async def loops(place: Place, tmp_path: Path) -> AsyncIterator[Loops]:
    async with open_loops(place, tmp_path) as found:
        yield found


async def ask(loops: Loops, run: str, text: str = "Which lamp first?", **more: Any) -> Completed:
    words = ASK_PERSON.asked({"run_id": run, "question": text, "choices": ["the left", "the right"]} | more)
    ctx = changed(loops.context, actor=of_run(run))
    try:
        return completed(await loops.store.transact(judged, ASK_PERSON, words, ctx))
    finally:
        (loops.root / f"go{run}.1").touch()  # afterwards: its program must not end before its question is on record


async def answer(loops: Loops, run: str, text: str = "the left") -> NotedRun:
    found: NotedRun = await loops.store.transact(judged, ANSWER_RUN, AnswerRun(run, text), loops.context)
    return found


async def asked(loops: Loops, name: str, **more: Any) -> Run:
    run = await begin(loops, name)
    await ask(loops, run, **more)
    return await finished(loops, run)


SCRIPT = (
    'if [ -n "$LAMP_MESSAGE_FILE" ]; then cat "$LAMP_MESSAGE_FILE" > "$LAMP_CITY/told"; pwd > "$LAMP_CITY/where";'
    ' ls "$(dirname "$LAMP_MESSAGE_FILE")" > "$LAMP_CITY/.files"; mv "$LAMP_CITY/.files" "$LAMP_CITY/files"; fi; '
    + WAIT
)


async def test_a_question_ends_the_run_and_its_answer_starts_the_one_that_goes_on(loops: Loops) -> None:
    await add(loops, "asks", SCRIPT, precheck='test ! -e "$LAMP_CITY/told"')
    row = await asked(loops, "asks", without_answer="It stays dark.", summary_markdown="Two lamps found.")
    assert (row.state, row.reason, row.summary) == (RunState.NEEDS_HUMAN, "question", "Two lamps found.")
    shown = to_json(await loops.store.read(show_run, ShowRun(row.id), loops.context))
    assert shown["question"] == {
        "text": "Which lamp first?", "choices": ["the left", "the right"], "without_answer": "It stays dark.",
    }  # fmt: skip
    events = await loops.store.read(lambda tx: tx.events.after(0))
    (told,) = [one for one in events if one.type == "automation.needs_human"]
    assert (told.message, told.payload["question"]["text"]) == ("Which lamp first?", "Which lamp first?")

    made = await answer(loops, row.id)
    assert (made.continues, made.trigger.kind, made.note) == (row.id, "message", None)
    assert (await loops.get(row.id)).continued_by == made.id
    assert (await loops.get(row.id)).state is RunState.NEEDS_HUMAN, "what it asked stays on record"
    await loops.until(lambda: _worked(loops, made.id))
    assert "the left" in (loops.root / "told").read_text()
    assert {"summary.md", "question.md", "answer.md"} <= set((loops.root / "files").read_text().split())
    await claim(loops, made.id)
    last = await finished(loops, made.id)
    assert last.state is RunState.SUCCEEDED
    trigger = await loops.store.read(lambda tx: tx.trigger_events.get(last.trigger_event or ""))
    assert trigger is not None
    assert (trigger.kind, trigger.status) == ("message", "completed")
    assert (trigger.payload or {})["payload"]["message"] == {"text": "the left", "by": "tester", "run": row.id}
    assert "continued" in await types(loops, row.id)


async def test_an_answer_that_is_none_of_the_choices_is_taken_and_said_to_be_none(loops: Loops) -> None:
    await add(loops, "asks", SCRIPT)
    row = await asked(loops, "asks")
    made = await answer(loops, row.id, "purple")
    assert made.continues == row.id
    assert made.note == "The answer is not one of the choices (the left, the right); the run is told it as it is."
    assert not_a_choice(["the left"], " The  left\n") is None
    assert not_a_choice([], "anything") is None


async def test_the_first_answer_wins(loops: Loops) -> None:
    await add(loops, "asks", SCRIPT)
    row = await asked(loops, "asks")
    found = await asyncio.gather(*(answer(loops, row.id, text) for text in ("one", "two")), return_exceptions=True)
    (made,) = [one for one in found if isinstance(one, RunView)]
    (lost,) = [one for one in found if isinstance(one, BaseException)]
    assert isinstance(lost, AlreadyAnswered)
    assert made.id in lost.message
    runs = await loops.store.read(lambda tx: tx.runs.page())
    assert len(runs) == 2


async def test_only_a_run_that_needs_a_person_can_be_answered_and_with_words(loops: Loops) -> None:
    await add(loops, "works", WAIT)
    run = await begin(loops, "works")
    with pytest.raises(NotAsking):
        await answer(loops, run)
    with pytest.raises(UsageError):
        await answer(loops, run, "  ")
    with pytest.raises(UsageError):
        await answer(loops, run, "\udcff")
    with pytest.raises(UsageError):
        await answer(loops, run, "x" * 40_000)
    ctx = changed(loops.context, actor=of_run(run))
    with pytest.raises(Forbidden):
        await loops.store.transact(judged, ANSWER_RUN, AnswerRun(run, "me"), ctx)
    with pytest.raises(CompletionInvalid):
        await ask(loops, run, "")
    with pytest.raises(CompletionInvalid):
        await ask(loops, run, choices=["x"] * 21)
    await ask(loops, run)
    assert (await ask(loops, run)).replayed
    with pytest.raises(CompletionConflict):
        await ask(loops, run, "Another one?")
    await finished(loops, run)


async def test_it_goes_on_in_the_worktree_which_is_kept_until_then_also_when_clean(loops: Loops) -> None:
    await asyncio.to_thread(repository, loops.root / "web")
    await add(loops, "tree", SCRIPT, rig="web")
    row = await asked(loops, "tree:rig:web")
    place = loops.root / ".gc" / "worktrees" / row.id
    assert place.is_dir(), "clean, and kept"
    made = await answer(loops, row.id)
    await loops.until(lambda: _worked(loops, made.id))
    assert (loops.root / "where").read_text().strip() == str(place)
    assert (await loops.get(row.id)).worktree is None
    await claim(loops, made.id)
    assert (await finished(loops, made.id)).worktree is None
    assert not place.exists(), "clean, and answered"


async def test_a_continuing_run_neither_stands_in_the_way_nor_counts_as_a_failure(loops: Loops) -> None:
    await add(loops, "asks", SCRIPT, auto_disable_after=1)
    row = await asked(loops, "asks")
    made = await answer(loops, row.id)
    other = await loops.fire("asks")  # overlap is `skip`, and the one that goes on is not counted
    await loops.until(lambda: _worked(loops, made.id))
    (loops.root / f"go{made.id}.1").touch()  # ends without a completion
    (loops.root / f"go{other}.1").touch()
    last = await finished(loops, made.id)
    assert (last.state, last.reason) == (RunState.FAILED, "no_completion")
    automation = await loops.store.read(lambda tx: tx.automations.get(last.automation_id))
    assert automation is not None
    assert (automation.enabled, automation.failures) == (True, 0)


async def test_it_waits_for_the_node_that_has_the_work(loops: Loops) -> None:
    await add(loops, "asks", SCRIPT)
    row = await asked(loops, "asks")
    sql = "UPDATE runs SET node = 'elsewhere' WHERE city_id = :city AND id = :id"
    await loops.store.transact(lambda tx: tx.db.execute(sql, {"city": tx.city, "id": row.id}))
    made = await answer(loops, row.id)
    for _ in range(3):
        await loops.parts.dispatcher.tick()
        await loops.parts.dispatcher.handling.all_done()
    assert (await loops.get(made.id)).state is RunState.READY
    waiting = "SELECT attempts FROM outbox WHERE state = 'pending' AND kind = 'enqueue_execute'"
    (item,) = await loops.store.read(lambda tx: tx.db.rows(waiting, {}))
    assert item["attempts"] == 0


async def send(loops: Loops, run: str, text: str) -> tuple[Run, bool]:
    return await loops.store.transact(continuing.send, run, text, ctx=loops.context)


async def test_a_message_to_a_run_at_work_waits_and_is_its_next_turn(loops: Loops) -> None:
    await add(loops, "works", SCRIPT)
    run = await begin(loops, "works")
    told, waits = await send(loops, run, "Mind the oil.")
    assert (told.id, waits) == (run, True)
    await send(loops, run, "And the wicks.")
    await claim(loops, run)
    ended = await loops.get(run)
    assert ended.state is RunState.SUCCEEDED
    assert ended.continued_by is not None, "the same transaction made the next turn"
    await loops.until(lambda: _worked(loops, ended.continued_by or ""))
    assert "Mind the oil.\n\nAnd the wicks." in (loops.root / "told").read_text()
    await claim(loops, ended.continued_by)
    last = await finished(loops, ended.continued_by)
    assert (last.state, last.trigger_kind, last.continued_by) == (RunState.SUCCEEDED, "message", None)
    said = await loops.store.read(transcripts.of_run, last.id)
    assert [one.body for one in said if one.kind == "message"] == [
        {"text": "Mind the oil.", "by": "tester"}, {"text": "And the wicks.", "by": "tester"},
    ]  # fmt: skip
    assert transcripts.told(said[0]) == "tester: Mind the oil."
    assert "message_queued" in await types(loops, run)


async def test_a_message_to_what_has_ended_starts_the_next_turn_of_its_conversation(loops: Loops) -> None:
    await loops.add("plain", exec="true")
    done = await loops.work("plain")
    with pytest.raises(NoConversation):
        await send(loops, done.id, "Hello.")
    await add(loops, "works", SCRIPT)
    run = await begin(loops, "works")
    await claim(loops, run)
    await finished(loops, run)
    second, waits = await send(loops, run, "Once more.")
    assert (second.continues, waits) == (run, False)
    third, waits = await send(loops, run, "And again.")
    assert (third.id, waits) == (second.id, True), "one turn at a time, at the end of the conversation"
    with pytest.raises(RunUnknown):
        await send(loops, "run_nothing", "Hello.")


async def _worked(loops: Loops, run: str) -> bool:
    await loops.parts.dispatcher.tick()
    await loops.parts.dispatcher.handling.all_done()
    row = await loops.get(run)
    return (row.session_id is not None and (loops.root / "files").exists()) or row.ended


def test_a_question_is_part_of_what_is_compared() -> None:
    one = ASK_PERSON.asked({"run_id": "run_01m7nrc417z3pzc4ay3ykdvxnv", "question": "Which?"})
    assert json.loads(one.content)["question"] == {"text": "Which?", "choices": [], "without_answer": None}


async def inbox(loops: Loops, state: Shown = Shown.OPEN) -> list[ItemView]:
    found: list[ItemView] = await loops.store.read(judged, LIST_INBOX, ListInbox(state), loops.context)
    return found


async def test_a_question_is_in_the_inbox_until_it_is_answered_there(loops: Loops) -> None:
    await add(loops, "asks", SCRIPT)
    run = await asked(loops, "asks", without_answer="I take the left one.")
    (item,) = await inbox(loops)
    assert item.question == QuestionView("Which lamp first?", ("the left", "the right"), "I take the left one.")
    assert item.fix == f"lamp run answer {run.id} TEXT"
    done: ItemView = await loops.store.transact(judged, ANSWER, AnswerItem(item.id, "the left"), loops.context)
    assert (done.state, done.settled_how) == (Shown.SETTLED, "it was answered")
    assert await inbox(loops) == []
    with pytest.raises(NotOpen):
        await loops.store.transact(judged, ANSWER, AnswerItem(item.id, "the right"), loops.context)
    for each in REBUILD:
        await loops.store.transact(each, "", ctx=loops.context)
    assert await inbox(loops) == []


async def test_an_answer_to_the_run_settles_its_item(loops: Loops) -> None:
    await add(loops, "asks", SCRIPT)
    run = await asked(loops, "asks")
    await answer(loops, run.id)
    assert await inbox(loops) == []
    assert [item.settled_how for item in await inbox(loops, Shown.SETTLED)] == ["it was answered"]


async def test_what_is_no_question_cannot_be_answered_in_the_inbox(loops: Loops) -> None:
    await add(loops, "ends", "exit 1")
    await finished(loops, await begin(loops, "ends"))
    (item,) = await inbox(loops)
    with pytest.raises(NoQuestion):
        await loops.store.transact(judged, ANSWER, AnswerItem(item.id, "yes"), loops.context)


async def test_an_answered_run_is_neither_resolved_nor_retried(loops: Loops) -> None:
    await add(loops, "asks", SCRIPT)
    run = await asked(loops, "asks")
    await answer(loops, run.id)
    for refused in (
        loops.store.transact(people.resolve, run.id, people.Resolution(RunState.FAILED), ctx=loops.context),
        loops.store.transact(review.retry, run.id, ctx=loops.context),
    ):
        with pytest.raises(AlreadyAnswered):
            await refused
