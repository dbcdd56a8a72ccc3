"""What is done in Slack from the outbox: queued calls, people who were not known, threads that are told on."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, assert_never

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.under_way import UnderWay
from lamplighter.domain.city.sections import slack_destination
from lamplighter.domain.delivery.effects import Absent, Answer, CannotAsk, Effect, Found
from lamplighter.domain.delivery.outbox import Item, ItemKind
from lamplighter.domain.inbox.notices import link_of
from lamplighter.domain.slack import messages
from lamplighter.domain.slack import stream as streaming
from lamplighter.domain.slack.events import Said, Stop, with_files
from lamplighter.domain.slack.markdown import shown
from lamplighter.domain.slack.messages import parts
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import from_json
from lamplighter.ports.messenger import NotTaken
from lamplighter.ports.slack import NOT_ASKED, Dial, Method, SlackCalls, SlackRefused, find
from lamplighter.services import effects, outbox
from lamplighter.services.context import Configured, Context, acting
from lamplighter.services.slack import conversing, opening, pressing, stopping, telling
from lamplighter.services.slack.installing import SlackUnknown
from lamplighter.services.slack.workspaces import Workspace, Workspaces
from lamplighter.store.slack import Thread
from lamplighter.store.tx import Store, Tx

IN_SLACK = frozenset({ItemKind.SLACK_CALL, ItemKind.SLACK_PRESS, ItemKind.SLACK_FOLLOW, ItemKind.SLACK_OPEN})
COALESCED = timedelta(seconds=1)
"""What an agent says within so long is told at once."""
GONE = "message_not_found"
DONE_ALREADY = frozenset({"already_reacted", "no_reaction", GONE, "cant_update_message"})
"""Refusals after which there is nothing left to be done."""
STREAM_OVER = frozenset({"message_not_in_streaming_state", "stopped_by_user", GONE})
"""Refusals of a stream that has ended: Slack ends one after some minutes, and when somebody presses its Stop."""


LARGEST_FILE = 20 << 20
SLACK, MOST_AT_ONCE = "slack", 20


def _nowhere(_folder: str, _name: str, _data: bytes) -> str:
    raise NotTaken("this process has no place for it")


@dataclass(frozen=True)
class SlackOutside:
    workspaces: Workspaces
    calls: SlackCalls
    dial: Dial | None = None
    """Opens sockets for Socket Mode; None where what they need is not installed."""
    keep: Callable[[str, str, bytes], str] = _nowhere
    """Keeps a file that was sent along, by its folder and its name, and says where."""


@dataclass(frozen=True)
class SlackHandlers:
    store: Store
    clock: Clock
    ids: IdSource
    active: ActiveConfig
    outside: SlackOutside
    actor: str
    under_way: UnderWay = field(default_factory=UnderWay)

    async def handle(self, item: Item, kind: ItemKind) -> None:
        """A Slack that does not answer delays what is for it, and nothing else."""
        wait = self.under_way.must_wait(SLACK, MOST_AT_ONCE)
        if wait is None and not await self.under_way.done(SLACK, self._handled(item, kind)):
            wait = timedelta(0)
        if wait is not None:
            await self.later(item, wait)

    async def stop(self) -> None:
        await self.under_way.stop()

    async def _handled(self, item: Item, kind: ItemKind) -> None:
        if kind is ItemKind.SLACK_CALL:
            await self.call(item)
        elif kind is ItemKind.SLACK_FOLLOW:
            await self.follow(item)
        elif kind is ItemKind.SLACK_OPEN:
            await self.open(item)
        else:
            await self.press(item)

    async def call(self, item: Item) -> None:
        """May be repeated: it is made at least once."""
        args = item.payload.get("args")
        if await self.store.read(pressing.is_over, item.payload):
            await self.store.transact(outbox.done, item, self.clock.now())
            return
        try:
            workspace = await self.outside.workspaces.of(item.payload["team"])
            await self.outside.calls.call(
                item.payload["method"], workspace.token, args if isinstance(args, dict) else {}
            )
        except SlackUnknown:  # removed meanwhile: nobody is to be told anything there
            pass
        except LampError as error:
            if not _is_over(item, error):
                await self._not_now(item, error)
                return
        await self.store.transact(outbox.done, item, self.clock.now())

    async def press(self, item: Item) -> None:
        """Ask Slack who pressed, then carry the press out."""
        try:
            heard = _heard(item)
        except UsageError as error:
            await self._failed(item, error.message)
            return
        try:
            workspace = await self.outside.workspaces.of(heard.team)
            said = await self.outside.calls.call(Method.USER, workspace.token, {"user": heard.person})
        except SlackUnknown:
            await self.store.transact(outbox.done, item, self.clock.now())
            return
        except SlackRefused as error:
            if error.retry_after is not None:
                await self._not_now(item, error)
                return
            said = {}
        user = said.get("user")
        ctx = self.context()
        if isinstance(user, dict):
            await self.store.transact(pressing.known_by_email, heard.team, heard.person, user, ctx)
        if isinstance(heard, Said) and heard.files:
            heard = await self._with_files(heard, workspace.token)
        if isinstance(heard, pressing.Press):
            await pressing.press(self.store, heard, ctx, asked=True, settle=_settle(item))
        elif isinstance(heard, Stop):
            await stopping.stop(self.store, heard, ctx, asked=True, settle=_settle(item))
        else:
            await conversing.speak(self.store, heard, ctx, asked=True, settle=_settle(item))

    async def _with_files(self, heard: Said, token: str) -> Said:
        """What cannot be had is told to the agent, and holds up nothing."""
        kept, missing = [], []
        folder = f"{heard.team}-{heard.channel}-{heard.message}"
        for number, one in enumerate(heard.files):
            try:
                if one.why or one.size > LARGEST_FILE:
                    raise NotTaken(one.why or f"it has more than {LARGEST_FILE >> 20} MB")
                data = await self.outside.calls.fetch(one.url, token, most=LARGEST_FILE, size=one.size)
                kept.append(await asyncio.to_thread(self.outside.keep, folder, f"{number + 1}-{one.name}", data))
            except LampError as error:
                missing.append(f"{one.name}: {error.message.rstrip('.')}")
        return with_files(heard, kept, missing)

    # ── threads ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self, item: Item) -> None:
        """Begin the thread of a run, once; where the channel may not be looked at, perhaps twice."""
        name, city = str(item.payload["to"]), self.active.city
        run = await self.store.read(lambda tx: tx.runs.get(item.payload["run"]))
        to = city.notifications.named(name) or slack_destination(name)
        if run is None:
            await self.store.transact(outbox.done, item, self.clock.now())
            return
        if to is None or to.kind != "slack_channel":
            told = f"{run.automation} names `{name}` for its threads, which is no channel of Slack."
            await self._failed(item, told)
            return
        link = link_of(city.api.public_url, {"run": run.id}) if city.api.public_url else ""
        text = shown(await self.store.read(opening.first_words, run, link))
        effect = f"open:{run.id}"
        args = {"channel": to.channel, "text": text, "unfurl_links": False, "unfurl_media": False, "metadata": {
            "event_type": "lamp_turn", "event_payload": {"effect": effect}}}  # fmt: skip
        try:
            team, token, _ = await self.outside.workspaces.for_notices(to.team)

            async def send(_effect: Effect) -> Mapping[str, Any]:
                try:
                    return {"ts": (await self.outside.calls.call(Method.POST, token, args)).get("ts", "")}
                except NotTaken as error:
                    raise effects.Refused(error.message, hint=error.hint) from error

            async def look(begun: Effect) -> Answer:
                try:
                    found = await find(self.outside.calls, token, to.channel, ("effect", effect), begun.intended_at)
                except SlackRefused as error:
                    if error.retry_after is not None:
                        raise
                    return NOT_ASKED
                return Found({"ts": found}) if isinstance(found, str) else found

            ledger = effects.Ledger(self.store, self.clock)
            done = await ledger.once(f"slack:{effect}", "slack", {"text": effect}, run=run.id, send=send, look=look)
        except LampError as error:
            await self._not_now(item, error)
            return
        place = opening.Place(team, to.channel, str(done.get("ts", "")))
        await self.store.transact(opening.opened, item, place, self.context())

    async def follow(self, item: Item) -> None:
        """Tell in a thread what is new there, then look again until its run has ended.

        May be repeated: how far it was told is on record, and a message whose answer was lost is looked for.
        """
        seen = await self.store.read(telling.look, item.payload["thread"], self.clock.now())
        try:
            workspace = None if seen is None else await self.outside.workspaces.of(seen.thread.team)
        except SlackUnknown:
            workspace = None
        if seen is None or workspace is None:
            await self.store.transact(outbox.done, item, self.clock.now())
            return
        try:
            await self._told(item, seen, workspace)
        except LampError as error:
            await self._not_now(item, error)

    async def _told(self, item: Item, seen: telling.Look, workspace: Workspace) -> None:
        if seen.step is not None:
            await self._step(item, seen.step, workspace)
            return
        if seen.run is not None and not seen.ends:
            await self.later(item, COALESCED)
            return
        said = _last_words(seen)
        for number, part in enumerate(said):
            blocks = _last_blocks(seen, part) if number == len(said) - 1 else []
            effect = f"{seen.thread.id}:{seen.thread.run}:last:{number}"
            await self._posted(seen.thread, effect, part, workspace.token, blocks)
        await self.store.transact(telling.finish, item, seen.thread.id, self.context())

    async def _step(self, item: Item, step: telling.Step, workspace: Workspace) -> None:
        """Where nothing is told yet, the next look is at once; else what comes meanwhile is told together."""
        token, wait = workspace.token, COALESCED
        match step:
            case telling.Edit():
                row = workspace.row
                thread = await self._written(step, token, buttons=bool(row.hears or row.has_socket))
                await self.store.transact(telling.told, item, thread)
            case telling.Open():
                await self._opened(item, step, token)
                wait = timedelta(0)
            case telling.Append():
                wait = await self._appended(item, step, token)
            case telling.Close():
                wait = await self._closed(item, step, token)
            case telling.Settle():
                await self._settled(item, step, workspace)
            case other:
                assert_never(other)
        await self.later(item, wait, afresh=True)

    async def _written(self, step: telling.Edit, token: str, *, buttons: bool) -> Thread:
        """Edit the message of the thread, or post it where there is none yet; the thread once that is told."""
        thread, doing = step.thread, step.after.doing
        blocks = messages.at_work(step.text, doing, thread.id, buttons=buttons) if doing else []
        text = step.text or doing
        if thread.message:
            if text:
                args = {"channel": thread.channel, "ts": thread.message, "text": text, "blocks": blocks}
                await self._edited(Method.UPDATE, token, args)
            else:
                await self._edited(Method.DELETE, token, {"channel": thread.channel, "ts": thread.message})
            return step.after
        if not text:
            return step.after
        # By where the message begins: a second try may have more to say, and it is the same message.
        effect = f"{thread.id}:{thread.run}:{thread.session}:{thread.number}:{len(thread.said)}"
        posted = await self._posted(thread, effect, text, token, blocks)
        return step.after if step.closes else changed(step.after, message=posted)

    # ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _opened(self, item: Item, step: telling.Open, token: str) -> None:
        """Begin the stream, which says nothing yet, once; one whose answer was lost is looked for by its first entry.

        Where Slack does not have it, the turn is told by a message that is edited.
        """
        thread, mark = step.thread, streaming.mark_of(step.effect)
        args = {
            "channel": thread.channel, "thread_ts": thread.thread, "recipient_user_id": thread.started_by,
            "recipient_team_id": thread.team, "task_display_mode": streaming.MODE, "chunks": streaming.opening(mark),
        }  # fmt: skip

        async def send(_effect: Effect) -> Mapping[str, Any]:
            crash_point(CrashPoint.STREAM_BEFORE_OPEN)
            try:
                said = await self.outside.calls.call(Method.START_STREAM, token, args)
            except NotTaken as error:
                raise effects.Refused(error.message, hint=error.hint) from error
            crash_point(CrashPoint.STREAM_AFTER_OPEN)
            return {"ts": said.get("ts", "")}

        async def look(_effect: Effect) -> Answer:
            return await self._found(thread, token, lambda one: streaming.holds(one, mark))

        ledger = effects.Ledger(self.store, self.clock)
        try:
            done = await ledger.once(
                f"slack:{step.effect}", "slack", {"text": step.effect}, run=thread.run, send=send, look=look
            )
        except effects.Refused as error:
            cause = error.__cause__
            if not isinstance(cause, SlackRefused):  # Slack is away
                raise
            now = self.clock.now()
            await self.store.transact(telling.not_opened, item, thread, why=cause.error, now=now)
            return
        message, now = str(done.get("ts", "")), self.clock.now()
        await self.store.transact(telling.opened, item, thread, mark=mark, message=message, now=now)

    async def _appended(self, item: Item, step: telling.Append, token: str) -> timedelta:
        """Add to the stream. That it is about to be is on record before: nothing can be added twice."""
        args = {"channel": step.thread.channel, "ts": step.thread.message, "chunks": step.chunks}
        await self.store.transact(telling.unsure, item, step.thread)
        crash_point(CrashPoint.STREAM_BEFORE_APPEND)
        try:
            await self.outside.calls.call(Method.APPEND_STREAM, token, args)
        except NotTaken as error:
            if isinstance(error, SlackRefused) and error.retry_after is None:
                return timedelta(0)  # it takes no more: its message is edited from now on
            await self.store.transact(telling.told, item, step.thread)
            raise
        crash_point(CrashPoint.STREAM_AFTER_APPEND)
        await self.store.transact(telling.told, item, step.after)
        return COALESCED

    async def _closed(self, item: Item, step: telling.Close, token: str) -> timedelta:
        crash_point(CrashPoint.STREAM_BEFORE_STOP)
        if not await self._stopped(step.thread, token, step.chunks):
            await self.store.transact(telling.unsure, item, step.thread)
            return timedelta(0)
        crash_point(CrashPoint.STREAM_AFTER_STOP)
        await self.store.transact(telling.told, item, step.after)
        return timedelta(0)

    async def _settled(self, item: Item, step: telling.Settle, workspace: Workspace) -> None:
        thread, row = step.thread, workspace.row
        after = step.after
        await self._stopped(thread, workspace.token, ())
        buttons, doing = bool(row.hears or row.has_socket), step.after.doing
        blocks = messages.at_work(step.text, doing, thread.id, buttons=buttons) if doing else []
        args = {"channel": thread.channel, "ts": thread.message, "text": step.text or doing, "blocks": blocks}
        try:
            await self.outside.calls.call(Method.UPDATE, workspace.token, args)
        except SlackRefused as error:
            if error.error not in DONE_ALREADY:
                raise
            if error.error != GONE:  # it may not be edited: rather said again than not at all
                after = changed(thread, message="", doing="", stream=streaming.EDITED)
        await self.store.transact(telling.told, item, after)

    async def _stopped(self, thread: Thread, token: str, chunks: Sequence[Mapping[str, Any]]) -> bool:
        """End the stream; False if it had ended already, or is gone."""
        args = {"channel": thread.channel, "ts": thread.message, **({"chunks": chunks} if chunks else {})}
        try:
            await self.outside.calls.call(Method.STOP_STREAM, token, args)
        except SlackRefused as error:
            if error.error not in STREAM_OVER:
                raise
            return False
        return True

    # ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _edited(self, method: Method, token: str, args: Mapping[str, Any]) -> None:
        """A message that somebody has deleted meanwhile is told no more."""
        try:
            await self.outside.calls.call(method, token, args)
        except SlackRefused as error:
            if error.error not in DONE_ALREADY:
                raise

    async def _posted(
        self, thread: Thread, effect: str, text: str, token: str, blocks: Sequence[Mapping[str, Any]] = ()
    ) -> str:
        """Post it once, and return the id of the message; one whose answer was lost is looked for in the thread."""

        async def send(_effect: Effect) -> Mapping[str, Any]:
            metadata = {"event_type": "lamp_turn", "event_payload": {"effect": effect}}
            args = {"channel": thread.channel, "thread_ts": thread.thread, "text": text, "metadata": metadata,
                    "unfurl_links": False, "unfurl_media": False}  # fmt: skip
            args |= {"blocks": list(blocks)} if blocks else {}
            crash_point(CrashPoint.TURN_BEFORE_POST)
            try:
                said = await self.outside.calls.call(Method.POST, token, args)
            except NotTaken as error:
                raise effects.Refused(error.message, hint=error.hint) from error
            crash_point(CrashPoint.TURN_AFTER_POST)
            return {"ts": said.get("ts", "")}

        async def look(_effect: Effect) -> Answer:
            found = await self._found(thread, token, lambda one: _effect_of(one) == effect)
            if isinstance(found, Found):  # there may be more to say by now
                args = {"channel": thread.channel, "ts": found.result["ts"], "text": text, "blocks": list(blocks)}
                await self.outside.calls.call(Method.UPDATE, token, args)
            return found

        ledger = effects.Ledger(self.store, self.clock)
        done = await ledger.once(f"slack:{effect}", "slack", {"text": effect}, run=thread.run, send=send, look=look)
        return str(done.get("ts", ""))

    async def _found(self, thread: Thread, token: str, is_it: Callable[[Mapping[str, Any]], bool]) -> Answer:
        """Look for a message among those of the thread. Raises SlackLimited, Unavailable."""
        args = {"channel": thread.channel, "ts": thread.thread, "limit": 1000, "include_all_metadata": "true"}
        try:
            said = await self.outside.calls.call(Method.REPLIES, token, args)
        except SlackRefused as error:
            if error.retry_after is not None:
                raise
            return CannotAsk()
        for one in said.get("messages", ()):
            if is_it(one):
                return Found({"ts": one.get("ts", "")})
        return CannotAsk() if said.get("has_more") else Absent()

    async def _not_now(self, item: Item, error: LampError) -> None:
        cause = error.__cause__ if isinstance(error, effects.Refused) else error
        wait = cause.retry_after if isinstance(cause, NotTaken) else None
        if wait is None:
            raise error
        await self.later(item, wait)

    async def later(self, item: Item, wait: timedelta, *, afresh: bool = False) -> None:
        now = self.clock.now()
        await self.store.transact(outbox.later, item, now + wait, now, afresh=afresh)

    async def _failed(self, item: Item, why: str) -> None:
        await self.store.transact(outbox.failed, item, why, permanent=True, ctx=self.context())

    def context(self) -> Context:
        made = acting(self.actor, self.clock.now(), self.ids)
        return changed(made, configured=Configured(self.active.city, self.active.rules))


def _is_over(item: Item, error: LampError) -> bool:
    """Whether a call that Slack refused is not made again: there is nothing left to do, or it only showed something."""
    if not isinstance(error, SlackRefused) or error.retry_after is not None:
        return False
    return error.error in DONE_ALREADY or item.payload.get("method") == Method.SET_STATUS


def _effect_of(message: Mapping[str, Any]) -> str:
    return str(((message.get("metadata") or {}).get("event_payload") or {}).get("effect") or "")


def _last_words(seen: telling.Look) -> list[str]:
    if seen.run is None:
        return []
    if seen.places:
        within = int(conversing.PICK_WITHIN.total_seconds() // 60)
        return [f"It is not clear where this belongs. Within {within} minutes, <@{seen.thread.started_by}> may choose."]
    return parts(telling.last_words(seen.run, said=seen.thread.said))


def _last_blocks(seen: telling.Look, part: str) -> list[dict[str, Any]]:
    """What goes with the last words: a way to answer, or to choose."""
    if seen.places:
        return messages.picker(part, seen.thread.id, seen.places)
    buttons = [] if seen.asks is None else messages.actions(seen.asks)
    return [*(messages.section(one) for one in parts(part, messages.LONGEST_SECTION)), *buttons] if buttons else []


def _heard(item: Item) -> pressing.Press | Said | Stop:
    """Raises UsageError."""
    if "stop" in item.payload:
        return from_json(Stop, item.payload["stop"], strict=False)
    if "said" in item.payload:
        return from_json(Said, item.payload["said"], strict=False)
    return from_json(pressing.Press, item.payload.get("press") or {}, strict=False)


def _settle(item: Item) -> pressing.Settle:
    def settle(tx: Tx, ctx: Context) -> None:
        outbox.done(tx, item, ctx.now)

    return settle
