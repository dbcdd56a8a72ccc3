"""The command line options that describe an automation, and their translation into a definition."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lamplighter.cli.base import remote
from lamplighter.cli.completing import names
from lamplighter.cli.numbers import Whole
from lamplighter.domain.city.paths import remote as addressed
from lamplighter.kit import json_text
from lamplighter.kit.errors import UsageError

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
_PLAIN = (
    "description",
    "owner",
    "timezone",
    "timeout",
    "deadline",
    "idle_timeout",
    "overlap",
    "precheck",
    "verify",
    "verify_timeout",
    "rounds",
    "approve",
    "jitter",
    "quiet_after",
    "pool",
)
_AGENT = (
    "prompt", "prompt_file", "configuration", "strategy", "fallback", "preset", "model", "effort", "mode",
    "fallback_preset", "fallback_model", "session", "agent",
)  # fmt: skip
NO_CONNECTION = "none"
_TABLES = ("agent", "budget", "retry", "catch_up", "notify", "match", "vars", "env", "filter")


def definition_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = [
    click.option("--exec", "exec_", metavar="COMMAND", help="Action: a shell command."),
    click.option("--formula", help="Action: cook this formula."),
    click.option("--prompt", help="Action: tell an agent this."),
    click.option("--session", metavar="ID", help="With --prompt: in the conversation of this session or run."),
    click.option("--agent", help="With --prompt: tell it to this agent of the city.", shell_complete=names("agent")),
    click.option("--cooldown", metavar="DURATION", help="Fires whenever so much time has passed."),
    click.option("--cron", metavar="'M H D M W'", help="Fires by a cron line."),
    click.option("--hourly", metavar=":MM", help="Fires every hour at that minute."),
    click.option("--daily", metavar="HH:MM", help="Fires every day at that time."),
    click.option("--weekly", metavar="'DAY HH:MM'", help="Fires every week, such as 'mon 09:00'."),
    click.option("--once", metavar="TIME", help="Fires once, such as 2026-12-01T09:00+01:00."),
    click.option("--condition", metavar="COMMAND", help="Fires when this command exits with 0."),
    click.option(
        "--every",
        metavar="DURATION",
        help="The same as --cooldown; with --condition, the least time between two firings.",
    ),
    click.option("--event", metavar="TYPE", help="Fires on events of this type, or of a family: bead.*"),
    click.option("--webhook", metavar="CONNECTION", help="Fires on deliveries of this connection; see --on."),
    click.option(
        "--on", "on", multiple=True, metavar="TYPE", help="With --webhook: only such events; may be repeated."
    ),
    click.option("--manual", is_flag=True, help="Fires only by hand."),
    click.option("--description", help="Shown in lists."),
    click.option("--owner", help="Who answers for it; shown in lists."),
    click.option("--tag", "tags", multiple=True, help="A word to find it by; may be repeated."),
    click.option("--timezone", help="An IANA zone; the city's when left out."),
    click.option("--timeout", metavar="DURATION", help="How long the action may take."),
    click.option("--deadline", metavar="DURATION", help="How long a run may take in all."),
    click.option("--idle-timeout", "idle_timeout", metavar="DURATION", help="How long an agent run may be silent."),
    click.option(
        "--overlap",
        type=click.Choice(["skip", "queue", "allow", "replace"]),
        help="What a time that comes during a run does.",
    ),
    click.option(
        "--catch-up",
        "catch_up",
        type=click.Choice(["one", "skip", "all"]),
        help="What is done about times that the city was down for.",
    ),
    click.option("--retry", type=Whole(0, 20), help="How often a failed run is tried again."),
    click.option("--precheck", metavar="COMMAND", help="Run first: 0 goes on, 75 means nothing to do."),
    click.option("--verify", metavar="COMMAND", help="Run when a success is claimed: 0 verifies it, else it failed."),
    click.option(
        "--verify-timeout", "verify_timeout", metavar="DURATION", help="How long that may take; 10m if unset."
    ),
    click.option(
        "--rounds",
        type=Whole(0, 20),
        help="How often an agent may mend what --verify found; once unless told.",
    ),
    click.option("--approve", type=click.Choice(["plan"]), help="What a person approves before an agent goes on."),
    click.option("--jitter", metavar="DURATION", help="Spread due times by up to so much."),
    click.option("--quiet-after", "quiet_after", metavar="DURATION", help="Alarm when nothing fires for so long."),
    click.option("--pool", help="The pool a formula's wisp is routed to."),
    click.option("--configuration", help="Where and with what an agent runs.", shell_complete=names("configuration")),
    click.option(
        "--strategy",
        type=click.Choice(["fixed", "agent_decide"]),
        help="Who chooses the configuration: you, or a model.",
    ),
    click.option(
        "--allow",
        multiple=True,
        metavar="NAME",
        help="A configuration that agent_decide may choose.",
        shell_complete=names("configuration"),
    ),
    click.option(
        "--fallback",
        metavar="NAME",
        help="The configuration where agent_decide finds none.",
        shell_complete=names("configuration"),
    ),
    click.option("--preset", help="Which agent program.", shell_complete=names("preset")),
    click.option("--model", help="Which model it is asked to use."),
    click.option(
        "--effort", type=click.Choice(["low", "medium", "high", "max"]), help="How hard the model shall think."
    ),
    click.option("--prompt-file", "prompt_file", metavar="FILE", help="A file of the prompt, in the city or the rig."),
    click.option("--fallback-preset", "fallback_preset", help="The program while its provider's limit is reached."),
    click.option("--fallback-model", "fallback_model", help="The model while its provider's limit is reached."),
    click.option(
        "--mode", type=click.Choice(["approval", "plan", "full_access"]), help="What an agent may do without asking."
    ),
    click.option(
        "--connection",
        "connections",
        multiple=True,
        metavar="NAME",
        help="A connection whose token its runs get, beside those of its triggers; `none` for no token at all.",
    ),
    click.option(
        "--set",
        "extra",
        multiple=True,
        metavar="KEY=VALUE",
        help="Any other key, such as budget.cost; VALUE is JSON or a text.",
    ),
    click.option("--disabled", is_flag=True, help="Do not let it fire yet."),
    click.option("--rig", help="The rig it belongs to.", shell_complete=names("rig")),
]


def definition_of(options: dict[str, Any], path: str | None) -> dict[str, Any]:
    """The options as keys of an automation.toml; only those that were given."""
    body: dict[str, Any] = {key: options[key] for key in _PLAIN if options.get(key) is not None}
    if options.get("tags"):
        body["tags"] = list(options["tags"])
    if options.get("connections"):
        body["connections"] = _connections(options["connections"])
    body |= {key: options[key] for key in ("catch_up", "retry", "rig", "formula") if options.get(key) is not None}
    if options.get("exec_") is not None:
        body["exec"] = options["exec_"]
    agent = {key: options[key] for key in _AGENT if options.get(key) is not None}
    if options.get("allow"):
        agent["configurations"] = list(options["allow"])
    if path is not None:
        agent["path"] = whole_path(path)
    if agent:
        body["agent"] = agent
    body |= trigger_of(options)
    if options.get("disabled"):
        body["enabled"] = False
    return _with_extra(body, _extra(options.get("extra", ())))


def _connections(names: tuple[str, ...]) -> list[str]:
    if NO_CONNECTION not in names:
        return list(names)
    if len(names) > 1:
        raise UsageError("--connection none goes without others.", hint="Leave it out to name connections.")
    return []


def whole_path(path: str) -> str:
    """The path from the root. One on another machine is left as it is: that city says what is wrong with it."""
    is_elsewhere = addressed(path) is not None or remote() is not None
    return path if is_elsewhere else str(Path(path).resolve())


def _with_extra(body: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """`agent.model` is a key of the table `agent`, beside what other options put there."""
    for key, value in extra.items():
        table, dot, inner = key.partition(".")
        if not dot or table not in _TABLES:
            body[key] = value
            continue
        before = body.get(table)
        body[table] = {**(before if isinstance(before, dict) else {}), inner: value}
    return body


def trigger_of(options: dict[str, Any]) -> dict[str, Any]:
    """The trigger as keys of an automation.toml; empty if none was given. Raises UsageError for two, or a wrong one."""
    readers: dict[str, Callable[[str], dict[str, Any]]] = {
        "cooldown": lambda text: {"gate": "cooldown", "interval": text},
        "cron": lambda text: {"gate": "cron", "schedule": text},
        "hourly": lambda text: {"gate": "schedule", "cadence": "hourly", "minute": _minute(text)},
        "daily": lambda text: {"gate": "schedule", "cadence": "daily", **_clock(text)},
        "weekly": _weekly,
        "once": lambda text: {"gate": "schedule", "cadence": "once", "at": text},
        "condition": lambda text: {"gate": "condition", "check": text},
        "event": lambda text: {"gate": "event", "on": text},
        "webhook": lambda text: {"gate": "webhook", "connection": text},
    }
    given = [name for name in readers if options.get(name) is not None] + (["manual"] if options.get("manual") else [])
    if len(given) > 1:
        raise UsageError(
            f"--{given[0]} and --{given[1]} are two triggers.",
            hint="Give one here; an automation.toml may have several: `lamp automation import`.",
        )
    if options.get("every") is not None and given not in ([], ["condition"]):
        raise UsageError(
            f"--every and --{given[0]} are two triggers.",
            hint="--every alone fires whenever so much time has passed; with --condition it is the least time between.",
        )
    if options.get("on") and given != ["webhook"]:
        raise UsageError("--on goes with --webhook.", hint="--event names the type of events of the city.")
    if not given:
        return {} if options.get("every") is None else {"gate": "cooldown", "interval": options["every"]}
    trigger: dict[str, Any] = {"gate": "manual"} if given == ["manual"] else readers[given[0]](options[given[0]])
    if options.get("every") is not None:
        trigger["interval"] = options["every"]
    if options.get("on"):
        trigger["events"] = list(options["on"])
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
