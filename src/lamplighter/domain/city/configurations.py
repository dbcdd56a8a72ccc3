"""A configuration as people give it: the keys of a `[[configurations]]` table, under the same rules and a few more."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from lamplighter.domain.city.check import check_configuration
from lamplighter.domain.city.decode import build, read
from lamplighter.domain.city.model import City, Configuration
from lamplighter.domain.city.show import covered
from lamplighter.domain.city.tree import Findings, Origin, Place
from lamplighter.kit.errors import UsageError
from lamplighter.kit.masking import MASK

_KEYS = frozenset(one.name for one in fields(Configuration)) - {"name"}
_PLACES = frozenset({"rig", "path"})


class ConfigurationInvalid(UsageError):
    """Every problem at once, each with its key."""

    def __init__(self, found: Findings) -> None:
        told = "\n".join(str(problem) for problem in found.problems)
        super().__init__(told, hint="Nothing was changed; mend this and try again.")


def given(body: Mapping[str, Any], city: City) -> Configuration:
    """Raises ConfigurationInvalid. Whether a directory exists is asked when a run starts: a disk may be away."""
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
    """What `given` is asked next: only what is named changes, and what is named as null goes.

    A new rig takes the place of a path, and the other way round. A value shown masked stays what it was.
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
    """What is kept of it, beside its name."""
    body = asdict(one) | {"env": dict(one.env)}
    del body["name"]
    return body


def of_body(name: str, body: Mapping[str, Any]) -> Configuration:
    """As it was kept; keys of a newer program are passed over."""
    return Configuration(name=name, **{key: value for key, value in body.items() if key in _KEYS})


def shown(one: Configuration) -> dict[str, Any]:
    """For people and programs: what is unset is null, and what looks secret is covered."""
    body = {key: value or None for key, value in body_of(one).items()}
    return {"name": one.name} | body | {"env": covered("env", dict(one.env))}
