"""A mail server on this machine: a real SMTP server that keeps what it is sent, and refuses what it is told to."""

import asyncio
import datetime as dt
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass
class Mailbox:
    """`refused` are addresses that it does not know; `said` is what it answers to a mail, `hangs_up` says nothing."""

    host: str = "localhost"
    port: int = 0
    user: str = ""
    password: str = field(default="", repr=False)
    refused: tuple[str, ...] = ()
    said: str = "250 taken"
    hangs_up: bool = False
    mails: list[EmailMessage] = field(default_factory=list)
    to: list[list[str]] = field(default_factory=list)
    secure: list[bool] = field(default_factory=list)


@contextmanager
def taking_mail(
    *, tls: ssl.SSLContext | None = None, starttls: ssl.SSLContext | None = None, login: tuple[str, str] | None = None
) -> Iterator[Mailbox]:
    box = Mailbox()

    class Handler:
        async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:  # noqa: N802
            if address in box.refused:
                return "550 5.1.1 nobody of that name"
            envelope.rcpt_tos.append(address)
            return "250 OK"

        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
            parsed = BytesParser(policy=default).parsebytes(envelope.content)
            assert isinstance(parsed, EmailMessage)
            box.mails.append(parsed)
            box.to.append(list(envelope.rcpt_tos))
            box.secure.append(session.ssl is not None or tls is not None)
            if box.hangs_up:
                server.transport.abort()
            return box.said

    def known(_server: Any, _session: Any, _envelope: Any, _how: str, given: Any) -> Any:
        right = (given.login.decode(), given.password.decode()) == login
        return AuthResult(success=right, handled=False)

    closed = login is not None and tls is None  # a server does not see that a connection was secure from the first byte

    def protocol() -> Any:
        return SMTP(
            Handler(), hostname="localhost", tls_context=starttls, require_starttls=starttls is not None,
            authenticator=known if login else None, auth_required=closed, auth_require_tls=closed,
            loop=asyncio.get_running_loop(),
        )  # fmt: skip

    ready, ends = threading.Event(), []

    async def serve() -> None:
        over = asyncio.Event()
        ends.append((asyncio.get_running_loop(), over))
        server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, ssl=tls)
        box.port = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    ready.wait(30)
    try:
        yield box
    finally:
        [(loop, over)] = ends
        loop.call_soon_threadsafe(over.set)
        thread.join(30)


def certificate(directory: Path) -> Path:
    """A file with a key and a certificate for localhost, which is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = directory / "localhost.pem"
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


def server_side(file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
