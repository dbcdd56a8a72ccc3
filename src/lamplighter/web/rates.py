"""How many requests, or bytes, each token may send: generous, so that only a client that runs wild meets the limit."""

from collections.abc import Callable
from dataclasses import dataclass

from lamplighter.web.errors import TooMany

MOST = 6000
WITHIN_S = 60
_FORGET_ABOVE = 10_000
"""Names are forgotten when there are more than so many; runs come and go."""


@dataclass
class _Window:
    began: float
    count: int = 0


class Rates:
    """Counts the requests, or bytes, of each actor in windows of a minute."""

    def __init__(
        self, clock: Callable[[], float], *, most: int = MOST, within: int = WITHIN_S, what: str = "requests"
    ) -> None:
        self._clock = clock
        self.what = what
        self._most, self._within = most, within
        self._windows: dict[str, _Window] = {}

    def count(self, who: str, much: int = 1) -> None:
        """Raises TooMany."""
        window = self._window(who)
        if window.count + much > self._most:
            raise TooMany(self._most, self._within, self.what)
        window.count += much

    def headers(self, who: str, *, refused: bool) -> dict[str, str]:
        """What is allowed, what is left of it, and for whom was refused when to ask again."""
        window = self._window(who)
        left = self._most - window.count
        ends = max(1, round(window.began + self._within - self._clock()))
        told = {
            "RateLimit-Policy": f'"token";q={self._most};w={self._within}',
            "RateLimit": f'"token";r={left};t={ends}',
        }
        return told if not refused else told | {"Retry-After": str(ends)}

    def _window(self, who: str) -> _Window:
        now = self._clock()
        found = self._windows.get(who)
        if found is None or now - found.began >= self._within:
            if len(self._windows) > _FORGET_ABOVE:
                self._windows = {name: one for name, one in self._windows.items() if now - one.began < self._within}
            found = self._windows[who] = _Window(now)
        return found
