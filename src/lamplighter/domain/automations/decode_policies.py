"""Reads the policies of a definition; a policy may have a short form (`retry = 2`) that is equivalent to a table."""

import re
from dataclasses import replace

from lamplighter.domain.automations.policies import (
    AUTO_DISABLE_AFTER,
    NOTIFY_ON,
    Budget,
    CatchUp,
    CatchUpMode,
    Notify,
    Overlap,
    Policies,
    Retry,
)
from lamplighter.domain.automations.reading import Reader

MOST_RETRIES = 20
MOST_CAUGHT_UP = 100

_ENDS = frozenset({"succeeded", "failed", "needs_human", "timed_out", "canceled", "skipped"})
_DESTINATION = re.compile(r"slack:[#@][^\s#@]+|inbox")


def read_policies(table: Reader) -> Policies:
    disable_after = table.integer("auto_disable_after", 0, 1000)
    return Policies(
        overlap=table.choice("overlap", Overlap) or Overlap.SKIP,
        catch_up=_catch_up(table),
        retry=_retry(table),
        auto_disable_after=AUTO_DISABLE_AFTER if disable_after is None else disable_after,
        quiet_after=table.duration("quiet_after"),
        precheck=table.text("precheck"),
        timeout=table.duration("timeout"),
        deadline=table.duration("deadline"),
        idle_timeout=table.duration("idle_timeout", zero=True),
        budget=_budget(table),
        notify=_notify(table),
        jitter=table.duration("jitter", zero=True) or Policies().jitter,
    )


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
    found = Budget(part.number("cost"), part.integer("tokens", 1, 10**12), part.duration("time"))
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
            part.problem("on", f"`{end}` is not a state a run ends in: {', '.join(sorted(_ENDS))}")
    found = Notify(_destinations(part, "to"), on if part.has("on") else NOTIFY_ON)
    part.refuse_unknown()
    return found


def _destinations(table: Reader, name: str) -> tuple[str, ...]:
    found = table.texts(name)
    for one in found:
        if not _DESTINATION.fullmatch(one):
            table.problem(name, f"`{one}` is not a destination; write `slack:#channel`, `slack:@user` or `inbox`")
    return found
