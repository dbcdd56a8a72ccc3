"""Polling a GitHub-shaped server on loopback: each thing once, over crashes, limits and webhooks that tell it too."""

import itertools
import json
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lamplighter.adapters.github.api import GitHub
from lamplighter.daemon.polls import AFTER_TROUBLE, LATEST, Polls
from lamplighter.domain.connections.polling import backed_off
from lamplighter.domain.delivery.outbox import ItemKind
from lamplighter.domain.delivery_fields import Provider
from lamplighter.domain.secrets import SecretUnknown
from lamplighter.kit.ids import IdSource
from lamplighter.ports.polling import Fetched
from lamplighter.services import outbox, polls
from lamplighter.services.automations import editing
from lamplighter.services.context import Context, acting
from lamplighter.services.deliveries import processing
from lamplighter.services.deliveries.receiving import keep
from lamplighter.services.rules import Rules
from lamplighter.store.connections import ConnectionRow
from lamplighter.store.deliveries import DeliveryRow
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.polls import PollRow
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import open_store
from lamplighter.testing.clock import FakeClock
from lamplighter.testing.github_server import RESET, START, Hub, serving

MINUTE = timedelta(minutes=1)


class Secrets:
    def __init__(self) -> None:
        self.known = {"GH": "gh-token"}

    async def opened(self, env: dict[str, str]) -> dict[str, str]:
        name = env["TOKEN"].removeprefix("secret:")
        if name not in self.known:
            raise SecretUnknown(name)
        return {"TOKEN": self.known[name]}

    async def mask(self) -> Any:
        return str


@dataclass
class Asker:
    store: Store
    clock: FakeClock
    ids: IdSource
    hub: Hub
    polls: Polls
    secrets: Secrets
    rules: Rules

    @property
    def context(self) -> Context:
        return acting("tester", self.clock.now(), self.ids)

    async def connect(self, token: str = "GH") -> None:  # noqa: S107  the name of a secret
        row = ConnectionRow("gh", Provider.GITHUB, "", (), (), (), self.clock.now(), "tester")
        poll = PollRow("gh", "acme/web", self.hub.url, token, {}, self.clock.now())

        def add(tx: Tx) -> None:
            tx.connections.add(row)
            tx.polls.add(poll)

        await self.store.transact(add)

    async def later(self, by: timedelta = MINUTE) -> list[str]:
        """Some time later, here and there."""
        self.hub.now += by
        self.clock.advance(by)
        return await self.polls.tick()

    async def came(self) -> list[tuple[str, str]]:
        """What came in, oldest first: its type and its source."""
        await self.judge()
        rows = await self.store.read(lambda tx: tx.deliveries.page(connection="gh", before=None, limit=500))
        return [(row.event_type, row.source) for row in reversed(rows)]

    async def judge(self) -> None:
        def work(tx: Tx) -> None:
            for item in outbox.claim_due(tx, "own_test", self.clock.now(), limit=500):
                if item.kind == ItemKind.PROCESS_DELIVERY:
                    processing.process(tx, item, rules=self.rules, ctx=self.context)

        await self.store.transact(work)

    async def row(self) -> PollRow:
        found = await self.store.read(lambda tx: tx.polls.get("gh"))
        assert found is not None
        return found

    def anew(self) -> Polls:
        """The poller of the next process."""
        source = GitHub(Path("/"), os.environ)
        self.polls = Polls(self.store, self.clock, self.ids, source, self.secrets)
        return self.polls


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as made:
        yield made


BOTH = pytest.mark.parametrize("kind", ["sqlite", "postgres"])


@pytest.fixture
def kind() -> str:
    return "sqlite"


@pytest.fixture
async def asker(request: pytest.FixtureRequest, kind: str, hub: Hub) -> AsyncIterator[Asker]:
    clock = FakeClock(START)
    store = open_store(request.getfixturevalue(f"{kind}_place"), "cty_polls", Wakes())
    await store.transact(lambda tx: tx.cities.ensure("polls", clock.now()))
    made = Asker(store, clock, IdSource(clock), hub, None, Secrets(), Rules(ZoneInfo("UTC"), prefix="po"))  # type: ignore[arg-type]
    made.anew()
    yield made
    await store.close()


