"""Whatever a server answers to a poll, it is read without failing, and only texts that say when are believed."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lamplighter.domain.connections import polling
from lamplighter.services.polls import can_be_kept

NOW = datetime(2026, 11, 18, 5, 0, tzinfo=UTC)
KEYS = st.sampled_from([
    "id", "type", "payload", "action", "actor", "login", "repo", "name", "issue", "comment", "updated_at", "created_at",
    "closed_at", "pull_request", "base", "full_name", "user", "number", "ref", "head", "review", "repository_url",
])  # fmt: skip
WORDS = st.sampled_from([
    "IssuesEvent", "PushEvent", "PullRequestReviewEvent", "Event", "opened", "closed", "created",
    "2026-11-18T05:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59Z", "x", "",
])  # fmt: skip
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)
ITEMS = st.lists(VALUES | st.dictionaries(KEYS, VALUES, max_size=10), max_size=5)
HEADERS = st.dictionaries(
    st.sampled_from(["date", "retry-after", "x-ratelimit-remaining", "x-ratelimit-reset", "x-poll-interval"]),
    st.text(max_size=8)
    | st.integers(0, 10**14).map(str)
    | st.sampled_from(["Wed, 18 Nov 2026 05:00:00 GMT", "\u0663"]),
)


@given(ITEMS)
def test_no_answer_makes_reading_fail(items: list[Any]) -> None:
    found = polling.of_events(items, "acme/web", frozenset())
    for part in ("issues", "pulls"):
        found += polling.of_list(part, items, "acme/web", NOW)
        polling.is_last(part, items * 40, NOW, frozenset())
    for one in found:
        assert one.external_id
        can_be_kept(one)
    assert NOW <= polling.newest(items, NOW, NOW + timedelta(days=1)) <= NOW + timedelta(days=1)
    assert all(isinstance(one, str) and one for one in polling.seen_after(items, ()))


@given(HEADERS, st.sampled_from([301, 401, 403, 404, 422, 429, 500]), st.integers(0, 100))
def test_it_is_asked_again_after_a_minute_and_within_about_an_hour_whatever_the_headers_say(
    headers: dict[str, str], status: int, failures: int
) -> None:
    refused = polling.refused(status, headers, "acme/web", failures, NOW)
    assert refused is not None
    for again in (refused.again, polling.next_round(headers, NOW)):
        assert timedelta(minutes=1) <= again - NOW <= timedelta(hours=1, seconds=1)
