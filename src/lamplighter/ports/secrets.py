"""What encrypts secrets, and what opens them for a program that is started."""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from lamplighter.domain.secrets import Sealed, SecretUnknown, references


class SecretBox(Protocol):
    """Encrypts and opens values under the keys of this city. Called on a thread, because it reads files."""

    def seal(self, name: str, value: str, in_use: Collection[str]) -> Sealed:
        """Encrypt under the current key. Raises KeyUnusable, Unavailable.

        It is made when first needed: where none is here, and `in_use`, the ids of those that sealed secrets, is empty.
        """
        ...

    def open(self, name: str, sealed: Sealed) -> str:
        """Raises SecretLocked without its key, and for a row that is not this city's and of this name."""
        ...

    def renew_key(self, in_use: Collection[str]) -> str:
        """Make another key the current one; older ones stay. Returns its id.

        Raises KeyUnusable, also where none of the keys `in_use` is here; Unavailable.
        """
        ...


class SecretSource(Protocol):
    async def opened(self, env: Mapping[str, str]) -> dict[str, str]:
        """These variables with the values of the secrets they refer to. Raises SecretUnknown, SecretLocked."""
        ...

    async def mask(self) -> Callable[[str], str]:
        """A function that masks the values of all secrets in a text."""
        ...


class NoSecrets:
    """The source of a process that keeps none."""

    async def opened(self, env: Mapping[str, str]) -> dict[str, str]:
        for name in references(env).values():
            raise SecretUnknown(name)
        return dict(env)

    async def mask(self) -> Callable[[str], str]:
        return str
