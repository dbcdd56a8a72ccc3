"""Mail as every surface asks for it: who may, whose it is, and mail that another program keeps."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from automation_city import CITY, City

from lamplighter.domain.access import Actor, Forbidden, Role, of_run, owner
from lamplighter.domain.city.model import Agent, Rig, Workspace
from lamplighter.domain.city.model import City as CityConfig
from lamplighter.domain.mail import Message
from lamplighter.kit.errors import NotFound, UsageError
from lamplighter.ports.mail import MessageUnknown
from lamplighter.services import mail
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.context import Configured
from lamplighter.services.host import Host
from lamplighter.services.operation import Operation
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Store
from lamplighter.store.url import open_store

ADA, BOB = owner("ada"), Actor("bob", Role.MEMBER)


@dataclass
class Pigeons:
    """Mail that another program keeps."""

    kept: dict[str, Message] = field(default_factory=dict)

    def send(self, *, sender: str, to: str, body: str) -> Message:
        message = Message(f"p-{len(self.kept) + 1}", sender, to, body)
        self.kept[message.id] = message
        return message

    def inbox(self, recipient: str) -> list[Message]:
        return [one for one in self.kept.values() if one.to == recipient]

    check = inbox

    def read(self, message: str) -> Message:
        if message not in self.kept:
            raise MessageUnknown(message)
        return self.kept.pop(message)

    def archive(self, message: str) -> None:
        self.read(message)


@pytest.fixture
async def store(city: City) -> AsyncIterator[Store]:
    opened = open_store(city.place, CITY, Wakes())
    yield opened
    await opened.close()


def asking(city: City, store: Store, pigeons: Pigeons | None = None) -> CityOperations:
    host = cast("Host", SimpleNamespace(store=store, outside_mail=lambda: pigeons))
    agents = (Agent(name="mayor"), Agent(name="coder", dir="web"))
    config = CityConfig(
        workspace=Workspace(name="test"), prefix="te", agents=agents, rigs=(Rig(name="web", path="web", prefix="wb"),)
    )
    return CityOperations(host, city.clock, city.ids, lambda: Configured(config, city.rules))


async def do(ask: CityOperations, operation: Operation[Any, Any], request: Any, actor: Actor = ADA) -> Any:
    return await ask.do(operation, request, actor, surface="api")


def told(city: City, kind: str) -> list[tuple[str, str]]:
    return [(event.actor, event.payload["to"]) for event in city.events(kind)]


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_message_is_sent_found_and_read_wherever_mail_is_kept(
    city: City, store: Store, *, elsewhere: bool
) -> None:
    ask = asking(city, store, Pigeons() if elsewhere else None)
    (sent,) = (await do(ask, mail.SEND, mail.SendMail(" The oil\nis low. ", "mayor"))).sent
    assert (sent.sender, sent.to, sent.title, sent.body) == ("ada", "mayor", "The oil", "The oil\nis low.")
    for operation, request in ((mail.INBOX, mail.ReadInbox), (mail.CHECK, mail.CheckMail)):
        assert [one.id for one in await do(ask, operation, request("mayor"))] == [sent.id]
        assert await do(ask, operation, request()) == []
    assert (await do(ask, mail.READ, mail.ReadMessage(sent.id), BOB)).body == sent.body
    assert await do(ask, mail.INBOX, mail.ReadInbox("mayor")) == []
    assert told(city, "mail.sent") == [("ada", "mayor")]
    assert told(city, "mail.read") == [("bob", "mayor")]


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_message_to_all_goes_to_every_agent_but_its_author(
    city: City, store: Store, *, elsewhere: bool
) -> None:
    ask = asking(city, store, Pigeons() if elsewhere else None)
    sent = (await do(ask, mail.SEND, mail.SendMail("Lamps.", sender="mayor", everybody=True))).sent
    assert [(one.sender, one.to) for one in sent] == [("mayor", "web/coder")]
    assert told(city, "mail.sent") == [("mayor", "web/coder")]


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_message_is_archived_once(city: City, store: Store, *, elsewhere: bool) -> None:
    ask = asking(city, store, Pigeons() if elsewhere else None)
    (sent,) = (await do(ask, mail.SEND, mail.SendMail("Hm.", "human"))).sent
    assert (await do(ask, mail.ARCHIVE, mail.ArchiveMessage(sent.id))).archived
    assert told(city, "mail.read") == []
    assert await do(ask, mail.INBOX, mail.ReadInbox("human")) == []


async def test_an_agent_is_found_within_the_rig_of_who_writes(city: City, store: Store) -> None:
    ask = asking(city, store)
    with pytest.raises(NotFound, match="no agent `coder`"):
        await do(ask, mail.SEND, mail.SendMail("x", "coder"))
    (sent,) = (await do(ask, mail.SEND, mail.SendMail("x", "coder"), Actor("mayor", Role.OWNER, rig="web"))).sent
    assert (sent.to, sent.id.partition("-")[0]) == ("web/coder", "wb")


@pytest.mark.parametrize(
    ("request_", "words"),
    [(mail.SendMail(" ", "mayor"), "empty"), (mail.SendMail("x"), "to nobody"), (mail.SendMail("x", ""), "to nobody")],
)
async def test_a_message_without_words_or_recipient_is_refused(
    city: City, store: Store, request_: mail.SendMail, words: str
) -> None:
    for pigeons in (None, Pigeons()):
        with pytest.raises(UsageError, match=words):
            await do(asking(city, store, pigeons), mail.SEND, request_)
    assert city.events("mail.sent") == []


async def test_a_run_s_token_reaches_no_mail(city: City, store: Store) -> None:
    city.add("sweep", agent={"prompt": "Go."})
    run, pigeons = of_run(city.run_now("sweep").run), Pigeons()
    asked: list[tuple[Operation[Any, Any], Any]] = [
        (mail.SEND, mail.SendMail("x", "human")),
        (mail.INBOX, mail.ReadInbox()),
        (mail.CHECK, mail.CheckMail()),
        (mail.READ, mail.ReadMessage("te-1")),
        (mail.ARCHIVE, mail.ArchiveMessage("te-1")),
    ]
    for ask in (asking(city, store), asking(city, store, pigeons)):
        for operation, request in asked:
            with pytest.raises(Forbidden):
                await do(ask, operation, request, run)
    assert pigeons.kept == {}
