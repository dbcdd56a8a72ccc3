"""Reads one setting without loading the whole configuration, so that short commands stay fast."""

from collections.abc import Sequence

from lamplighter.app.wiring import OpenCity
from lamplighter.kit import toml_text


def text_setting(city: OpenCity, section: str, key: str, *, default: str, names: Sequence[str] = ()) -> str | None:
    """`names` are environment variables that override the file, in order of precedence.

    None if city.toml alone does not decide it (includes, other keys in the section, a rejected configuration) or cannot
    be parsed: the caller then loads the whole configuration, which reports what is wrong.
    """
    for name in names:
        if city.settings.env.get(name):
            return city.settings.env[name]
    if city.is_questioned:
        return None
    try:
        tree = toml_text.parse(city.paths.config.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return None
    table = tree.get(section, {})
    if "include" in tree or not isinstance(table, dict) or table.keys() - {key}:
        return None
    found = table.get(key, default)
    return found if isinstance(found, str) else None
