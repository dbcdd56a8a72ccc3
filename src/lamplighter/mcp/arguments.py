"""Reads a tool's arguments: reports all problems at once and ignores unknown arguments."""

from collections.abc import Mapping
from typing import Any

from lamplighter.kit.errors import UsageError


class Arguments:
    """Values are read by name; `check` then raises one error with all problems."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._problems: list[str] = []

    def text(self, name: str, *, required: bool = False) -> str | None:
        value = self._given.get(name)
        if value is None or (required and value == ""):
            if required:
                self._problems.append(f"`{name}` is missing")
            return None
        if not isinstance(value, str):
            self._problems.append(f"`{name}` must be text")
            return None
        return value

    def need(self, name: str) -> str:
        return self.text(name, required=True) or ""

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; a single text counts as a list of one."""
        value = self._given.get(name)
        if value is None:
            return ()
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            self._problems.append(f"`{name}` must be a list of texts")
            return ()
        return tuple(found)

    def pairs(self, name: str) -> dict[str, str]:
        value = self._given.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            self._problems.append(f"`{name}` must be an object of texts")
            return {}
        return value

    def limit(self, *, default: int = 50, most: int = 500) -> int:
        value = self._given.get("limit", default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            self._problems.append(f"`limit` must be a whole number from 1 to {most}")
            return default
        return value

    def any(self, name: str) -> Any:
        return self._given.get(name)

    def check(self) -> None:
        """Raises UsageError if any value that was read is wrong."""
        if self._problems:
            raise UsageError(f"Nothing was done: {'; '.join(self._problems)}.", hint="Mend the arguments, call again.")
