"""One setting of a city without reading the whole of its configuration, so that short commands stay short."""

from collections.abc import Sequence

from lamplighter.app.wiring import OpenCity
from lamplighter.kit import toml_text


def text_setting(city: OpenCity, section: str, key: str, *, default: str, names: Sequence[str] = ()) -> str | None:
    """`names` are variables that win over the file, the first one first.

    None when more than city.toml must be read to say it, or something in it is wrong: then the whole is read, and told.
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
