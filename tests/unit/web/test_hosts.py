"""Which requests come to the city's own address, and from its own pages."""

import pytest

from lamplighter.domain.city.limits import web_address
from lamplighter.web.hosts import Reached, refusal

LOCAL = ("127.0.0.1", 5267)
PUBLIC = Reached("lamp.lan", "https://lamp.example.org")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:5267", "localhost:5267", "LocalHost:5267", "localhost.:5267", "[::1]:5267", "lamp.lan:5267",
             "lamp.example.org", "lamp.example.org:443", "LAMP.example.org"],
)  # fmt: skip
def test_its_own_addresses_are_answered(host: str) -> None:
    assert refusal(host, None, PUBLIC, LOCAL) is None


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "evil.example:5267", "localhost", "localhost:80", "127.0.0.1:5268", "127.0.0.1",
             "127.0.0.1:5267@evil.example", "evil.example@127.0.0.1:5267", "127.0.0.1:5267/evil", "localhost:x",
             "lamp.example.org:5267", "lamp.example.org.evil.example", "[::1", "localhost:5267, evil.example"],
)  # fmt: skip
def test_any_other_host_is_refused(host: str | None) -> None:
    refused = refusal(host, None, PUBLIC, LOCAL)
    assert refused is not None
    assert "Host" in refused.message
    assert "public_url" in refused.hint


@pytest.mark.parametrize(
    ("origin", "fine"),
    [
        ("http://127.0.0.1:5267", True), ("http://localhost:5267", True), ("http://[::1]:5267", True),
        ("https://lamp.example.org", True), ("http://lamp.lan:5267", True),
        ("https://127.0.0.1:5267", False), ("http://localhost:3000", False), ("http://lamp.example.org", False),
        ("https://evil.example", False), ("null", False), ("", False), ("file://", False),
        ("http://127.0.0.1:5267.evil.example", False), ("http://evil.example@127.0.0.1:5267", False),
    ],
)  # fmt: skip
def test_a_page_of_another_origin_is_refused(origin: str, fine: bool) -> None:  # noqa: FBT001  a column
    assert (refusal("127.0.0.1:5267", origin, PUBLIC, LOCAL) is None) == fine


def test_the_address_a_connection_came_in_at_is_its_own() -> None:
    anywhere = Reached("0.0.0.0")  # noqa: S104  nothing is bound here
    assert refusal("192.0.2.7:5267", None, anywhere, ("192.0.2.7", 5267)) is None
    assert refusal("192.0.2.7:5267", None, anywhere, ("::ffff:192.0.2.7", 5267)) is None
    assert refusal("192.0.2.8:5267", None, anywhere, ("192.0.2.7", 5267)) is not None
    assert refusal("lamp.example.org", None, anywhere, ("192.0.2.7", 5267)) is not None


@pytest.mark.parametrize("url", ["", "https://lamp.example.org", "http://lamp.lan:8080/city"])
def test_a_public_url_is_a_web_address(url: str) -> None:
    assert web_address(url) is None


@pytest.mark.parametrize("url", ["lamp.example.org", "ftp://lamp.example.org", "https://", "https://x:port", "http://[",
                                 "https://me:secret@lamp.example.org"])  # fmt: skip
def test_what_is_no_web_address_is_told_when_it_is_set(url: str) -> None:
    assert web_address(url) is not None
