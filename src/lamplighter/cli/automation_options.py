"""The command line options that describe an automation, and their translation into a definition."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lamplighter.kit import json_text
from lamplighter.kit.errors import UsageError

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
_PLAIN = (
    "description",
    "timezone",
    "timeout",
    "deadline",
    "idle_timeout",
    "overlap",
    "precheck",
    "jitter",
    "quiet_after",
    "pool",
)
_AGENT = ("prompt", "configuration", "preset", "model", "mode")


def definition_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = [
    click.option("--exec", "exec_", metavar="COMMAND", help="Action: a shell command."),
    click.option("--formula", help="Action: cook this formula."),
    click.option("--prompt", help="Action: tell an agent this."),
    click.option("--cooldown", metavar="DURATION", help="Fires whenever so much time has passed."),
    click.option("--cron", metavar="'M H D M W'", help="Fires by a cron line."),
    click.option("--hourly", metavar=":MM", help="Fires every hour at that minute."),
    click.option("--daily", metavar="HH:MM", help="Fires every day at that time."),
    click.option("--weekly", metavar="'DAY HH:MM'", help="Fires every week, such as 'mon 09:00'."),
    click.option("--once", metavar="TIME", help="Fires once, such as 2026-12-01T09:00+01:00."),
    click.option("--condition", metavar="COMMAND", help="Fires when this command exits with 0."),
    click.option("--every", metavar="DURATION", help="With --condition: the least time between two firings."),
    click.option("--event", metavar="TYPE", help="Fires on events of this type, or of a family: bead.*"),
    click.option("--manual", is_flag=True, help="Fires only by hand."),
    click.option("--description", help="Shown in lists."),
    click.option("--timezone", help="An IANA zone; the city's when left out."),
    click.option("--timeout", metavar="DURATION", help="How long the action may take."),
    click.option("--deadline", metavar="DURATION", help="How long a run may take in all."),
    click.option("--idle-timeout", "idle_timeout", metavar="DURATION", help="How long an agent run may be silent."),
    click.option(
        "--overlap", type=click.Choice(["skip", "queue", "allow", "replace"]), help="While a run is under way."
    ),
    click.option("--catch-up", "catch_up", type=click.Choice(["one", "skip", "all"]), help="Slots that passed unseen."),
    click.option("--retry", type=click.IntRange(0, 20), help="How often a failed run is tried again."),
    click.option("--precheck", metavar="COMMAND", help="Run first: 0 goes on, 75 means nothing to do."),
    click.option("--jitter", metavar="DURATION", help="Spread due times by up to so much."),
    click.option("--quiet-after", "quiet_after", metavar="DURATION", help="Alarm when nothing fires for so long."),
    click.option("--pool", help="The pool a formula's wisp is routed to."),
    click.option("--configuration", help="Where and with what an agent runs."),
    click.option("--preset", help="Which agent program."),
    click.option("--model", help="Which model it is asked to use."),
    click.option("--mode", type=click.Choice(["approval", "plan", "full_access"]), help="What an agent may do."),
    click.option("--set", "extra", multiple=True, metavar="KEY=VALUE", help="Any other key; VALUE is JSON or a text."),
    click.option("--disabled", is_flag=True, help="Do not let it fire yet."),
    click.option("--rig", help="The rig it belongs to."),
]


def definition_of(options: dict[str, Any], path: Path | None) -> dict[str, Any]:
    """The options as keys of an automation.toml; only those that were given."""
    body: dict[str, Any] = {key: options[key] for key in _PLAIN if options.get(key) is not None}
    body |= {key: options[key] for key in ("catch_up", "retry", "rig", "formula") if options.get(key) is not None}
    if options.get("exec_") is not None:
        body["exec"] = options["exec_"]
    agent = {key: options[key] for key in _AGENT if options.get(key) is not None}
    if path is not None:
        agent["path"] = str(path.resolve())
    if agent:
        body["agent"] = agent
    body |= _trigger(options)
    if options.get("disabled"):
        body["enabled"] = False
    return body | _extra(options.get("extra", ()))


def _trigger(options: dict[str, Any]) -> dict[str, Any]:
    readers: dict[str, Callable[[str], dict[str, Any]]] = {
        "cooldown": lambda text: {"gate": "cooldown", "interval": text},
        "cron": lambda text: {"gate": "cron", "schedule": text},
        "hourly": lambda text: {"gate": "schedule", "cadence": "hourly", "minute": _minute(text)},
        "daily": lambda text: {"gate": "schedule", "cadence": "daily", **_clock(text)},
        "weekly": _weekly,
        "once": lambda text: {"gate": "schedule", "cadence": "once", "at": text},
        "condition": lambda text: {"gate": "condition", "check": text},
        "event": lambda text: {"gate": "event", "on": text},
    }
    given = [name for name in readers if options.get(name) is not None] + (["manual"] if options.get("manual") else [])
    if len(given) > 1:
        raise UsageError(
            f"--{given[0]} and --{given[1]} are two triggers.",
            hint="Give one here; an automation.toml may have several: `lamp automation import`.",
        )
    if not given:
        return {}
    trigger = {"gate": "manual"} if given == ["manual"] else readers[given[0]](options[given[0]])
    if options.get("every") is not None:
        trigger["interval"] = options["every"]
    return trigger


def _weekly(text: str) -> dict[str, Any]:
    day, _, clock = text.partition(" ")
    return {"gate": "schedule", "cadence": "weekly", "weekday": day.casefold()[:3], **_clock(clock.strip())}


def _clock(text: str) -> dict[str, int]:
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise UsageError(f"`{text}` is not a time of day.", hint="Write HH:MM, such as 09:00.")
    return {"hour": int(found[1]), "minute": int(found[2])}


def _minute(text: str) -> int:
    digits = text.removeprefix(":")
    if not digits.isdigit():
        raise UsageError(f"`{text}` is not a minute.", hint="Write :MM, such as :05.")
    return int(digits)


def _extra(texts: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"`--set {text}` is not KEY=VALUE.", hint="Such as --set retry=2.")
        try:
            found[key] = json_text.parse(value)
        except json_text.TooDeep as error:
            raise UsageError(f"`--set {key}` cannot be taken: {error}.", hint="Give it fewer levels.") from error
        except ValueError:
            found[key] = value
    return found