@BOTH
async def test_what_happens_after_the_first_look_comes_once_and_is_told_as_polled(asker: Asker) -> None:
    old = asker.hub.open("issues", "From before")
    asker.hub.now += MINUTE
    await asker.connect()
    assert await asker.polls.tick() == ["gh"]
    assert await asker.came() == [], "what was there before is not told"
    issue, pull = asker.hub.open("issues", "The lamp is out"), asker.hub.open("pulls", "Mend it")
    asker.hub.event("IssueCommentEvent", action="created", issue=issue, comment={"id": 5, "body": "Which?"})
    asker.hub.event("PushEvent", ref="refs/heads/main", head="b" * 40, before="a" * 40)
    await asker.later()
    assert sorted(await asker.came()) == [
        ("issue_comment.created", "polled"), ("issues.opened", "polled"), ("pull_request.opened", "polled"),
        ("push", "polled"),
    ]  # fmt: skip
    asker.hub.now += MINUTE
    asker.clock.advance(MINUTE)
    asker.hub.close(issue)
    asker.hub.close(pull)
    asker.hub.close(old)
    await asker.later()
    closed = sorted(one for one, _ in await asker.came() if one.endswith(".closed"))
    assert closed == ["issues.closed", "issues.closed", "pull_request.closed"]
    for _ in range(3):
        await asker.later()
    assert len(await asker.came()) == 7


async def test_what_is_unchanged_costs_nothing_and_the_wished_interval_is_kept(asker: Asker) -> None:
    asker.hub.wish = 300
    await asker.connect()
    await asker.polls.tick()
    assert await asker.later() == []
    assert await asker.later(4 * MINUTE) == ["gh"]
    left = asker.hub.left
    await asker.later(5 * MINUTE)
    assert [status for _, status in asker.hub.answers[-3:]] == [304, 304, 304]
    assert asker.hub.left == left


async def test_a_limit_is_waited_out_and_nothing_is_lost(asker: Asker) -> None:
    await asker.connect()
    await asker.polls.tick()
    asker.hub.left = 0
    asker.hub.open("issues", "While nobody may ask")
    await asker.later()
    row = await asker.row()
    assert "limit" in row.problem
    assert row.next_at >= asker.clock.now() + RESET
    asked = len(asker.hub.answers)
    assert await asker.later(10 * MINUTE) == []
    assert len(asker.hub.answers) == asked
    asker.hub.left = 5000
    await asker.later(RESET)
    assert await asker.came() == [("issues.opened", "polled")]
    assert (await asker.row()).problem == ""


async def test_few_requests_left_are_left_to_others(asker: Asker) -> None:
    await asker.connect()
    asker.hub.left = 9
    await asker.polls.tick()
    assert (await asker.row()).next_at >= asker.clock.now() + RESET


@pytest.mark.parametrize(("status", "told"), [(401, "token"), (404, "no repository"), (301, "moved"), (502, "502")])
async def test_trouble_is_told_and_asked_again_ever_more_slowly(asker: Asker, status: int, told: str) -> None:
    await asker.connect()
    asker.hub.status = status
    for failures in range(3):
        await asker.polls.tick()
        row = await asker.row()
        assert told in row.problem
        assert "gh-token" not in row.problem
        assert row.next_at == asker.clock.now() + backed_off(failures)
        asker.clock.advance(backed_off(failures))
    asker.hub.status = 200
    await asker.polls.tick()
    assert ((await asker.row()).problem, (await asker.row()).state["failures"]) == ("", 0)


async def test_a_missing_secret_and_a_missing_gh_are_told(asker: Asker, tmp_path: Path) -> None:
    asker.secrets.known.clear()
    await asker.connect()
    await asker.polls.tick()
    assert "GH" in (await asker.row()).problem
    assert asker.hub.answers == []
    with pytest.raises(Exception, match="gh"):
        await GitHub(tmp_path, {"PATH": str(tmp_path)}).default_token("https://api.github.com")
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\n[ "$4" = ghe.acme.example ] && echo told-by-gh\n')
    gh.chmod(0o755)
    found = await GitHub(tmp_path, {"PATH": f"{tmp_path}:/bin:/usr/bin"}).default_token(
        "https://ghe.acme.example/api/v3"
    )
    assert found == "told-by-gh"


