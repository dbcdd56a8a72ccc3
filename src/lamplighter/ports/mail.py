"""Where mail is kept: in the city's own beads, or with a script."""

from collections.abc import Sequence
from typing import Protocol

from lamplighter.domain.mail import Message
from lamplighter.kit.errors import Conflict, NotFound


class MessageUnknown(NotFound):
    def __init__(self, message: str) -> None:
        super().__init__(f"There is no message {message}.", hint="`lamp mail inbox` shows those there are.")


class AlreadyArchived(Conflict):
    def __init__(self, message: str) -> None:
        super().__init__(f"Message {message} was read or archived already.", hint="Nothing is left to do.")


class Mail(Protocol):
    """Plain calls: a command makes one and leaves."""

    def send(self, *, sender: str, to: str, body: str) -> Message: ...

    def inbox(self, recipient: str) -> Sequence[Message]:
        """Unread, oldest first."""
        ...

    def check(self, recipient: str) -> Sequence[Message]:
        """The same, for a glance that must change nothing."""
        ...

    def read(self, message: str) -> Message:
        """From now on it counts as read. Raises MessageUnknown."""
        ...

    def archive(self, message: str) -> None:
        """Done with, read or not. Raises MessageUnknown, AlreadyArchived."""
        ...
