"""Whether a controller runs the city: asked first, because what is loaded next depends on it."""

from lamplighter.adapters.files.city import city_at, find_city
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app.settings import Settings


def is_running(settings: Settings) -> bool:
    paths = city_at(settings.city) if settings.city is not None else find_city(settings.cwd)
    return controller_pid(paths.lock) is not None
