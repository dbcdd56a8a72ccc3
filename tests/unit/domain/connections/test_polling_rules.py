"""When a provider is asked again, what its answers mean, and up to which page it is read."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from lamplighter.domain.connections import polling
from lamplighter.domain.connections.polling import (
    AT_ONCE,
    INTERVAL,
    LONGEST_LIMIT,
    LONGEST_WAIT,
    MOST_SEEN,
    SPARED,
    backed_off,
    is_last,
    newest,
    next_round,
    read_time,
    refused,
    seen_after,
    server_time,
    wrong_repo,
    wrong_url,
)
from lamplighter.domain.connections.reading import titled
from lamplighter.domain.connections.signatures import SENT_AT, TOLERANCE, is_signed, untimely
from lamplighter.domain.delivery_fields import Provider

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
DATE = {"date": format_datetime(NOW, usegmt=True)}


def resets(after: timedelta) -> dict[str, str]:
    return DATE | {"x-ratelimit-reset": str(int((NOW + after).timestamp()))}


@pytest.mark.parametrize("url", ["https://api.github.com", "https://ghe.example/api/v3", "http://127.0.0.1:9", "http://localhost",
                                 "http://[::1]:8"])  # fmt: skip
def test_a_token_may_be_sent_by_https_or_to_this_machine(url: str) -> None:
    assert wrong_url(url) == ""


@pytest.mark.parametrize(
    "url", ["http://ghe.example", "ftp://x", "https://", "https://u@x", "https://u:p@x", "https://x?a=1", "https://x#a",
            "http://[x", "", "api.github.com"],
)  # fmt: skip
def test_a_token_is_sent_nowhere_else(url: str) -> None:
    assert wrong_url(url)


@pytest.mark.parametrize(("repo", "sound"), [("acme/web", True), ("a-b/c.d_e", True), ("acme", False), ("a/b/c", False),
                                             ("a b/c", False), ("a/", False), ("a" * 40 + "/b", False)])  # fmt: skip
def test_a_repository_has_an_owner_and_a_name(repo: str, sound: bool) -> None:  # noqa: FBT001  a table
    assert (wrong_repo(repo) == "") is sound


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, INTERVAL),
        ({"x-poll-interval": "30"}, INTERVAL),
        ({"x-poll-interval": "300"}, 5 * MINUTE),
        ({"x-poll-interval": "999999"}, LONGEST_LIMIT),
        ({"x-poll-interval": "soon"}, INTERVAL),
        (resets(20 * MINUTE) | {"x-ratelimit-remaining": str(SPARED + 1)}, INTERVAL),
        (resets(20 * MINUTE) | {"x-ratelimit-remaining": str(SPARED)}, 20 * MINUTE + SECOND),
        (resets(-20 * MINUTE) | {"x-ratelimit-remaining": "0"}, INTERVAL),
        (resets(9 * LONGEST_LIMIT) | {"x-ratelimit-remaining": "0"}, LONGEST_LIMIT + SECOND),
        ({"x-ratelimit-remaining": "0"}, INTERVAL),
        (resets(20 * MINUTE) | {"x-ratelimit-remaining": "0", "x-poll-interval": "1800"}, 30 * MINUTE),
    ],
)
def test_it_is_asked_again_as_it_wishes_and_not_while_few_requests_are_left(
    headers: dict[str, str], wait: timedelta
) -> None:
    assert next_round(headers, NOW) == NOW + wait


@pytest.mark.parametrize(
    ("status", "headers", "why", "wait"),
    [
        (401, {}, "token", INTERVAL),
        (403, {}, "may not read", INTERVAL),
        (403, resets(20 * MINUTE) | {"x-ratelimit-remaining": "0"}, "limit", 20 * MINUTE + SECOND),
        (403, resets(20 * MINUTE) | {"x-ratelimit-remaining": "1"}, "may not read", INTERVAL),
        (403, {"retry-after": "600"}, "limit", 10 * MINUTE),
        (429, {}, "limit", INTERVAL),
        (429, {"retry-after": "0"}, "limit", INTERVAL),
        (429, {"retry-after": "999999"}, "limit", LONGEST_LIMIT),
        (404, {}, "no repository acme/web", INTERVAL),
        (301, {}, "moved", INTERVAL),
        (308, {}, "moved", INTERVAL),
        (500, {"retry-after": "600"}, "answered 500", INTERVAL),
    ],
)
def test_an_answer_that_tells_nothing_says_why_and_when_to_ask_again(
    status: int, headers: dict[str, str], why: str, wait: timedelta
) -> None:
    found = refused(status, headers, "acme/web", 0, NOW)
    assert found is not None
    assert why in found.why
    assert found.again == NOW + wait
    again = refused(status, headers, "acme/web", 3, NOW)
    assert again is not None
    assert again.again == NOW + max(wait, backed_off(3))


def test_answers_that_can_be_used_are_not_refused_and_pauses_grow_to_a_bound() -> None:
    assert refused(200, {}, "r", 0, NOW) is refused(304, {}, "r", 0, NOW) is None
    assert [backed_off(number) for number in (0, 1, 3, 4, 99)] == [
        INTERVAL, 2 * INTERVAL, 8 * INTERVAL, LONGEST_WAIT, LONGEST_WAIT,
    ]  # fmt: skip


def page(*ids: int, changed: str = "2026-03-02T08:00:00Z", full: bool = True) -> list[dict[str, Any]]:
    found = [{"id": one, "updated_at": changed} for one in ids]
    return (
        found + [{"id": 10_000 + number, "updated_at": changed} for number in range(AT_ONCE - len(found))]
        if full
        else found
    )


def test_a_page_is_the_last_when_it_is_not_full_or_reaches_what_is_known() -> None:
    since = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
    for part in ("events", "issues", "pulls"):
        assert is_last(part, page(1, full=False), since, frozenset())
        assert not is_last(part, page(1), since, frozenset({"7"}))
    assert is_last("events", page(1, 7), since, frozenset({"7"}))
    assert not is_last("issues", page(7), since, frozenset({"7"}))
    assert is_last("pulls", page(1, changed="2026-03-02T07:59:59Z"), since, frozenset())
    assert not is_last("issues", page(1, changed="2026-03-02T07:59:59Z"), since, frozenset())
    assert not is_last("pulls", page(1, changed="rubbish"), since, frozenset())


def test_how_far_was_read_is_the_last_change_that_has_happened() -> None:
    changes = [{"updated_at": f"2026-03-02T{time}Z"} for time in ("08:00:00", "09:00:00", "09:00:01")]
    assert newest(changes, NOW - 9 * MINUTE, NOW) == NOW
    assert newest(changes[:1], NOW - 9 * MINUTE, NOW) == NOW - 9 * MINUTE
    assert newest([{}, "x"], NOW, NOW) == NOW


def test_what_was_seen_is_kept_newest_first_once_and_not_for_ever() -> None:
    assert seen_after([{"id": 3}, {"id": None}, {"id": 2}], ["2", "1"]) == ["3", "2", "1"]
    kept = seen_after([{"id": "new"}], [str(number) for number in range(MOST_SEEN)])
    assert (len(kept), kept[0], kept[-1]) == (MOST_SEEN, "new", str(MOST_SEEN - 2))


def test_times_are_the_server_s_where_it_tells_them() -> None:
    assert server_time(DATE, NOW - MINUTE) == NOW
    for rubbish in ({}, {"date": "yesterday"}):
        assert server_time(rubbish, NOW.replace(microsecond=7)) == NOW
    assert (read_time("2026-03-02T09:00:00Z"), read_time("soon"), read_time(7), read_time(None)) == (
        NOW,
        None,
        None,
        None,
    )
    assert polling.write_time(NOW) == "2026-03-02T09:00:00Z"


@pytest.mark.parametrize(
    ("off", "timely"),
    [
        (timedelta(0), True),
        (TOLERANCE, True),
        (-TOLERANCE, True),
        (TOLERANCE + SECOND, False),
        (-TOLERANCE - SECOND, False),
    ],
)
def test_the_signed_time_of_a_payload_is_that_of_now(off: timedelta, timely: bool) -> None:  # noqa: FBT001  a table
    at = int((NOW + off).timestamp() * 1000)
    assert (untimely(Provider.LINEAR, {SENT_AT: at}, NOW) == "") is timely
    assert untimely(Provider.GITHUB, {SENT_AT: at}, NOW) == ""


@pytest.mark.parametrize("payload", [{}, {SENT_AT: True}, {SENT_AT: "now"}, {SENT_AT: None}])
def test_a_payload_that_tells_no_time_is_refused(payload: dict[str, Any]) -> None:
    assert untimely(Provider.LINEAR, payload, NOW)


def test_only_what_has_a_signature_is_proved_by_it() -> None:
    assert is_signed(Provider.STANDARD, {})
    assert is_signed(Provider.GITHUB, {"x-hub-signature-256": "x"})
    assert not is_signed(Provider.GITHUB, {"linear-signature": "x"})


@pytest.mark.parametrize(
    ("template", "title"),
    [
        ("{repo}: {data.title}", "web: Dark"), ("{data.title} of {data.none}", "Dark of"), ("{data.none}: {none}", ""),
        ("always", "always"), ("{data}{list}", ""), ("{zero}", "0"), ("{repo}", "web"),
    ],
)  # fmt: skip
def test_a_title_is_made_of_what_the_payload_has_and_none_where_it_has_nothing_of_it(template: str, title: str) -> None:
    payload = {"repo": "web", "data": {"title": "Dark"}, "list": [1], "zero": 0}
    assert titled(template, payload) == title
