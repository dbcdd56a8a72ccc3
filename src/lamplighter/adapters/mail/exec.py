"""The mail provider `exec:<script>`: a script keeps the mail, with one call per operation, JSON in and out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lamplighter.adapters.processes.program import Answer, Program, script_path
from lamplighter.domain.mail import Message
from lamplighter.kit import json_text
from lamplighter.kit.clock import from_rfc3339
from lamplighter.kit.errors import LampError
from lamplighter.ports.mail import AlreadyArchived, MessageUnknown

UNKNOWN_OPERATION = 2
DOCUMENT = "docs/reference/mail.md"


class MailScriptFailed(LampError):
    def __init__(self, call: str, why: str) -> None:
        super().__init__(f"`{call}` {why}", hint=f"Run it by hand to see why; {DOCUMENT} says what it gets and gives.")


def mail_of_script(script: str, city: Path, env: Mapping[str, str]) -> "ExecMail":
    path = script_path(script, city, env.get("PATH"))
    return ExecMail(Program(path, city, env, setting="[mail] provider"))


@dataclass
class ExecMail:
    """Exit code 0 is success; 2 an operation the script does not know; any other an error, explained on stderr."""

    program: Program
    _running: bool = field(default=False, init=False)

    def send(self, *, sender: str, to: str, body: str) -> Message:
        args = ["send", to]
        return self._message(args, self._asked(args, {"from": sender, "body": body}), sent=(sender, to, body))

    def inbox(self, recipient: str) -> Sequence[Message]:
        return self._list(["inbox", recipient])

    def check(self, recipient: str) -> Sequence[Message]:
        """Falls back to `inbox` for a script that does not know `check`: neither changes anything."""
        answer = self._call(["check", recipient])
        if answer.exit_code == UNKNOWN_OPERATION:
            return self.inbox(recipient)
        return self._list(["check", recipient], self._succeeded(["check", recipient], answer))

    def read(self, message: str) -> Message:
        return self._message(["read", message], self._asked(["read", message]))

    def archive(self, message: str) -> None:
        self._asked(["archive", message])

    def _asked(self, args: Sequence[str], body: Any = None) -> Answer:
        answer = self._call(args, b"" if body is None else json.dumps(body, separators=(",", ":")).encode())
        if answer.exit_code == UNKNOWN_OPERATION:
            raise MailScriptFailed(self._told(args), f"answered that it does not know `{args[0]}` (exit code 2).")
        return self._succeeded(args, answer)

    def _call(self, args: Sequence[str], stdin: bytes = b"") -> Answer:
        """Calls `ensure-running` once before the first operation; the script need not know it."""
        if not self._running:
            answer = self.program.call(["ensure-running"])
            if answer.exit_code != UNKNOWN_OPERATION:
                self._succeeded(["ensure-running"], answer)
            self._running = True
        return self.program.call(args, stdin)

    def _succeeded(self, args: Sequence[str], answer: Answer) -> Answer:
        if answer.exit_code == 0:
            return answer
        said = answer.complaint.lower()
        if args[0] in {"read", "archive"} and "not found" in said:
            raise MessageUnknown(args[1])
        if args[0] == "archive" and "already archived" in said:
            raise AlreadyArchived(args[1])
        told = answer.complaint or "nothing on standard error"
        raise MailScriptFailed(self._told(args), f"failed with exit code {answer.exit_code}: {told}")

    def _list(self, args: Sequence[str], answer: Answer | None = None) -> list[Message]:
        tree = self._parsed(args, answer or self._asked(args))
        if tree is None:
            return []
        if not isinstance(tree, list):
            raise MailScriptFailed(self._told(args), "did not answer with a list of messages.")
        return [self._read(args, row) for row in tree]

    def _message(self, args: Sequence[str], answer: Answer, sent: tuple[str, str, str] | None = None) -> Message:
        """The answer to `send` need only hold the id; sender, recipient and body default to what was `sent`."""
        tree = self._parsed(args, answer)
        if sent is not None and isinstance(tree, dict):
            tree = dict(zip(("from", "to", "body"), sent, strict=True)) | tree
        return self._read(args, tree)

    def _read(self, args: Sequence[str], tree: Any) -> Message:
        texts = [tree.get(key) for key in ("id", "from", "to", "body")] if isinstance(tree, dict) else [None]
        given = [text for text in texts if isinstance(text, str)]
        if len(given) < len(texts) or not given[0]:
            raise MailScriptFailed(self._told(args), "gave what is no message: id, from, to and body must be texts.")
        name, sender, to, body = given
        at = tree.get("created_at")
        try:
            return Message(name, sender, to, body, from_rfc3339(at) if at else None)
        except (ValueError, TypeError, AttributeError) as error:
            raise MailScriptFailed(self._told(args), f"gave a message with a bad created_at: {at!r}.") from error

    def _parsed(self, args: Sequence[str], answer: Answer) -> Any:
        try:
            return json_text.parse(answer.output)
        except ValueError as error:
            start = answer.output[:80].decode(errors="replace").strip() or "nothing"
            raise MailScriptFailed(self._told(args), f"did not answer with JSON but with {start!r}.") from error

    def _told(self, args: Sequence[str]) -> str:
        return " ".join([self.program.path, *args[:2]])
