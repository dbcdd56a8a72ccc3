"""Puts the reason that a gate gives, such as `cron: schedule matched`, into words for people."""

import re

from lamplighter.kit.durations import parse_duration, spoken

_KIND = r"(?:cooldown|cron|schedule|condition|event|webhook|manual): ?"
_SPAN = r"(?P<span>[0-9.]+[a-z0-9.]*)"
_SAID = [(re.compile(pattern), words) for pattern, words in {
    r"never run": "it has never run",
    rf"elapsed {_SPAN} >= interval .+": "it last fired {span} ago",
    rf"{_KIND}{_SPAN} remaining(?P<rest>.*)": "{span} remain{rest}",
    rf"{_KIND}(?:schedule )?matched, {_SPAN} late": "its time has come, {span} late",
    rf"{_KIND}(?:schedule )?matched": "its time has come",
    rf"{_KIND}(?:schedule )?not matched": "its time has not come",
    rf"{_KIND}already run this minute": "it has already run this minute",
    rf"{_KIND}no further time": "it has no further time",
    rf"{_KIND}check passed": "its check succeeded",
    rf"{_KIND}check failed with exit code (?P<rest>.+)": "its check ended with exit code {rest}",
    rf"{_KIND}check timed out after {_SPAN}": "its check took longer than {span}",
    rf"{_KIND}{_SPAN} until the next check": "its next check is in {span}",
    rf"{_KIND}not checked yet": "its check has not run yet",
    rf"{_KIND}(?P<rest>\d+ \S+ events?)": "{rest} came",
    rf"{_KIND}no matching (?P<on>\S+) events(?P<rest>.*)": "no {on} event that matches has come{rest}",
    rf"{_KIND}waits for a delivery": "it waits for a delivery",
    rf"{_KIND}(?P<rest>.+)": "{rest}",
}.items()]  # fmt: skip
PLAIN = frozenset({"its time has not come", "it has already run this minute"})
"""What goes without saying where the next time is told."""


def said(reason: str) -> str:
    """The reason in words; what is no reason of a gate as it is."""
    for pattern, words in _SAID:
        found = pattern.fullmatch(reason)
        if found is not None:
            return words.format(
                **{key: _long(text) if key == "span" else text for key, text in found.groupdict().items()}
            )
    return reason


def _long(text: str) -> str:
    try:
        return spoken(parse_duration(text))
    except ValueError:
        return text
