"""A conversation that a person began by hand with an agent program: a run goes on with it, where it was begun."""

import json
import re
from dataclasses import dataclass

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.model import AgentAction, Automation, Manual, Mode, Trigger, deadline
from lamplighter.domain.city.providers import known_providers
from lamplighter.domain.runs.model import MESSAGE, Run, first_state
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.sessions.presets.model import Mode as PresetMode
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import Conflict, UsageError
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.shapes import given
from lamplighter.services.automations import editing, snapshots
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Need, transaction
from lamplighter.services.runs.continuing import checked
from lamplighter.services.runs.creating import add_run
from lamplighter.services.runs.views import RunView, view
from lamplighter.store.automations import AutomationRow
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Tx

CONVERSATION = "conversation"
"""The automation to which runs of conversations belong that no automation began."""
BY_HAND = "by hand"
_PROMPT = "Go on with the conversation."
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")


@dataclass(frozen=True)
class AdoptSession:
    """Go on, without a terminal, with a conversation that you began by hand with an agent program; close it first.

    Such as: lamp session adopt --preset claude --id 0b6c… --directory /srv/app "Finish the tests."
    """

    text: str = given("What it is told next.", metavar="TEXT", positional=True)
    preset: str = given("Which agent program.")
    id: str = given("The program's own id of the conversation.")
    directory: str = given("Where it was begun: a whole path on this machine.")
    mode: Mode = given("What the agent may do.", default=Mode.FULL_ACCESS)
    model: str | None = given("Which model it is asked to use.", default=None)


class CannotAdopt(UsageError):
    def __init__(self, why: str, hint: str = "Nothing was begun.") -> None:
        super().__init__(f"The conversation cannot be adopted: {why}.", hint=hint)


class AdoptedBefore(Conflict):
    def __init__(self, ask: AdoptSession, run: str | None) -> None:
        super().__init__(
            f"The conversation {ask.id} of {ask.preset} was adopted before, by run {run}.",
            hint=f"`lamp session send {run} TEXT` says something to it.",
        )


def adopt(tx: Tx, ask: AdoptSession, ctx: Context) -> RunView:
    """Raises CannotAdopt, AdoptedBefore, UsageError."""
    said = checked(ask.text)
    _check(ask, ctx)
    made = _definition(ask)
    owner = belongs(tx, made, ctx)
    run, event = ctx.ids.make("run"), ctx.ids.make("tev")
    by = ctx.actor.name
    message = {"text": said, "by": by, "run": None}
    messages = [{"text": said, "by": by, "at": rfc3339(ctx.now)}]
    fired = TriggerEvent(
        id=event, automation_id=owner.id, automation=owner.scoped_name, trigger=MESSAGE, kind=MESSAGE,
        status="fired", reason=f"adopted by {by}", first_at=ctx.now, last_at=ctx.now, run=run,
        payload={"payload": {"message": message, "messages": messages}}, dedup_key=f"{ask.preset}:{ask.id}",
    )  # fmt: skip
    if not tx.trigger_events.insert(fired):
        before = tx.trigger_events.of_key(owner.id, MESSAGE, fired.dedup_key or "")
        raise AdoptedBefore(ask, None if before is None else before.run)
    row = Run(
        id=run, automation=owner.scoped_name, state=first_state(enriched=True), created_at=ctx.now,
        trigger_kind=MESSAGE, trigger_event=event, definition=json.loads(snapshots.written(made)),
        deadline_at=ctx.now + deadline(made, MESSAGE, ctx.rules.deadline), last_activity_at=ctx.now,
        automation_id=owner.id, action=AgentAction.kind, trigger=MESSAGE,
    )  # fmt: skip
    added = add_run(tx, row, prefix=ctx.rules.prefix, ctx=ctx.inside(None), data={"adopted": ask.id, "by": by})
    _remember(tx, run, ask, ctx)
    payload = {"run": run, "preset": ask.preset, "session": ask.id, "by": by}
    tx.events.append(ctx.event("run.adopted", subject=owner.scoped_name, payload=payload))
    return view(tx.runs.get(run) or added)


def _definition(ask: AdoptSession) -> Automation:
    action = AgentAction(_PROMPT, path=ask.directory, preset=ask.preset, mode=ask.mode, model=ask.model or None)
    triggers = (Trigger("manual", Manual()),)
    return Automation(CONVERSATION, action, triggers, description="Conversations that people began by hand.")


def _check(ask: AdoptSession, ctx: Context) -> None:
    preset = PRESETS.get(ask.preset)
    if preset is None or ask.preset in ctx.city.providers:
        known = [name for name in known_providers(ctx.city) if name in PRESETS and PRESETS[name].can_resume]
        why = f"there is no preset `{ask.preset}` that can resume{did_you_mean(ask.preset, known)}"
        raise CannotAdopt(why, hint=f"Those that can: {', '.join(sorted(known))}.")
    if not preset.can_resume:
        raise CannotAdopt(f"{preset.title} cannot resume a conversation")
    refused = preset.refuses.get(PresetMode(ask.mode.value))
    if refused is not None:
        raise CannotAdopt(f"{preset.title} cannot work in mode `{ask.mode}`: {refused}")
    if not _ID.fullmatch(ask.id):
        raise CannotAdopt(f"`{ask.id[:100]}` is not the id of a conversation")
    if not ask.directory.startswith("/") or "\0" in ask.directory:
        raise CannotAdopt(f"`{ask.directory[:200]}` is not a whole path, starting with `/`")


def belongs(tx: Tx, made: Automation, ctx: Context) -> AutomationRow:
    """The automation that such runs belong to, made when the first of them is."""
    tx.cities.lock()  # two that come first at once make one
    found = tx.automations.named(CONVERSATION)
    return found if found is not None else editing.add(tx, made, rules=ctx.rules, ctx=ctx)


def _remember(tx: Tx, run: str, ask: AdoptSession, ctx: Context) -> None:
    """The session that the person had, as one of the run's: its next turn resumes that."""
    session = ctx.ids.make("ses")
    tx.sessions.add(SessionRow(session, ask.id, None, run, BY_HAND, "", None, ctx.now))
    tx.transcripts.advance(session, before=0, after=0, program=ask.id)
    tx.sessions.end(session, SessionEnd(ctx.now, "adopted", None, None))


ADOPT = transaction(
    "session.adopt", Verb.WRITE_AUTOMATIONS, AdoptSession, RunView, adopt, needs=Need.DEFINITIONS,
    http=Http("POST", "/sessions/adopt", status=201, location="/runs/{id}"),
)  # fmt: skip
