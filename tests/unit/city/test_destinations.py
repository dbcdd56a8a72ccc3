"""What a destination of each kind needs, and what it may not have."""

import pytest

from lamplighter.domain.city.check import check_city
from lamplighter.domain.city.decode import build, read
from lamplighter.domain.city.model import City
from lamplighter.domain.city.tree import Findings, Origin, Place

ROOT = Place(Origin("city", "city.toml"))
MAIL = {"kind": "email", "host": "mail.example.org", "sender": "lamp@example.org", "recipients": ["ada@example.org"]}
HOOK = {"kind": "webhook", "url": "https://hooks.example.org/1", "signing_env": "TEAM"}
NTFY = {"kind": "ntfy", "url": "https://ntfy.example.org", "topic": "town"}


def told(**row: object) -> list[str]:
    found = Findings()
    tree = {"workspace": {"name": "town"}, "notifications": {"destinations": [{"name": "team", **row}]}}
    table = read(City, tree, ROOT, found)
    city = build(table, found)
    if not found.problems:
        check_city(city, table, found)
    return [str(one) for one in found.problems]


@pytest.mark.parametrize(
    "row",
    [
        MAIL,
        MAIL | {"user": "lamp", "password": "secret:MAIL"},
        MAIL | {"security": "none", "host": "127.0.0.1"},
        HOOK,
        HOOK | {"signing": ["secret:NEW", "secret:OLD"], "allow_private": True},
        NTFY | {"token": "secret:PHONE", "priority": 5},
        {"kind": "apprise", "service": "secret:CHAT"},
    ],
)
def test_a_sound_destination_is_accepted(row: dict[str, object]) -> None:
    assert told(**row) == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"kind": "email", "host": "h"}, "email needs `sender`"),
        (MAIL | {"user": "lamp"}, "`password` is missing"),
        (MAIL | {"security": "none"}, "only a server on this machine"),
        (MAIL | {"security": "ssl"}, "`ssl` is not one of"),
        (MAIL | {"sender": "lamp@x\nBcc: eve@x"}, "is not an e-mail address"),
        (MAIL | {"recipients": ["ada"]}, "`ada` is not an e-mail address"),
        (MAIL | {"url": "https://x.example.org"}, "is of a webhook; `team` is email"),
        (
            {"kind": "webhook", "url": "https://x.example.org"},
            "destinations[0]: a webhook signs what it sends, and the secret for that is missing",
        ),
        (HOOK | {"signing": ["secret:A", "secret:B", "secret:C"]}, "at most 2 can sign"),
        (HOOK | {"topic": "x"}, "is of ntfy; `team` is a webhook"),
        (NTFY | {"topic": "a b"}, "is not a topic"),
        (NTFY | {"priority": 6}, "it goes from 0 to 5"),
        ({"kind": "ntfy", "url": "https://x.example.org"}, "ntfy needs `topic`"),
        ({"kind": "apprise"}, "apprise needs `service`"),
        ({"kind": "slack_channel"}, "a slack_channel needs `channel`"),
        ({"kind": "slack_dm_user"}, "a slack_dm_user needs `user`"),
        ({"kind": "slack_dm_user", "user": "ada"}, "`ada` is not the id of a user in Slack"),
        ({"kind": "slack"}, "write `slack_channel` or `slack_dm_user`"),
    ],
)
def test_what_is_wrong_with_a_destination_is_told(row: dict[str, object], said: str) -> None:
    assert said in "\n".join(told(**row))


@pytest.mark.parametrize(
    "row",
    [
        MAIL | {"user": "lamp", "password": "hunter2"},
        NTFY | {"token": "tk_hunter2"},
        HOOK | {"signing": ["whsec_hunter2"]},
        {"kind": "apprise", "service": "slack://hunter2"},
    ],
)
def test_a_secret_in_the_file_is_refused_without_being_repeated(row: dict[str, object]) -> None:
    [problem] = told(**row)
    assert "write `secret:NAME`" in problem
    assert "hunter2" not in problem


def test_a_zone_that_is_none_is_refused() -> None:
    found = Findings()
    build(read(City, {"notifications": {"quiet_zone": "Europe/Berlim"}}, ROOT, found), found)
    assert "is not a time zone" in str(found.problems[0])


@pytest.mark.parametrize(
    ("url", "noted"),
    [
        ("http://127.0.0.1:8080/x", True),
        ("http://localhost/x", True),
        ("http://[::1]/x", True),
        ("https://10.0.0.8/x", True),
        ("https://hooks.example.org/x", False),
    ],
)
def test_a_webhook_to_this_machine_is_accepted_with_a_remark(url: str, *, noted: bool) -> None:
    """The city starts as it did; what is not sent is told by the remark, and later in the inbox."""
    for allowed in (False, True):
        found = Findings()
        row = HOOK | {"name": "team", "url": url} | ({"allow_private": True} if allowed else {})
        table = read(City, {"workspace": {"name": "town"}, "notifications": {"destinations": [row]}}, ROOT, found)
        check_city(build(table, found), table, found)
        assert found.problems == []
        assert any("allow_private = true" in str(one) for one in found.remarks) is (noted and not allowed)
