"""How browsers sign in to a city's console, as this process has it."""

from lamplighter.adapters.files.browser_sessions import BrowserSessions
from lamplighter.adapters.files.secrets import owner_token
from lamplighter.app.wiring import OpenCity


def browser_sessions(city: OpenCity) -> BrowserSessions:
    return BrowserSessions(city.paths.runtime, city.clock, owner_token(city.paths.runtime))