@BOTH
async def test_a_process_that_dies_between_answer_and_commit_asks_again_and_each_comes_once(asker: Asker) -> None:
    await asker.connect()
    await asker.polls.tick()
    for number in range(5):
        asker.hub.open("issues", f"Lamp {number}")

    class Dies(Exception):
        pass

    class Dying:
        def __init__(self, source: GitHub, after: int) -> None:
            self.source, self.after = source, after

        async def fetch(self, address: str, token: str, etag: str) -> Fetched:
            found = await self.source.fetch(address, token, etag)
            self.after -= 1
            if self.after < 0:
                raise Dies
            return found

        async def default_token(self, url: str) -> str:
            return await self.source.default_token(url)

    asker.clock.advance(MINUTE)
    for after in (0, 1, 2):
        asker.anew().source = Dying(GitHub(Path("/"), os.environ), after)
        with pytest.raises(Dies):
            await asker.polls.tick()
    asker.anew()
    await asker.polls.tick()
    assert await asker.came() == [("issues.opened", "polled")] * 5


async def test_two_that_ask_at_once_keep_each_thing_once(asker: Asker) -> None:
    await asker.connect()
    await asker.polls.tick()
    asker.hub.open("issues", "The lamp is out")
    other = Polls(asker.store, asker.clock, asker.ids, asker.polls.source, asker.secrets)
    asker.clock.advance(MINUTE)
    row = await asker.row()
    await other._round(row)
    await asker.polls._round(row)
    assert await asker.came() == [("issues.opened", "polled")]
    (kept,) = await asker.store.read(lambda tx: tx.deliveries.page(connection="gh", before=None, limit=9))
    assert kept.repeats == 0


async def test_more_than_a_page_is_read_whole(asker: Asker) -> None:
    await asker.connect()
    await asker.polls.tick()
    for number in range(105):
        asker.hub.open("issues", f"Lamp {number}")
        asker.hub.open("pulls", f"Mending {number}")
    await asker.later()
    kinds = [kind for kind, _ in await asker.came()]
    assert (kinds.count("issues.opened"), kinds.count("pull_request.opened")) == (105, 105)


@BOTH
async def test_a_webhook_and_a_poll_that_tell_of_the_same_issue_fire_one_run(asker: Asker) -> None:
    await asker.connect()
    hook = {"name": "fix", "gate": "webhook", "connection": "gh", "exec": "true", "overlap": "allow"}
    await asker.store.transact(editing.create, hook, rules=asker.rules, ctx=asker.context)
    await asker.polls.tick()
    first, second = asker.hub.open("issues", "Sent first"), asker.hub.open("issues", "Polled first")

    async def sent(issue: dict[str, Any]) -> None:
        body = {"action": "opened", "issue": issue | {"reactions": {}}, "repository": {"full_name": "acme/web"}}
        row = DeliveryRow(
            asker.ids.make("dlv"), "gh", f"sha256:{issue['id']}", {"x-github-event": "issues"}, json.dumps(body),
            asker.clock.now(),
        )  # fmt: skip
        await asker.store.transact(keep, row, asker.context)
        await asker.judge()

    await sent(first)
    await asker.later()
    await asker.judge()
    await sent(second)
    runs = await asker.store.read(lambda tx: tx.runs.page(limit=10))
    assert len(runs) == 2
    rows = await asker.store.read(lambda tx: tx.deliveries.page(connection="gh", before=None, limit=9))
    verdicts = await asker.store.read(lambda tx: tx.deliveries.verdicts(row.id for row in rows))
    found = sorted((one.verdict, one.run_id) for several in verdicts.values() for one in several)
    assert [verdict for verdict, _ in found] == ["duplicate", "duplicate", "fired", "fired"]
    assert {run for _, run in found} == {run.id for run in runs}


