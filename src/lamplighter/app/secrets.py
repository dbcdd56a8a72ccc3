"""The keys of a city's secrets, from its environment and its `.gc`."""

from lamplighter.adapters.files.secret_box import KeyedBox
from lamplighter.app.wiring import OpenCity


def box_of(city: OpenCity) -> KeyedBox:
    return KeyedBox(city.paths.runtime, city.settings.env, city.paths.city_id())
