"""Reads the policies of a definition; a policy may have a short form (`retry = 2`) that is equivalent to a table."""

import re
from dataclasses import replace

from lamplighter.domain.automations.policies import (
    AUTO_DISABLE_AFTER,
    NOTIFY_ON,
    Approve,
    Budget,
    CatchUp,
    CatchUpMode,
    Notify,
    Overlap,
    Policies,
    Retry,
)
from lamplighter.domain.automations.reading import Reader
from lamplighter.domain.secrets import is_name, referred
from lamplighter.kit.masking import MASK

MOST_RETRIES = 20
MOST_CAUGHT_UP = 100
MOST_ROUNDS = 20
MOST_TOKENS = 10**12
MOST_REPEATS = 1000

_ENDS = frozenset({"succeeded", "failed", "needs_human", "timed_out"})
_IN_SLACK = re.compile(r"slack:[CGDUW][A-Z0-9]{1,40}")
_CHANNEL = re.compile(r"slack:[CG][A-Z0-9]{1,40}")
_DESTINATION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
MOST_AFTER = 1000
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_policies(table: Reader) -> Policies:
    disable_after = table.integer("auto_disable_after", 0, 1000)
    return Policies(
        overlap=table.choice("overlap", Overlap) or Overlap.SKIP,
        catch_up=_catch_up(table),
        retry=_retry(table),
        auto_disable_after=AUTO_DISABLE_AFTER if disable_after is None else disable_after,
        quiet_after=table.duration("quiet_after"),
        precheck=table.text("precheck"),
        verify=table.text("verify"),
        verify_timeout=table.duration("verify_timeout"),
        rounds=table.integer("rounds", 0, MOST_ROUNDS),
        stuck_after=table.integer("stuck_after", 0, MOST_REPEATS),
        approve=table.choice("approve", Approve),
        timeout=table.duration("timeout"),
        deadline=table.duration("deadline"),
        idle_timeout=table.duration("idle_timeout", zero=True),
        budget=_budget(table),
        notify=_notify(table),
        jitter=table.duration("jitter", zero=True) or Policies().jitter,
        env=_environment(table),
        connections=_connections(table),
    )


def _connections(table: Reader) -> tuple[str, ...] | None:
    if not table.has("connections"):
        return None
    return tuple(dict.fromkeys(table.texts("connections")))


def _environment(table: Reader) -> dict[str, str]:
    found = table.mapping("env")
    for name, value in found.items():
        if not _VARIABLE.fullmatch(name):
            table.problem(f"env.{name}", "is not the name of a variable; use letters, digits and `_`")
        elif name.startswith(("LAMP_", "GC_")):
            table.problem(f"env.{name}", "is set by the city itself")
        elif not isinstance(value, str):
            table.problem(f"env.{name}", "takes a text in quotes")
        elif "\0" in value or MASK in value:
            table.problem(f"env.{name}", "holds a NUL, or is masked")
        elif (secret := referred(value)) is not None and not is_name(secret):
            table.problem(f"env.{name}", f"`{secret}` is not the name of a secret; write `secret:NAME`")
    return {name: str(value) for name, value in found.items()}


def _catch_up(table: Reader) -> CatchUp:
    default = CatchUp()
    if isinstance(table.raw("catch_up"), str):
        return replace(default, mode=table.choice("catch_up", CatchUpMode) or default.mode)
    part = table.part("catch_up")
    if part is None:
        return default
    found = CatchUp(
        part.choice("mode", CatchUpMode) or default.mode,
        part.duration("within") or default.within,
        part.integer("limit", 1, MOST_CAUGHT_UP) or default.limit,
    )
    part.refuse_unknown()
    return found


def _retry(table: Reader) -> Retry:
    default = Retry()
    if isinstance(table.raw("retry"), int):
        return replace(default, count=table.integer("retry", 0, MOST_RETRIES) or 0)
    part = table.part("retry")
    if part is None:
        return default
    backoff = part.duration("backoff") or default.backoff
    most = part.duration("most") or max(default.most, backoff)
    if most < backoff:
        part.problem("most", "is shorter than `backoff`")
    found = Retry(part.integer("count", 0, MOST_RETRIES) or 0, backoff, most)
    part.refuse_unknown()
    return found


def _budget(table: Reader) -> Budget:
    part = table.part("budget")
    if part is None:
        return Budget()
    found = Budget(
        part.number("cost"), part.integer("tokens", 1, MOST_TOKENS), part.duration("time"),
        part.number("day_cost"), part.integer("day_tokens", 1, MOST_TOKENS), part.duration("day_time"),
    )  # fmt: skip
    part.refuse_unknown()
    return found


def _notify(table: Reader) -> Notify:
    value = table.raw("notify")
    if isinstance(value, list | tuple):
        return Notify(_destinations(table, "notify"))
    part = table.part("notify")
    if part is None:
        return Notify()
    on = part.texts("on")
    for end in on:
        if end not in _ENDS:
            part.problem("on", f"`{end}` is not an end that is told: {', '.join(sorted(_ENDS))}")
    after = part.integer("after", 0, MOST_AFTER) or 0
    thread = part.text("thread")
    if thread is not None and not (_CHANNEL.fullmatch(thread) or _DESTINATION.fullmatch(thread)):
        part.problem("thread", f"`{thread}` is not a channel of Slack, such as `slack:C0123456789`, or a destination")
    found = Notify(_destinations(part, "to"), on if part.has("on") else NOTIFY_ON, after, thread)
    part.refuse_unknown()
    return found


def _destinations(table: Reader, name: str) -> tuple[str, ...]:
    found = table.texts(name)
    for one in found:
        if one.startswith("slack:"):
            if not _IN_SLACK.fullmatch(one):
                table.problem(name, f"`{one}` is not `slack:` and an id, such as `slack:C0123456789`")
        elif not _DESTINATION.fullmatch(one):
            table.problem(name, f"`{one}` is not the name of a destination, `inbox` or `none`")
    return found
