"""Notices by e-mail: SMTP in a thread, within a time limit."""

import asyncio
import contextlib
import smtplib
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any

from lamplighter.adapters.notices import words
from lamplighter.domain.city.sections import Destination
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.limits import TimeLimit
from lamplighter.ports.messenger import Message, NotTaken

SECONDS = 30.0
PORTS = {"starttls": 587, "tls": 465, "none": 25}
_SHOWN = 200


@dataclass(frozen=True)
class Login:
    user: str = ""
    password: str = field(default="", repr=False)


def mail_of(destination: Destination, message: Message) -> EmailMessage:
    """The mail of a notice. Its Message-ID is the same at every try; mails about one thing refer to one thread."""
    mail = EmailMessage(policy=SMTP)
    domain = destination.sender.rpartition("@")[2]
    mail["Message-ID"] = f"<{message.id}@{domain}>"
    about = str(message.body.get("item") or message.body.get("run") or "")
    if about:
        mail["References"] = f"<{about}@{domain}>"
    mail["From"] = destination.sender
    mail["To"] = ", ".join(destination.recipients)
    mail["Date"] = format_datetime(message.at)
    mail["Subject"] = words.title(message)
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(words.text(message))
    return mail


async def send(destination: Destination, message: Message, login: Login) -> Mapping[str, Any]:
    """Raises NotTaken if the server refused it or any address, Unavailable if its answer to the mail was lost."""
    posting = _Posting(destination, mail_of(destination, message), login)
    work = asyncio.ensure_future(asyncio.to_thread(posting.send))
    try:
        async with TimeLimit(SECONDS):
            return await asyncio.shield(work)
    except TimeoutError:
        posting.cut()
        raise posting.doubt(f"took longer than {SECONDS:g} s") from None
    except asyncio.CancelledError:
        posting.cut()
        raise
    finally:
        work.add_done_callback(lambda done: done.cancelled() or done.exception())  # one that came too late is known


@dataclass
class _Posting:
    destination: Destination
    mail: EmailMessage
    login: Login
    server: smtplib.SMTP | None = None
    handed_over: bool = False
    """Whether the mail is on its way: from here on a lost answer leaves a doubt."""

    def send(self) -> dict[str, Any]:
        to = self.destination
        try:
            self.server = server = self._connected()
            self._signed_in(server)
            self._addressed(server)
            self.handed_over = True
            code, said = server.data(self.mail.as_bytes())
        except smtplib.SMTPServerDisconnected as error:
            raise self.doubt(f"closed the connection: {error}") from error
        except smtplib.SMTPResponseException as error:
            raise self._refused(error.smtp_code, error.smtp_error) from error
        except smtplib.SMTPException as error:
            told = f"{to.name}: {to.host} cannot be used: {str(error).rstrip('. ')}."
            raise NotTaken(told, hint="Look at its `security`.") from error
        except ssl.SSLError as error:
            raise NotTaken(
                f"{to.name}: no secure connection to {to.host}: {error}.", hint="Look at its certificate."
            ) from error
        except OSError as error:
            raise self.doubt(f"cannot be reached: {error}") from error
        else:
            if code != 250:
                raise self._refused(code, said)
            with contextlib.suppress(smtplib.SMTPException, OSError):
                server.quit()
            return {"status": code, "said": _shown(said)}
        finally:
            if self.server is not None:
                self.server.close()

    def _connected(self) -> smtplib.SMTP:
        to = self.destination
        port = to.port or PORTS[to.security]
        if to.security == "tls":
            return smtplib.SMTP_SSL(to.host, port, timeout=SECONDS, context=ssl.create_default_context())
        server = smtplib.SMTP(to.host, port, timeout=SECONDS)
        self.server = server
        if to.security == "starttls":
            server.starttls(context=ssl.create_default_context())
        return server

    def _signed_in(self, server: smtplib.SMTP) -> None:
        if not self.login.user:
            return
        try:
            server.login(self.login.user, self.login.password)
        except smtplib.SMTPAuthenticationError as error:  # what a server says here may repeat what was sent
            told = f"{self.destination.name}: {self.destination.host} does not let `user` sign in ({error.smtp_code})."
            raise NotTaken(told, hint="Mend the secret: `lamp secret set`.") from None
        except UnicodeError:  # its text would show a part of the password
            told = f"{self.destination.name}: `user` or `password` has characters beyond ASCII, which SMTP cannot take."
            raise NotTaken(told, hint="Use another password: `lamp secret set`.") from None

    def _addressed(self, server: smtplib.SMTP) -> None:
        """All addresses or none: a mail that some get now would come to them again with the next try."""
        server.ehlo_or_helo_if_needed()
        code, said = server.mail(self.destination.sender)
        if code >= 300:
            raise self._refused(code, said)
        for address in self.destination.recipients:
            code, said = server.rcpt(address)
            if code >= 300:
                raise self._refused(code, said, f" {address}")

    def _refused(self, code: int, said: bytes | str, what: str = "") -> NotTaken:
        told = f"{self.destination.name}: {self.destination.host} refused{what or ' it'}: {code} {_shown(said)}"
        return NotTaken(told.rstrip(". ") + ".", hint="Look at the addresses and at the server.")

    def doubt(self, why: str) -> NotTaken | Unavailable:
        told = f"{self.destination.name}: {self.destination.host} {why}".rstrip(". ") + "."
        if self.handed_over:
            return Unavailable(told, hint="It is not known whether the mail arrived.")
        return NotTaken(told, hint="Look at `host`, `port` and `security`.")

    def cut(self) -> None:
        """End the connection under the thread that uses it: it must not wait for a server that hangs."""
        sock = None if self.server is None else self.server.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def _shown(said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return " ".join(text.split())[:_SHOWN]
