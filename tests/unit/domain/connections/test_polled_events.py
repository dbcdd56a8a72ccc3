"""What GitHub's list of events tells, as the deliveries that its webhooks would have been."""

from typing import Any

import pytest

from lamplighter.domain.connections.polling import of_events


@pytest.mark.parametrize(
    ("kind", "name", "action"),
    [
        ("PullRequestReviewEvent", "pull_request_review", "submitted"),
        ("IssueCommentEvent", "issue_comment", "created"),
        ("PullRequestReviewCommentEvent", "pull_request_review_comment", "created"),
    ],
)
def test_only_a_review_that_was_made_is_told_as_submitted(kind: str, name: str, action: str) -> None:
    told: dict[str, Any] = {"id": "1", "type": kind, "payload": {"action": "created"}, "repo": {"name": "acme/web"}}
    [found] = of_events([told], "acme/web", frozenset())
    assert (found.event, found.payload["action"]) == (name, action)


def test_what_was_seen_before_and_what_the_lists_tell_in_full_is_left_out_and_the_oldest_comes_first() -> None:
    items = [
        {"id": "4", "type": "PushEvent", "payload": {"head": "abc"}},
        {"id": "3", "type": "IssuesEvent", "payload": {"action": "opened"}},
        {"id": "2", "type": "IssuesEvent", "payload": {"action": "labeled"}},
        {"id": "1", "type": "WatchEvent", "payload": {}},
    ]
    found = of_events(items, "acme/web", frozenset({"1"}))
    assert [one.event for one in found] == ["issues", "push"]
    assert found[1].payload["after"] == "abc"
