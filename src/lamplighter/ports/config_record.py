"""What is on record beside a city's files about the configuration in force, for commands and for the next start."""

from typing import Protocol

from lamplighter.domain.city.loaded import LoadedCity


class ConfigRecord(Protocol):
    def accepted(self, loaded: LoadedCity) -> None:
        """Keep its texts: it is the one in force."""
        ...

    def rejected(self, reason: str, *, readable: bool) -> None:
        """The files are not in force; `readable` when they are right but cannot be taken while the city runs."""
        ...
