"""Settings from the environment: `LAMP_<SECTION>_<KEY>` for every plain key, and the variables of Gas City."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from lamplighter.domain.city.decode import is_bad, read_value
from lamplighter.domain.city.keys import Key, Shape, keys_of
from lamplighter.domain.city.limits import no_password
from lamplighter.domain.city.model import City
from lamplighter.domain.city.tree import Findings, Leaf, Origin, Place, Table
from lamplighter.kit.kept_back import CONNECTION
from lamplighter.kit.nearest import nearest

OURS = "LAMP_"
ENVIRONMENT = Origin("environment", "environment")
_PLAIN = frozenset({Shape.TEXT, Shape.WHOLE, Shape.NUMBER, Shape.SWITCH, Shape.DURATION, Shape.TEXTS})
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")
_GAS_CITY = {
    "GC_BEADS": ("beads", "provider"),
    "GC_SESSION": ("session", "provider"),
    "GC_MAIL": ("mail", "provider"),
    "GC_EVENTS": ("events", "provider"),
    "GC_SUSPENDED": ("workspace", "suspended"),
    "GC_DOLT_HOST": ("dolt", "host"),
    "GC_DOLT_PORT": ("dolt", "port"),
    **{f"GC_K8S_{name.upper()}": ("session", "k8s", name) for name in (
        "namespace", "image", "context", "cpu_request", "mem_request", "cpu_limit", "mem_limit", "prebaked",
    )},
}  # fmt: skip
# Known names that set no key of the file: read elsewhere, or set by Lamplighter for sessions, runs and commands.
_OWN = frozenset(
    f"{OURS}{name}" for name in (
        "ACTOR", "AGENT", "API_URL", "AUTOMATION", "CHILD_ID", "CITY", "CITY_ID", "COMPLETE", "COMPLETION_ID",
        "CONFIG_FIELDS", "CONTEXT", "CRASH_AT", "CURSOR", "DIR", "HEADLESS", "MCP_TOKEN", "MESSAGE_FILE",
        "NOTES_FILE", "NOTES_VERSION", "NOTICE_ABOUT", "NOTICE_FIX", "NOTICE_ID", "NOTICE_LINK",
        "NOTICE_TEXT", "NOTICE_WHAT",
        "POOL", "PORTS", "PORT_BASE", "PROCESS_NAMES", "RIG", "RIG_DIR", "ROUND", "RUN_ID", "RUN_TOKEN_FILE",
        "SECRET_KEY", "SELECTOR_KEY", "SELECTOR_MODEL", "SELECTOR_PROTOCOL", "SELECTOR_URL", "SESSION", "SESSION_ID",
        "SLACK_API_URL", "STARTED_AT", "STORE_WAIT", "TOKEN", "TOKEN_FILE", "TRIGGER_FILE", "URL",
    )
)  # fmt: skip


@lru_cache
def variables() -> Mapping[str, tuple[str, ...]]:
    """Every variable that sets a key, with that key's path; `LAMP_` names come last, so they win over `GC_` names."""
    return {**_GAS_CITY, **dict(_named(City, ()))}


def overridden(city: Table, env: Mapping[str, str], found: Findings) -> Table:
    """The city's table with the values the environment sets; empty variables set nothing, unknown ones give a note."""
    for name in unknown_names(env):
        found.note(Place(ENVIRONMENT, (name,)), f"is not a setting and has no effect{_near(name)}")
    for variable, path in variables().items():
        given = env.get(variable, "")
        if given != "":
            city = _set(city, path, given, Place(ENVIRONMENT, (variable,)), found)
    return city


def known_names() -> frozenset[str]:
    return _OWN | {CONNECTION} | {name for name in variables() if name.startswith(OURS)}


def unknown_names(env: Mapping[str, str]) -> list[str]:
    """Variables that are set, begin with `LAMP_` and are not known: most likely typing errors."""
    found = (name for name in env.keys() - known_names() if name.startswith(OURS) and env[name])
    return sorted(name for name in found if not name.startswith(CONNECTION))  # the token of some connection


def _near(name: str) -> str:
    """The nearest known name; compared without the common prefix, which would make any two names look similar."""
    near = nearest(name.removeprefix(OURS), [known.removeprefix(OURS) for known in known_names()])
    return f"; did you mean `{OURS}{near}`?" if near else ""


def _named(section: type, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key in keys_of(section).values():
        here = (*path, key.name)
        if key.shape is Shape.TABLE and key.holds is not None and key.name != "patches":
            yield from _named(key.holds, here)
        elif path and key.shape in _PLAIN:
            yield OURS + "_".join(here).upper(), here


def _set(table: Table, path: tuple[str, ...], given: str, place: Place, found: Findings) -> Table:
    key = keys_of(table.section)[path[0]]
    if len(path) > 1:
        assert key.holds is not None  # noqa: S101  paths come from the model itself
        inner = table.get(path[0]) or Table(key.holds, place)
        return table.having({path[0]: Leaf(_set(inner, path[1:], given, place, found), table.at(path[0]))})
    value = _read(key, given, place, found)
    return table if is_bad(value) else table.having({path[0]: Leaf(value, place)})


def _read(key: Key, given: str, place: Place, found: Findings) -> object:
    # A URL in the environment may contain a password; a URL in a file must not.
    checked = replace(key, check=None) if key.check is no_password else key
    return read_value(checked, _as_written(key.shape, given), place, found)


def _as_written(shape: Shape, given: str) -> object:
    """The value as a file would write it; text that does not fit is passed on, and decoding it reports the problem."""
    match shape:
        case Shape.WHOLE:
            return int(given) if given.strip().lstrip("+-").isdecimal() and len(given) < 20 else given
        case Shape.NUMBER:
            return float(given) if _NUMBER.fullmatch(given.strip()) else given
        case Shape.SWITCH:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}.get(
                given.strip().lower(), given
            )
        case Shape.TEXTS:
            return [part.strip() for part in given.split(",") if part.strip()]
        case _:
            return given
