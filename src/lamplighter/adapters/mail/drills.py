"""Mail providers for drills: `fake` accepts every message and keeps none, `fail` refuses every call."""

from collections.abc import Sequence
from dataclasses import dataclass

from lamplighter.domain.mail import Message
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.ports.mail import MessageUnknown


@dataclass(frozen=True)
class FakeMail:
    clock: Clock
    ids: IdSource

    def send(self, *, sender: str, to: str, body: str) -> Message:
        return Message(self.ids.make("msg"), sender, to, body, self.clock.now())

    def inbox(self, recipient: str) -> Sequence[Message]:  # noqa: ARG002  every inbox is empty
        return ()

    def check(self, recipient: str) -> Sequence[Message]:  # noqa: ARG002  every inbox is empty
        return ()

    def read(self, message: str) -> Message:
        raise MessageUnknown(message)

    def archive(self, message: str) -> None:
        raise MessageUnknown(message)


class FailMail:
    def send(self, *, sender: str, to: str, body: str) -> Message:  # noqa: ARG002  every message is refused
        raise _refused()

    def inbox(self, recipient: str) -> Sequence[Message]:  # noqa: ARG002
        raise _refused()

    def check(self, recipient: str) -> Sequence[Message]:  # noqa: ARG002
        raise _refused()

    def read(self, message: str) -> Message:  # noqa: ARG002
        raise _refused()

    def archive(self, message: str) -> None:  # noqa: ARG002
        raise _refused()


def _refused() -> Unavailable:
    return Unavailable("Mail is out of order.", hint='`[mail] provider = "fail"` in city.toml asks for that.')
