"""The providers of deliveries, and the fields that each one's payloads are read into: triggers filter by them."""

from collections.abc import Mapping
from enum import StrEnum


class Provider(StrEnum):
    STANDARD = "standard"
    GITHUB = "github"
    LINEAR = "linear"
    SENTRY = "sentry"
    POSTHOG = "posthog"
    BEARER = "bearer"


MIN_LEVEL = "min_level"
LEVELS = ("debug", "info", "warning", "error", "fatal")
FIELDS: Mapping[Provider, tuple[str, ...]] = {
    Provider.STANDARD: (),
    Provider.GITHUB: ("repo", "author", "action", "number", "branch", "labels", "merged", "draft", "conclusion"),
    Provider.LINEAR: ("team", "author", "action", "number", "state", "priority", "labels", "assignee", "project"),
    Provider.SENTRY: ("project", "author", "action", "number", "level", "environment"),
    Provider.POSTHOG: ("event", "author"),
    Provider.BEARER: (),
}
SEARCHED: Mapping[Provider, tuple[str, ...]] = {
    Provider.STANDARD: (),
    Provider.GITHUB: ("repo", "author", "action", "number"),
    Provider.LINEAR: ("team", "author", "action", "number"),
    Provider.SENTRY: ("project", "level", "action", "number"),
    Provider.POSTHOG: ("event", "author"),
    Provider.BEARER: (),
}
"""The fields by which runs are found, unless the connection declares others."""
FILTERS = frozenset(name for names in FIELDS.values() for name in names) | {MIN_LEVEL}


def filters_of(provider: Provider) -> frozenset[str]:
    return frozenset(FIELDS[provider]) | ({MIN_LEVEL} if provider is Provider.SENTRY else frozenset())


def below_level(wanted: str, level: object) -> bool:
    """Whether a level is lower than the wanted one; one that is not known counts as an error."""
    found = LEVELS.index(level) if isinstance(level, str) and level in LEVELS else LEVELS.index("error")
    return found < LEVELS.index(wanted)
