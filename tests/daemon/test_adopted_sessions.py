"""Conversations begun by hand: a run goes on with them, in their directory, and each is adopted once."""

import asyncio
from typing import Any

import pytest
from loops_city import Loops
from puppets import let_go, puppet, until_called
from test_agent_runs import finished
from test_questions import loops
from test_verified_runs import claim, repository

from lamplighter.domain.access import Forbidden, of_run
from lamplighter.domain.runs.model import RunState
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import changed
from lamplighter.services.context import Configured, Context
from lamplighter.services.operation import judged
from lamplighter.services.runs import continuing
from lamplighter.services.runs.adopting import ADOPT, AdoptedBefore, AdoptSession, CannotAdopt
from lamplighter.services.runs.views import RunView

__all__ = ["loops"]


def context(loops: Loops) -> Context:
    return changed(loops.context, configured=Configured(loops.city, loops.rules, None))


async def adopt(loops: Loops, **keys: Any) -> RunView:
    asked = {"text": "Finish it.", "preset": "codex", "id": "th-by-hand", "directory": str(loops.root / "web")} | keys
    made: RunView = await loops.store.transact(judged, ADOPT, AdoptSession(**asked), context(loops))
    return made


async def test_a_conversation_begun_by_hand_goes_on_in_its_own_directory(
    loops: Loops, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(repository, loops.root / "web")
    await puppet(loops, "unused")  # it lays the program
    monkeypatch.setitem(loops.parts.agents.workshop.env, "PATH", f"{loops.root / 'bin'}:/usr/bin:/bin")  # type: ignore[attr-defined]
    made = await adopt(loops)
    assert (made.automation, made.trigger.kind, made.continues) == ("conversation", "message", None)
    words = await until_called(loops, made.id)
    assert words[words.index("resume") + 1] == "th-by-hand"
    assert words[-1].startswith("Finish it.")
    assert (loops.root / "where").read_text().strip() == str(loops.root / "web"), "not in a worktree of its own"
    let_go(loops, made.id)
    await claim(loops, made.id)
    assert (await finished(loops, made.id)).state is RunState.SUCCEEDED
    second, _ = await loops.store.transact(continuing.send, made.id, "And tidy up.", ctx=loops.context)
    words = await until_called(loops, second.id)
    assert words[words.index("resume") + 1] == "th-1", "the program's own name of what it said last"
    assert (loops.root / "where").read_text().strip() == str(loops.root / "web")
    let_go(loops, second.id)
    await claim(loops, second.id)
    assert (await finished(loops, second.id)).state is RunState.SUCCEEDED


async def test_a_conversation_is_adopted_once(loops: Loops) -> None:
    found = await asyncio.gather(*(adopt(loops) for _ in range(3)), return_exceptions=True)
    (made,) = [one for one in found if isinstance(one, RunView)]
    lost = [one for one in found if isinstance(one, BaseException)]
    assert all(isinstance(one, AdoptedBefore) and made.id in one.message for one in lost), lost
    assert len(await loops.store.read(lambda tx: tx.runs.page())) == 1
    other = await adopt(loops, id="another")
    assert other.id != made.id
    rows = [await loops.get(one.id) for one in (made, other)]
    assert len({row.automation_id for row in rows}) == 1


async def test_what_cannot_be_adopted_is_refused(loops: Loops) -> None:
    for wrong, told in (
        ({"preset": "shell"}, "Shell cannot resume"),
        ({"preset": "codexx"}, "did you mean `codex`"),
        ({"preset": "goose", "mode": "plan"}, "goose in chat mode"),
        ({"id": "--dangerous"}, "not the id of a conversation"),
        ({"id": ""}, "not the id of a conversation"),
        ({"directory": "web"}, "not a whole path"),
    ):
        words = {**wrong}
        if "mode" in words:
            words["mode"] = ADOPT.asked({"text": "x", "preset": "x", "id": "x", "directory": "/", "mode": "plan"}).mode
        with pytest.raises(CannotAdopt, match=told):
            await adopt(loops, **words)
    with pytest.raises(UsageError):
        await adopt(loops, text=" ")
    ctx = changed(context(loops), actor=of_run("run_1"))
    with pytest.raises(Forbidden):
        await loops.store.transact(judged, ADOPT, AdoptSession("x", "codex", "y", "/"), ctx)
    assert await loops.store.read(lambda tx: tx.runs.page()) == []
