"""Configurations given by people or programs: the keys and checks of `[[configurations]]`, and a few more checks."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from lamplighter.domain.city.check import check_configuration
from lamplighter.domain.city.decode import build, read
from lamplighter.domain.city.model import City, Configuration
from lamplighter.domain.city.show import covered
from lamplighter.domain.city.tree import Findings, Origin, Place
from lamplighter.kit.errors import Misfit, UsageError, place_of
from lamplighter.kit.masking import MASK

_KEYS = frozenset(one.name for one in fields(Configuration)) - {"name"}
_PLACES = frozenset({"rig", "path"})


class ConfigurationInvalid(UsageError):
    """Lists every problem, each with its key."""

    def __init__(self, found: Findings) -> None:
        told = "\n".join(str(problem) for problem in found.problems)
        super().__init__(told, hint="Nothing was changed; mend this and try again.")
        self.misfits = [Misfit(place_of(one.key), one.message) for one in found.problems]


def given(body: Mapping[str, Any], city: City) -> Configuration:
    """The checked configuration. Raises ConfigurationInvalid.

    Whether the directory exists is checked only when a run starts, because a disk may be unmounted now.
    """
    found = Findings()
    name = body.get("name")
    said = f"configuration `{name}`" if isinstance(name, str) and name else "configuration"
    tree = {str(key): value for key, value in body.items() if value is not None}
    table = read(Configuration, tree, Place(Origin("store", said)), found)
    check_configuration(table, city, found)
    path = table.get("path", "")
    if path and not path.startswith("/") and not found.about(table.at("path")):
        found.wrong(table.at("path"), f"`{path}` is relative; write the whole path, starting with `/`")
    made = build(table, found)
    if found.problems or not isinstance(made, Configuration):
        raise ConfigurationInvalid(found)
    return made


def changed(current: Configuration, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The body to pass to `given`: `current` with the named keys changed; a key set to null is removed.

    A new rig replaces a path and a new path a rig. A masked `env` value in `changes` leaves that variable unchanged.
    """
    body: dict[str, Any] = body_of(current) | {"name": current.name}
    place = {key for key in _PLACES if changes.get(key)}
    if len(place) == 1:
        body |= dict.fromkeys(_PLACES - place)
    env = changes.get("env")
    if isinstance(env, Mapping):
        merged = {**current.env, **{key: value for key, value in env.items() if MASK not in str(value)}}
        changes = {**changes, "env": {key: value for key, value in merged.items() if value is not None}}
    return {**body, **changes}


def body_of(one: Configuration) -> dict[str, Any]:
    """What is stored of a configuration besides its name."""
    body = asdict(one) | {"env": dict(one.env)}
    del body["name"]
    return body


def of_body(name: str, body: Mapping[str, Any]) -> Configuration:
    """A configuration from its stored body; unknown keys, written by a newer version, are ignored."""
    return Configuration(name=name, **{key: value for key, value in body.items() if key in _KEYS})


def shown(one: Configuration) -> dict[str, Any]:
    """For display: unset keys are null, values that look secret are masked."""
    body = {key: value or None for key, value in body_of(one).items()}
    return {"name": one.name} | body | {"env": covered("env", dict(one.env))}