@BOTH
async def test_a_webhook_and_a_poll_that_tell_of_the_same_push_or_edit_fire_one_run(asker: Asker) -> None:
    await asker.connect()
    hook = {"name": "fix", "gate": "webhook", "connection": "gh", "exec": "true", "overlap": "allow"}
    await asker.store.transact(editing.create, hook, rules=asker.rules, ctx=asker.context)
    await asker.polls.tick()
    numbers = itertools.count(1)

    async def sent(event: str, body: dict[str, Any], guid: str | None = None) -> None:
        body = body | {"repository": {"full_name": "acme/web"}}
        row = DeliveryRow(
            asker.ids.make("dlv"), "gh", guid or f"guid-{next(numbers)}", {"x-github-event": event}, json.dumps(body),
            asker.clock.now(),
        )  # fmt: skip
        await asker.store.transact(keep, row, asker.context)
        await asker.judge()

    async def polled(kind: str, **payload: Any) -> None:
        asker.hub.event(kind, **payload)
        await asker.later()
        await asker.judge()

    async def fired() -> int:
        return len(await asker.store.read(lambda tx: tx.runs.page(limit=99)))

    ref, pushed = {"ref": "refs/heads/main"}, {"before": "a" * 40, "after": "b" * 40}
    there = {"before": "a" * 40, "head": "b" * 40}
    await sent("push", ref | pushed, "guid-of-push")
    await polled("PushEvent", push_id=1, **ref, **there)
    assert await fired() == 1, "sent first"
    await polled("PushEvent", push_id=2, **ref, before="b" * 40, head="a" * 40)
    await sent("push", ref | {"before": "b" * 40, "after": "a" * 40})
    assert await fired() == 2, "polled first"
    await sent("push", ref | pushed)
    await polled("PushEvent", push_id=3, **ref, **there)
    assert await fired() == 3, "the same commits again, as when a branch is set back and forth"
    await sent("push", ref | pushed, "guid-of-push")
    assert await fired() == 3, "the first delivery repeated"
    issue = {"id": 7, "number": 7, "title": "Dark", "updated_at": "2026-03-01T12:00:00Z"}
    await sent("issues", {"action": "edited", "issue": issue})
    await polled("IssuesEvent", action="edited", issue=issue)
    assert await fired() == 4, "an edit"
    await polled("IssuesEvent", action="edited", issue=issue | {"updated_at": "2026-03-01T12:01:00Z"})
    assert await fired() == 5, "a later edit"
    await sent("create", {"ref": "v1", "ref_type": "tag"})
    await polled("CreateEvent", ref="v1", ref_type="tag")
    assert await fired() == 6, "a tag"
    asker.clock.advance(timedelta(days=2))
    asker.hub.now += timedelta(days=2)
    await polled("CreateEvent", ref="v1", ref_type="tag")
    assert await fired() == 7, "long after, it is another"


async def test_rubbish_is_left_out_and_what_is_good_beside_it_is_kept(asker: Asker) -> None:
    await asker.connect()
    await asker.polls.tick()
    good = asker.hub.open("issues", "The lamp is out")
    asker.hub.lists["issues"] += [{"updated_at": good["updated_at"]}, good | {"id": 9, "title": "a\0b"}]
    asker.hub.lists["events"] += [{"id": None, "updated_at": ""}, {"id": "x", "type": "PushEvent", "payload": 7}]
    await asker.later()
    assert ("issues.opened", "polled") in await asker.came()
    assert (await asker.row()).problem == ""


async def connect_later(asker: Asker) -> None:
    """Another connection, which is due an hour later."""
    row = ConnectionRow("later", Provider.GITHUB, "", (), (), (), asker.clock.now(), "tester")
    poll = PollRow("later", "acme/web", asker.hub.url, "GH", {}, asker.clock.now() + timedelta(hours=1))

    def add(tx: Tx) -> None:
        tx.connections.add(row)
        tx.polls.add(poll)

    await asker.store.transact(add)


async def test_only_what_is_due_is_asked_for_and_the_loop_sleeps_until_the_next(asker: Asker) -> None:
    assert asker.polls.until_next() == LATEST
    assert await asker.polls.tick() == []
    assert asker.polls.until_next() == LATEST, "there is nothing to ask for"
    await asker.connect()
    await connect_later(asker)
    assert await asker.polls.tick() == ["gh"]
    assert asker.polls.until_next() == MINUTE
    asker.clock.advance(timedelta(seconds=59))
    assert (await asker.polls.tick(), asker.polls.until_next()) == ([], timedelta(seconds=1))
    asker.clock.advance(timedelta(seconds=1))
    assert asker.polls.until_next() == timedelta(0)
    assert await asker.polls.tick() == ["gh"]
    await asker.store.transact(lambda tx: tx.connections.delete("gh"))
    assert asker.polls.until_next() == MINUTE, "it does not know of it yet"
    await asker.polls.tick()
    assert asker.polls.until_next() == LATEST, "the other one is due later than it looks again"


