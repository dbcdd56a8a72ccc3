"""Joins settings of ours with settings that a person has in the same file or variable."""

from collections.abc import Mapping
from typing import Any

from lamplighter.kit import json_text
from lamplighter.kit.errors import LampError


class NotSettings(LampError):
    """A variable or file of the user's that ours must be joined with is not a JSON object."""


def joined(variable: str, theirs: str, ours: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in the user's variable with ours put over them. Raises NotSettings."""
    if not theirs.strip():
        return dict(ours)
    try:
        found = json_text.parse(theirs)
    except ValueError as error:
        raise _not_settings(variable, f"is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise _not_settings(variable, "is not a JSON object")
    return over(found, ours)


def over(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables in one, joined key by key; where both have a value, ours counts."""
    merged = dict(theirs)
    for key, value in ours.items():
        known = merged.get(key)
        merged[key] = over(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def without(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """`theirs` without the values that are still exactly ours, and without the tables that become empty by it."""
    left = dict(theirs)
    for key, value in ours.items():
        known = left.get(key)
        if known == value:
            del left[key]
        elif isinstance(known, dict) and isinstance(value, dict):
            left[key] = without(known, value)
            if not left[key]:
                del left[key]
    return left


def _not_settings(variable: str, why: str) -> NotSettings:
    return NotSettings(
        f"The variable {variable} {why}, and the tools of the run have to be added to it.",
        hint="Mend it or take it out of the environment and of the configuration.",
    )
