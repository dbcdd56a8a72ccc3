"""The policies of an automation in sentences; only those that differ from the defaults."""

from collections.abc import Callable, Mapping
from typing import Any

from lamplighter.cli.words import counted, listed, span, state
from lamplighter.kit.durations import parse_duration

_OVERLAP = {
    "queue": "While a run is under way, the next one waits; what waited runs once.",
    "allow": "A run starts also beside one that is under way.",
    "replace": "A run under way is canceled for the next one.",
}


def policy_words(policies: Mapping[str, Any]) -> list[str]:
    """A sentence for each policy that is not the usual one."""
    from lamplighter.domain.automations.policies import Policies
    from lamplighter.domain.automations.shape import policies_shape

    usual = policies_shape(Policies())
    return [_SENTENCES.get(key, _other(key))(value) for key, value in policies.items() if value != usual.get(key)]


def _other(key: str) -> Callable[[Any], str]:
    return lambda value: f"{state(key).capitalize()}: {value}."


def _catch_up(value: Mapping[str, Any]) -> str:
    within = _time(value["within"])
    told = {
        "skip": "Slots that passed unseen are not made up for.",
        "one": f"Of the slots that passed unseen within {within}, one is made up for.",
        "all": f"Every slot that passed unseen within {within} is made up for, at most {value['limit']}.",
    }
    return told.get(value["mode"], f"Catch up: {value['mode']}.")


def _retry(value: Mapping[str, Any]) -> str:
    times = "once" if value["count"] == 1 else f"up to {value['count']} times"
    if not value["count"]:
        return "A failed run is not tried again."
    return f"A failed run is tried again {times}, first after {_time(value['backoff'])}."


def _disabled_after(value: int) -> str:
    return f"Switched off after {counted(value, 'failure')} in a row." if value else "Failures never switch it off."


def _budget(value: Mapping[str, Any]) -> str:
    parts = [
        f"{value['cost']:g} USD" if value.get("cost") is not None else "",
        counted(value["tokens"], "token") if value.get("tokens") is not None else "",
        _time(value["time"]) if value.get("time") is not None else "",
    ]
    day = [
        f"{value['day_cost']:g} USD" if value.get("day_cost") is not None else "",
        counted(value["day_tokens"], "token") if value.get("day_tokens") is not None else "",
        _time(value["day_time"]) if value.get("day_time") is not None else "",
    ]
    told = {"A run": listed(part for part in parts if part), "All runs of a day": listed(part for part in day if part)}
    return " ".join(f"{who} may use at most {what}." for who, what in told.items() if what)


def _notify(value: Mapping[str, Any]) -> str:
    after = value.get("after") or 1
    often = f"; of failures from the {nth(after)} of one kind on" if after > 1 else ""
    kinds = listed(map(state, value["on"]), last="or")
    thread = f" Each run has a thread in {value['thread']}." if value.get("thread") else ""
    return f"Tells {listed(value['to']) or 'nobody'} of runs that are {kinds}{often}.{thread}"


def nth(number: int) -> str:
    """`2nd`, `3rd`, `11th`."""
    teens = number % 100 in {11, 12, 13}
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _time(text: str) -> str:
    return span(parse_duration(text))


_SENTENCES: Mapping[str, Callable[[Any], str]] = {
    "overlap": lambda value: _OVERLAP.get(value, "While a run is under way, no other starts."),
    "catch_up": _catch_up,
    "retry": _retry,
    "auto_disable_after": _disabled_after,
    "quiet_after": lambda value: f"It is told when nothing has fired for {_time(value)}.",
    "precheck": lambda value: f"Before each run, `{value}` decides whether there is anything to do.",
    "timeout": lambda value: f"The action may take {_time(value)}.",
    "deadline": lambda value: f"A run may take {_time(value)} in all.",
    "idle_timeout": lambda value: f"An agent that is silent for {_time(value)} is ended.",
    "stuck_after": lambda value: (
        f"An agent that makes the same call with the same result {counted(value, 'time')} in a row is told, then ended."
        if value
        else "An agent may make the same call any number of times."
    ),
    "budget": _budget,
    "notify": _notify,
    "connections": lambda value: (
        f"Its programs get the tokens of the connections {listed(value)}, and of those of its triggers."
        if value
        else "Its programs get the token of no connection."
    ),
    "jitter": lambda value: f"Its times are spread by up to {_time(value)}.",
}
