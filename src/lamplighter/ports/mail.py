"""The store of mail: the city's own beads, or a script."""

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
    """Calls block: a command makes one and exits."""

    def send(self, *, sender: str, to: str, body: str) -> Message: ...

    def inbox(self, recipient: str) -> Sequence[Message]:
        """Unread messages, oldest first."""
        ...

    def check(self, recipient: str) -> Sequence[Message]:
        """The same as `inbox`, for a caller that must change nothing."""
        ...

    def read(self, message: str) -> Message:
        """Return the message and mark it as read. Raises MessageUnknown."""
        ...

    def archive(self, message: str) -> None:
        """Take an unread message out of the inbox. Raises MessageUnknown, AlreadyArchived."""
        ...
