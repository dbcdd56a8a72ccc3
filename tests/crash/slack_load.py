"""Runs whose ends are told in Slack, which is away at first, then fails and loses answers, in a city that is killed."""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from automation_watch import all_ended, look, wait_until
from crew import JobPool
from notice_load import MOST_FAILURES, emit, until

from lamplighter.domain.inbox.notices import Notice, NoticeState
from lamplighter.testing.slack_server import Broken, Limited, Lost, Refused, SlackServer, Trouble
from lamplighter.testing.slack_shapes import APP_TOKEN, BOT_TOKEN

SEEN, UNSEEN = "C1", "C2"
"""In the second channel the app may not look at the messages."""
FAILED, LOST, LIMITED, LOOK_FAILED = 0.3, 0.1, 0.05, 0.05
CONFIG = """
[[notifications.destinations]]
name = "{channel}"
kind = "slack_channel"
channel = "{channel}"
"""
AUTOMATION = """[automation]
exec = "true"
gate = "event"
on = "load.{channel}"
batch = 1
overlap = "allow"
[automation.notify]
to = ["{channel}"]
on = ["succeeded"]
"""


@dataclass
class SlackTrouble:
    """Fails three of ten posts, loses the answer to one of ten (every other one is taken), and limits some."""

    chance: random.Random = field(default_factory=lambda: random.Random(7))
    failures: Counter[str] = field(default_factory=Counter)
    away: bool = True
    lost: int = 0
    begun: set[str] = field(default_factory=set)

    def judge(self, method: str, args: Mapping[str, Any]) -> Trouble | None:
        drawn = self.chance.random()
        if self.away:
            return Broken()
        if method == "conversations.history":
            if args.get("channel") == UNSEEN:
                return Refused("missing_scope")
            return Broken() if drawn < LOOK_FAILED else None
        return self._of_post(args, drawn) if method == "chat.postMessage" else None

    def _of_post(self, args: Mapping[str, Any], drawn: float) -> Trouble | None:
        notice = _notice(args)
        if args["channel"] not in self.begun:  # the first of each channel for certain, however few there are
            self.begun.add(args["channel"])
            self.lost += 1
            return Lost()
        if drawn >= FAILED + LOST + LIMITED or self.failures[notice] >= MOST_FAILURES - 1:
            return None
        self.failures[notice] += 1
        if drawn < FAILED:
            return Broken()
        if drawn >= FAILED + LOST:
            return Limited(1)
        taken = self.chance.random() < 0.5
        self.lost += taken
        return Lost(taken=taken)


def furnish(city: Path, slack: SlackServer, env: Mapping[str, str]) -> None:
    """The app is installed, and each channel has an automation whose runs are told there."""
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write("".join(CONFIG.format(channel=channel) for channel in (SEEN, UNSEEN)))
    for channel in (SEEN, UNSEEN):
        slack.messages[channel] = []
        folder = city / ".gc/formulas/automations" / channel.lower()
        folder.mkdir(parents=True)
        (folder / "automation.toml").write_text(AUTOMATION.format(channel=channel))
    install(city, env | {"LAMP_SLACK_API_URL": slack.api})


def install(city: Path, env: Mapping[str, str], *options: str, socket: bool = False) -> None:
    tokens = f"SLACK_BOT_TOKEN={BOT_TOKEN}\n" + (f"SLACK_APP_TOKEN={APP_TOKEN}\n" if socket else "")
    line = [sys.executable, "-m", "lamplighter", "slack", "install", "--city", str(city), *options]
    subprocess.run(line, input=tokens, env=dict(env), check=True, capture_output=True, text=True, timeout=60)


def environment(slack: SlackServer) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LAMP_", "GC_"))}
    return kept | {"LAMP_SLACK_API_URL": slack.api}


def drill(city: Path, crew: JobPool, slack: SlackServer, count: int, *, kills: int = 2) -> SlackTrouble:
    """End so many runs for each channel while Slack is away, then kill the daemon while they are told."""
    trouble = SlackTrouble()
    slack.trouble_with = trouble.judge
    crew.live("one", city, "up")
    crew.up("one")
    for channel in (SEEN, UNSEEN):
        emit(city, count, f"load.{channel}")
    wait_until(city, lambda tx: len(tx.runs.page(limit=100_000)) == 2 * count and all_ended(tx), within=900)
    assert {one.state for one in look(city, lambda tx: tx.runs.page(limit=100_000))} == {"succeeded"}
    trouble.away = False
    for number in range(kills):
        until(
            city, lambda reached=(number + 1) * 2 * count // (kills + 2): len(slack.of("chat.postMessage")) >= reached
        )
        crew.kill("one")
        crew.live("one", city, "up")
        crew.up("one")
    until(city, lambda: sum(map(_told_or_in_doubt, of_runs(city))) == 2 * count)
    assert crew.stop("one") == 0
    return trouble


def of_runs(city: Path) -> list[Notice]:
    """Without those which say that a channel takes nothing."""
    return [one for one in look(city, lambda tx: tx.notices.page(limit=100_000)) if one.about.startswith("run_")]


def told(slack: SlackServer, channel: str) -> Counter[str]:
    """How often each notice stands in a channel."""
    return Counter(_notice(one) for one in slack.messages[channel])


def told_of(city: Path, slack: SlackServer) -> tuple[Counter[str], Counter[str]]:
    """How often each notice of a run stands in the channel with look-ups, and in the one without."""
    ids = {one.id for one in of_runs(city)}
    seen, unseen = told(slack, SEEN), told(slack, UNSEEN)
    return Counter({key: seen[key] for key in seen if key in ids}), Counter(
        {key: unseen[key] for key in unseen if key in ids}
    )


def unaccounted(city: Path, slack: SlackServer) -> list[str]:
    """Notices that are missing, or that stand there more often than once, without a doubt on record for each time more.

    Where Slack lets itself be asked there is no doubt. Where it does not, a notice stands there twice at most: one with
    two doubts is not sent again, and is told as not sent.
    """
    notices = of_runs(city)
    seen, unseen = told(slack, SEEN), told(slack, UNSEEN)
    return [
        f"{one.id} in {one.destination}: {there[one.id]} times, {one.doubts} doubts"
        for one in notices
        if not _sound(one, there := seen if one.destination == SEEN else unseen)
    ]


def _sound(one: Notice, there: Counter[str]) -> bool:
    if one.destination == SEEN:
        return there[one.id] == 1
    least = 1 if one.state is NoticeState.SENT else 0
    return least <= there[one.id] <= min(1 + one.doubts, 2)


def _told_or_in_doubt(one: Notice) -> bool:
    return one.state is NoticeState.SENT or (one.destination == UNSEEN and one.doubts == 2)


def _notice(args: Mapping[str, Any]) -> str:
    return str(args["metadata"]["event_payload"]["notice"])