async def test_what_another_process_asks_for_is_not_asked_for_again_and_again(asker: Asker) -> None:
    await asker.connect()

    async def nothing(_row: PollRow) -> None:
        """Another process was faster, and has not settled it."""

    asker.polls._round = nothing  # type: ignore[method-assign]
    assert await asker.polls.tick() == ["gh"]
    assert asker.polls.until_next() == AFTER_TROUBLE


async def test_while_the_database_is_away_nothing_is_asked_and_it_is_tried_again(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asker.connect()

    async def away(*_args: object) -> None:
        raise StoreUnavailable("The database is away.")

    with monkeypatch.context() as patched:
        patched.setattr(asker.polls, "store", SimpleNamespace(read=away, transact=away))
        assert await asker.polls.tick() == []
    assert asker.polls.until_next() == AFTER_TROUBLE
    assert asker.hub.answers == []
    assert await asker.polls.tick() == ["gh"]


async def test_a_connection_that_is_deleted_while_it_is_asked_for_leaves_nothing(asker: Asker) -> None:
    await asker.connect()
    await asker.polls.tick()
    asker.hub.open("issues", "The lamp is out")
    row = await asker.row()
    await asker.store.transact(lambda tx: tx.connections.delete("gh"))
    asker.clock.advance(MINUTE)
    await asker.polls._round(row)
    assert await asker.store.read(polls.known) == []
    assert await asker.store.read(lambda tx: tx.deliveries.newest(limit=9)) == []


async def test_a_token_is_that_of_the_connection_or_else_of_gh(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def of_gh(_self: GitHub, url: str) -> str:
        assert url == asker.hub.url
        return "told-by-gh"

    monkeypatch.setattr(GitHub, "default_token", of_gh)
    await asker.connect(token="")
    await asker.polls.tick()
    assert "token" in (await asker.row()).problem, "the hub knows another"
    asker.hub.token = "told-by-gh"  # noqa: S105  of a server on loopback
    await asker.later()
    assert (await asker.row()).problem == ""


async def test_an_address_is_asked_with_what_it_answered_before_and_another_one_without(asker: Asker) -> None:
    await asker.connect()
    await asker.polls.tick()
    asker.hub.event("PushEvent", ref="refs/heads/main", head="b" * 40, before="a" * 40)
    await asker.later()
    kept = (await asker.row()).state["events"]
    assert (kept["at"].partition("?")[0], bool(kept["etag"])) == (f"{asker.hub.url}/repos/acme/web/events", True)
    await asker.later()
    assert ("events", 304) in asker.hub.answers[-3:]

    def moved(tx: Tx) -> None:
        row = tx.polls.lock("gh")
        assert row is not None
        state = {**row.state, "events": {**row.state["events"], "at": "https://elsewhere.example/events"}}
        tx.polls.save(replace(row, state=state))

    await asker.store.transact(moved)
    await asker.later()
    assert ("events", 200) in asker.hub.answers[-3:]
    assert [kind for kind, _ in await asker.came()] == ["push"], "what was seen is not told again"


async def test_pages_are_read_up_to_a_bound_and_the_rest_is_read_the_next_time(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamplighter.daemon.polls.MOST_PAGES", {"events": 1, "issues": 2, "pulls": 1})
    await asker.connect()
    await asker.polls.tick()
    for number in range(205):
        asker.hub.now += timedelta(seconds=1)
        asker.hub.open("issues", f"Lamp {number}")
    asker.clock.advance(timedelta(seconds=205))
    before = len(asker.hub.answers)
    await asker.polls.tick()
    assert [part for part, _ in asker.hub.answers[before:]] == ["events", "issues", "issues", "pulls"]
    assert len(await asker.came()) == 200
    await asker.later()
    assert len(await asker.came()) == 205
