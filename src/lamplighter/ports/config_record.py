"""The record of the configuration in force, kept beside the city's files for commands and for the next start."""

from typing import Protocol

from lamplighter.domain.city.loaded import LoadedCity


class ConfigRecord(Protocol):
    def accepted(self, loaded: LoadedCity) -> None:
        """Keep the texts of this configuration, which is now in force."""
        ...

    def rejected(self, reason: str, *, readable: bool) -> None:
        """Record that the files are not in force; `readable` if they are valid but a running city cannot apply them."""
        ...
