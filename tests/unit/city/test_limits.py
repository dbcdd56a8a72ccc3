"""Checks of single values of city.toml: what each accepts, at the edge of what it refuses."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lamplighter.domain.city import limits

SECOND = timedelta(seconds=1)
ACCEPTED: list[tuple[Callable[[Any], object], list[Any]]] = [
    (limits.one_of("a", "b"), ["a", "b"]),
    (limits.provider("tmux", "fake"), ["", "tmux", "exec:run.sh"]),
    (limits.some_of("a", "b"), [[], ["a"], ["b", "a"]]),
    (limits.below, [[], ["a"], ["a/b"], [".env"], ["..a"]]),
    (limits.positive, [timedelta(microseconds=1)]),
    (limits.above_zero, [0.001, 1]),
    (limits.at_least(3), [3, 4]),
    (limits.between(2, 4), [2, 3, 4]),
    (limits.port, [0, 1, 65535]),
    (limits.plain_name, ["a", "_a", "1.b-c"]),
    (limits.prefix, ["", "sf", "S1_2"]),
    (limits.not_empty, ["a", " a "]),
    (limits.no_password, ["", "postgresql://u@h/d", "sqlite:///x"]),
    (limits.web_address, ["", "https://lamp.example.org", "http://127.0.0.1:5267/x"]),
    (
        limits.issuer,
        ["", "https://id.example.org/realm", "http://127.0.0.1:8080", "http://localhost", "http://[::1]:1"],
    ),
    (limits.mail_domains, [[], ["example.org"], ["a-b.c.example"]]),
    (limits.destination_name, ["ops", "in.box"]),
    (limits.destination_kind, ["webhook", "slack_channel"]),
    (limits.secret_reference, ["", "secret:A", "secret:a.b-c_1"]),
    (limits.secret_references, [[], ["secret:A"], ["secret:A", "secret:B"]]),
    (limits.mail_address, ["", "lamp@example.org", "a.b+c@x"]),
    (limits.mail_addresses, [[], ["lamp@example.org"]]),
    (limits.ntfy_topic, ["", "a", "a-B_9" * 12]),
    (limits.zone, ["", "UTC", "Europe/Rome"]),
    (limits.quiet_hours, ["", "22:00-07:00", "00:00-23:59"]),
    (limits.slack_channel, ["", "C1", "G0AB", "D9"]),
    (limits.slack_user, ["", "U1", "W9"]),
    (limits.slack_team, ["", "T0CITY"]),
    (limits.hooks, [[], ["claude", "gemini"]]),
]
REFUSED: list[tuple[Callable[[Any], object], list[Any]]] = [
    (limits.one_of("a", "b"), ["", "c", "A"]),
    (limits.provider("tmux", "fake"), ["tmx", "exec:", "exec: ", "exec"]),
    (limits.some_of("a", "b"), [["c"], ["a", "c"]]),
    (limits.below, [[""], [" "], ["/a"], ["~/a"], ["../a"], ["a/.."], ["."], ["./"], ["a", "/b"]]),
    (limits.positive, [timedelta(0), -SECOND]),
    (limits.above_zero, [0, -0.1]),
    (limits.at_least(3), [2]),
    (limits.between(2, 4), [1, 5]),
    (limits.port, [-1, 65536]),
    (limits.plain_name, ["", "-a", "a b", "a/b", "a\n"]),
    (limits.prefix, ["_a", "a-b", "a\n"]),
    (limits.not_empty, ["", " \n"]),
    (limits.no_password, ["postgresql://u:hush@h/d", "http://[x"]),
    (limits.web_address, ["lamp", "ftp://x", "https://", "http://x:0", "http://x:99999", "https://u:hush@x"]),
    (limits.issuer, ["http://id.example.org", "https://x/?a=1", "https://x/#a", "https://u:hush@x"]),
    (limits.mail_domains, [["example"], ["Example.org"], ["-a.org"], ["a.org", "@b.org"], ["a..b"]]),
    (limits.destination_name, ["inbox", "none", "a b"]),
    (limits.destination_kind, ["slack", "pigeon", ""]),
    (limits.secret_reference, ["hush", "secret:", "secret:-a", "secret:a/b", "secret:" + "a" * 65]),
    (limits.secret_references, [["secret:A"] * 3, [""], ["secret:A", "hush"]]),
    (limits.mail_address, ["lamp", "@x", "a@", "a b@x", "a@-x"]),
    (limits.mail_addresses, [[""], ["lamp@example.org", "lamp"]]),
    (limits.ntfy_topic, ["a b", "a/b", "a" * 65]),
    (limits.zone, ["Mars/Olympus"]),
    (limits.quiet_hours, ["22:00-22:00", "24:00-07:00", "22:00", "22:60-07:00", "22:00-07:00x"]),
    (limits.slack_channel, ["ops", "U1", "C", "c1"]),
    (limits.slack_user, ["C1", "U"]),
    (limits.slack_team, ["U1", "T"]),
    (limits.hooks, [["codex"], ["claude", "vim"]]),
]


def cases(table: list[tuple[Callable[[Any], object], list[Any]]]) -> list[Any]:
    named = [(check.__qualname__.partition(".")[0], check, value) for check, values in table for value in values]
    return [pytest.param(check, value, id=f"{name}-{value!r}") for name, check, value in named]


@pytest.mark.parametrize(("check", "value"), cases(ACCEPTED))
def test_a_sound_value_is_accepted(check: Callable[[Any], object], value: Any) -> None:
    assert check(value) is None


@pytest.mark.parametrize(("check", "value"), cases(REFUSED))
def test_a_wrong_value_is_refused_with_a_reason(check: Callable[[Any], object], value: Any) -> None:
    assert check(value)


@pytest.mark.parametrize("check", [limits.secret_reference, lambda value: limits.secret_references([value])])
def test_a_value_that_may_be_a_secret_is_not_repeated(check: Callable[[str], str | None]) -> None:
    assert "hunter22" not in (check("hunter22") or "hunter22")


@pytest.mark.parametrize(
    ("name", "secret"),
    [("API_KEY", True), ("apikey", True), ("GITHUB_TOKEN", True), ("PASSWD", True), ("private_key", True),
     ("PRIVATEKEY", True), ("TEAM", False), ("KEY", False)],
)  # fmt: skip
def test_what_looks_like_a_secret_by_its_name(name: str, secret: bool) -> None:  # noqa: FBT001  a table
    assert limits.looks_secret(name) is secret


@pytest.mark.parametrize(("name", "is_one"), [("A", True), ("_a1", True), ("1A", False), ("A-B", False), ("", False)])
def test_what_may_be_a_variable(name: str, is_one: bool) -> None:  # noqa: FBT001  a table
    assert limits.env_name(name) is is_one
