"""Destinations of every kind against real servers on this machine: a mail server, one shaped like ntfy, receivers."""

import base64
import builtins
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from lamplighter.adapters.notices import posting
from lamplighter.adapters.notices.messenger import SENDERS, CityMessenger
from lamplighter.domain.city.destination_kinds import DESTINATION_KINDS, IN_SLACK
from lamplighter.domain.city.sections import Destination
from lamplighter.domain.inbox.notices import link_of
from lamplighter.domain.secrets import SecretUnknown, masking
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import Unavailable
from lamplighter.ports.messenger import Gone, Message, NotTaken
from lamplighter.testing.mail_server import certificate, server_side, taking_mail
from lamplighter.testing.webhooks import Receiver, receiving

NEW = f"whsec_{base64.b64encode(b'the new secret of this receiver').decode()}"
OLD = f"whsec_{base64.b64encode(b'the old secret of this receiver').decode()}"
VALUES = {"new": NEW, "old": OLD, "mail": "correct horse battery", "phone": "tk_0123456789", "user": "lamp"}


PASSWORD, TOKEN, LOST = {"password": "secret:mail"}, {"token": "secret:phone"}, {"token": "secret:lost"}


class Kept:
    """Secrets as a city keeps them."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    async def opened(self, env: Mapping[str, str]) -> dict[str, str]:
        found = dict(env)
        for key, value in env.items():
            name = value.removeprefix("secret:")
            if name != value and name not in self._values:
                raise SecretUnknown(name)
            found[key] = self._values.get(name, value) if name != value else value
        return found

    async def mask(self) -> Callable[[str], str]:
        return masking(self._values.values())


def test_every_kind_that_can_be_declared_is_sent_somewhere_and_has_a_target() -> None:
    assert set(SENDERS) == set(DESTINATION_KINDS) - IN_SLACK
    for kind, one in DESTINATION_KINDS.items():
        values = {key: ("x",) if key in {"recipients", "signing"} else "x" for key in one.needs}
        assert "x" in one.target(Destination(name="team", kind=kind, **values))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def messenger(root: Path, values: Mapping[str, str] = VALUES) -> CityMessenger:
    return CityMessenger(root, SystemClock(), dict, {}, Kept(values))


def message(what: str = "opened", **body: Any) -> Message:
    told = {"sentence": "nightly failed (exit 1): no oil.", "fix": "lamp run retry run_1", "item": "inb_1"} | body
    link = link_of("https://lamp.example.org/", told)
    return Message("ntc_1", what, datetime(2026, 11, 18, 4, 0, tzinfo=UTC), "town", told, link)


# ── e-mail ────────────────────────────────────────────────────────────────────────────────────────────────────────


def mail(port: int, **keys: Any) -> Destination:
    known: dict[str, Any] = {
        "host": "localhost", "port": port, "security": "none", "sender": "lamp@example.org",
        "recipients": ("ada@example.org", "bob@example.org"),
    }  # fmt: skip
    return Destination(name="post", kind="email", **known | keys)


async def test_a_mail_says_what_happened_how_to_mend_it_and_where_to_look(tmp_path: Path) -> None:
    with taking_mail() as box:
        sender = messenger(tmp_path)
        first = await sender.send(mail(box.port), message(sentence="käse\r\nBcc: eve@example.org failed."))
        await sender.send(mail(box.port), message())
    assert first["status"] == 250
    got, again = box.mails
    assert got["Subject"] == "[town] käse Bcc: eve@example.org failed."
    assert (got["Bcc"], got["To"], got["From"]) == (None, "ada@example.org, bob@example.org", "lamp@example.org")
    assert box.to[0] == ["ada@example.org", "bob@example.org"]
    assert got["Message-ID"] == again["Message-ID"] == "<ntc_1@example.org>"
    assert got["References"] == "<inb_1@example.org>"
    lines = again.get_content().splitlines()
    assert lines[0] == "nightly failed (exit 1): no oil."
    assert "To mend it: lamp run retry run_1" in lines
    assert lines[-1] == "https://lamp.example.org/inbox/inb_1"


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_mail_goes_encrypted_and_signed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, security: str
) -> None:
    file = certificate(tmp_path)
    with taking_mail(**{security: server_side(file)}, login=("lamp", VALUES["mail"])) as box:
        to = mail(box.port, security=security, user="secret:user", **PASSWORD)
        with pytest.raises(NotTaken, match=r"no secure connection|certificate"):
            await messenger(tmp_path).send(to, message())
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        await messenger(tmp_path).send(to, message())
        with pytest.raises(NotTaken, match="does not let `user` sign in") as told:
            await messenger(tmp_path, VALUES | {"mail": "hunter2hunter2"}).send(to, message())
    assert box.secure == [True]
    assert "hunter2" not in str(told.value)


async def test_a_password_that_smtp_cannot_take_is_told_without_a_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with taking_mail(starttls=server_side(file), login=("lamp", "x")) as box:
        to = mail(box.port, security="starttls", user="lamp", **PASSWORD)
        with pytest.raises(NotTaken, match="characters beyond ASCII") as told:
            await messenger(tmp_path, {"mail": "ünschlüssig"}).send(to, message())
    assert "xfc" not in str(told.value)


async def test_a_server_without_starttls_gets_neither_password_nor_mail(tmp_path: Path) -> None:
    with taking_mail() as box:
        to = mail(box.port, security="starttls", user="lamp", **PASSWORD)
        with pytest.raises(NotTaken, match="STARTTLS"):
            await messenger(tmp_path).send(to, message())
    assert box.mails == []


async def test_an_address_that_is_refused_is_named_and_nobody_gets_the_mail(tmp_path: Path) -> None:
    with taking_mail() as box:
        box.refused = ("bob@example.org",)
        with pytest.raises(NotTaken, match=r"refused bob@example\.org: 550"):
            await messenger(tmp_path).send(mail(box.port), message())
        assert box.mails == []
        box.refused, box.said = (), "451 try later"
        with pytest.raises(NotTaken, match="refused it: 451 try later"):
            await messenger(tmp_path).send(mail(box.port), message())


async def test_a_mail_whose_answer_is_lost_leaves_a_doubt_and_no_server_leaves_none(tmp_path: Path) -> None:
    with taking_mail() as box:
        box.hangs_up = True
        with pytest.raises(Unavailable, match="closed the connection"):
            await messenger(tmp_path).send(mail(box.port), message())
    with pytest.raises(NotTaken, match="cannot be reached"):
        await messenger(tmp_path).send(mail(1), message())


async def test_a_mail_server_that_says_nothing_is_left_at_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    from lamplighter.adapters.notices import email

    monkeypatch.setattr(email, "SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NotTaken):
        await messenger(tmp_path).send(mail(silent.getsockname()[1]), message())


# ── ntfy ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def phone(receiver: Receiver, **keys: Any) -> Destination:
    return Destination(name="phone", kind="ntfy", url=receiver.url, topic="lamp_town", **keys)


async def test_ntfy_gets_title_text_priority_link_and_an_id_that_stays(tmp_path: Path, receiver: Receiver) -> None:
    receiver.status = 200
    to = phone(receiver, **TOKEN)
    assert await messenger(tmp_path).send(to, message(kind="needs_human")) == {"status": 200}
    [got] = receiver.received
    told = json.loads(got.body)
    assert (got.path, got.headers["authorization"]) == ("/", f"Bearer {VALUES['phone']}")
    assert (told["topic"], told["sequence_id"], told["priority"]) == ("lamp_town", "ntc_1", 4)
    assert told["title"] == "[town] nightly failed (exit 1): no oil."
    assert told["click"] == "https://lamp.example.org/inbox/inb_1"
    assert "To mend it: lamp run retry run_1" in told["message"]
    await messenger(tmp_path).send(phone(receiver, priority=1), message(sentence="ä" * 9000))
    told = json.loads(receiver.received[1].body)
    assert (told["priority"], "authorization" in receiver.received[1].headers) == (1, False)
    assert len(told["message"].encode()) < 4096


async def test_what_a_server_repeats_of_a_token_is_masked(tmp_path: Path, receiver: Receiver) -> None:
    receiver.status, receiver.says = 403, f"no rights for {VALUES['phone']}".encode()
    with pytest.raises(NotTaken, match="phone answered 403: no rights for •••") as told:
        await messenger(tmp_path).send(phone(receiver, **TOKEN), message())
    assert VALUES["phone"] not in f"{told.value} {told.value.__context__}"


async def test_without_its_secret_nothing_is_sent(tmp_path: Path, receiver: Receiver) -> None:
    with pytest.raises(NotTaken, match="There is no secret `lost`"):
        await messenger(tmp_path).send(phone(receiver, **LOST), message())
    with pytest.raises(NotTaken, match="characters that a request cannot carry"):
        await messenger(tmp_path, {"phone": "tk_ü"}).send(phone(receiver, **TOKEN), message())
    assert receiver.received == []
    receiver.status = 410
    with pytest.raises(NotTaken, match="phone answered 410") as told:
        await messenger(tmp_path).send(phone(receiver), message())
    assert not isinstance(told.value, Gone)


# ── webhooks ──────────────────────────────────────────────────────────────────────────────────────────────────────


def hook(receiver: Receiver, **keys: Any) -> Destination:
    known: dict[str, Any] = {"signing": ("secret:new", "secret:old"), "allow_private": True}
    return Destination(name="team", kind="webhook", url=f"{receiver.url}/hooks/1", **known | keys)


async def test_two_secrets_sign_so_that_a_receiver_with_either_takes_it(tmp_path: Path, receiver: Receiver) -> None:
    await messenger(tmp_path).send(hook(receiver), message())
    [got] = receiver.received
    for secret in (NEW, OLD):
        told = Webhook(secret).verify(got.body, got.headers)
        assert told["data"]["link"] == "https://lamp.example.org/inbox/inb_1"
    with pytest.raises(Exception, match="No matching signature"):
        Webhook(f"whsec_{base64.b64encode(b'the secret of someone else').decode()}").verify(got.body, got.headers)


async def test_a_receiver_that_is_gone_says_so_for_good(tmp_path: Path, receiver: Receiver) -> None:
    receiver.status = 410
    with pytest.raises(Gone, match="team answered 410"):
        await messenger(tmp_path).send(hook(receiver), message())


@pytest.mark.parametrize("host", ["bücher.invalid", f"{'x' * 70}.invalid"])
async def test_a_name_that_leads_nowhere_is_no_doubt(tmp_path: Path, receiver: Receiver, host: str) -> None:
    to = replace(hook(receiver, allow_private=False), url=f"https://{host}/x")
    with pytest.raises(NotTaken, match="cannot be reached"):
        await messenger(tmp_path).send(to, message())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_this_machine_is_refused_unless_it_is_allowed(tmp_path: Path, receiver: Receiver, host: str) -> None:
    to = replace(hook(receiver, allow_private=False), url=receiver.url.replace("127.0.0.1", host))
    with pytest.raises(NotTaken, match="this machine or a private network") as told:
        await messenger(tmp_path).send(to, message())
    assert "allow_private = true" in told.value.hint
    assert receiver.received == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True), ("2606:2800:220:1::1", True), ("127.0.0.1", False), ("10.1.2.3", False),
        ("172.16.0.1", False), ("192.168.1.1", False), ("169.254.169.254", False), ("100.64.0.1", False),
        ("224.0.0.1", False), ("255.255.255.255", False), ("::1", False), ("::", False),
        ("fe80::1%eth0", False), ("fd00::1", False), ("::ffff:10.0.0.1", False), ("::ffff:93.184.216.34", True),
        ("64:ff9b::a00:1", False), ("2002:a00:1::1", False), ("ff02::1", False),
    ],
)  # fmt: skip
def test_which_addresses_are_public(address: str, *, public: bool) -> None:
    assert posting.is_public(address) is public


async def test_the_address_that_was_looked_at_is_the_one_that_is_connected_to(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name whose answer changes between looking and connecting leads nowhere else; its own name is kept."""
    monkeypatch.setattr(posting, "is_public", lambda address: address == "127.0.0.1")
    port = receiver.url.rpartition(":")[2]
    to = replace(hook(receiver, allow_private=False), url=f"http://localhost:{port}/x")
    import asyncio
    import socket

    async def only_v4(*_args: Any, **_keys: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", int(port)))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", only_v4)
    await messenger(tmp_path).send(to, message())
    assert receiver.received[0].headers["host"] == f"localhost:{port}"


