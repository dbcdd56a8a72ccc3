"""Tokens of Slack stand nowhere, whatever Slack or something in its place answers."""

from collections.abc import Iterator

import pytest
from loops_city import Loops
from slack_city import OPS, declare, hear
from slack_talk import furnish, mention, send, step
from structlog.testing import capture_logs

from lamplighter.store.tx import Tx
from lamplighter.testing.slack_server import Refused, SlackServer, slack_server
from lamplighter.testing.slack_shapes import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        found.messages["C1"] = []
        yield found


def everything(tx: Tx) -> str:
    names = [str(row["name"]) for row in tx.db.rows("SELECT name FROM sqlite_master WHERE type = 'table'", {})]
    return "\n".join(repr(list(map(dict, tx.db.rows(f'SELECT * FROM "{name}"', {})))) for name in names)


async def test_what_repeats_a_token_is_not_repeated(
    loops: Loops, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await furnish(loops, monkeypatch)
    declare(loops, slack, OPS)
    slack.trouble = lambda _method, _before: Refused(f"wrong token {BOT_TOKEN} and {APP_TOKEN}")
    with capture_logs() as told:
        async with hear(loops, slack) as web:
            await loops.add("nightly", exec="exit 1")
            await loops.work("nightly")
            await loops.parts.inbox.tell()
            await send(web, mention(slack, "light the lamps"), "Ev1")
            (loops.root / "go1").write_text("Lit.")
            (loops.root / "exit1").write_text("0")
            for _ in range(4):
                await step(loops)
    kept = await loops.store.read(everything)
    assert "none of Slack's" in kept
    for secret in (BOT_TOKEN, APP_TOKEN, SIGNING_SECRET):
        assert secret not in kept
        assert secret not in repr(told)