# ── apprise ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what Apprise imports
async def test_apprise_sends_to_any_service_it_knows(tmp_path: Path, receiver: Receiver) -> None:
    receiver.status = 200
    to = Destination(name="chat", kind="apprise", service="secret:service")
    service = receiver.url.replace("http://", "json://user:s3cret-pass@") + "/room"
    sender = messenger(tmp_path, {"service": service})
    await sender.send(to, message())
    [got] = receiver.received
    told = json.loads(got.body)
    assert got.path == "/room"
    assert told["title"] == "[town] nightly failed (exit 1): no oil."
    assert "To mend it: lamp run retry run_1" in told["message"]
    receiver.status = 500
    with pytest.raises(Unavailable, match="chat did not take it") as error:
        await sender.send(to, message())
    assert "s3cret" not in str(error.value)
    with pytest.raises(NotTaken, match="does not know the kind of address"):
        await messenger(tmp_path, {"service": "nothing-of-the-kind"}).send(to, message())


async def test_apprise_that_is_missing_is_told_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **keys: Any) -> Any:
        if name == "apprise":
            raise ImportError(name)
        return real(name, *args, **keys)

    monkeypatch.setattr(builtins, "__import__", without)
    to = Destination(name="chat", kind="apprise", service="secret:service")
    with pytest.raises(NotTaken, match="needs Apprise, which is not installed") as told:
        await messenger(tmp_path, {"service": "json://localhost"}).send(to, message())
    assert "pip install 'lamplighter[apprise]'" in told.value.hint
