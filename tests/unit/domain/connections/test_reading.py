"""Every provider's delivery has a type, an id, a title, and the fields that triggers filter by."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.domain.automations.events import undelivered
from lamplighter.domain.automations.model import Webhook
from lamplighter.domain.connections import fields
from lamplighter.domain.connections.reading import Reading, delivery_id, read, titled, wrong_template
from lamplighter.domain.connections.verdicts import dedup_key, is_allowed, runs_named
from lamplighter.domain.delivery_fields import FIELDS, SEARCHED, Provider
from lamplighter.domain.runs.enrichment import Occasion, enrich

SAMPLES = Path(__file__).parents[3] / "data" / "deliveries"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.json"))


def sample(name: str) -> tuple[Provider, dict[str, str], dict[str, Any]]:
    found = json.loads((SAMPLES / f"{name}.json").read_text())
    return Provider(name.partition("_")[0]), found["headers"], found["body"]


def reading(name: str) -> Reading:
    return read(*sample(name))


EXPECTED = {
    "github_issues_opened": ("issues.opened", "acme/web#12 opened: The lamp at the gate is out", "ada"),
    "github_pull_request_closed": ("pull_request.closed", "acme/web#7 closed: Mend the lamp", "ada"),
    "github_push": ("push", "acme/web@main 2 commits: Trim the wick", "ada"),
    "github_check_run_completed": ("check_run.completed", "acme/web@mend-lamp failure: tests", "ada"),
    "github_workflow_run_completed": ("workflow_run.completed", "acme/web@main failure: Build", "ada"),
    "github_issue_comment_created": (
        "issue_comment.created",
        "acme/web#12 created: The lamp at the gate is out",
        "ada",
    ),
    "github_ping": ("ping", "acme/web ping", "ada"),
    "linear_issue_update": ("Issue.update", "LAMP-42 update: Oil runs low", "Grace"),
    "sentry_issue_created": ("issue.created", "WEB-3K created: TypeError: lamp is None", "Sentry"),
    "sentry_event_alert": ("event_alert.triggered", "1170820999 triggered: Slow wick", "Sentry"),
    "posthog_event": ("signed_up", "signed_up by user-7", "user-7"),
    "standard_order": ("order.paid", "order.paid: Twelve lamps", ""),
    "bearer_alert": ("disk_full", "disk_full: The disk of north is full", ""),
}


@pytest.mark.parametrize("name", NAMES)
def test_each_sample_is_read(name: str) -> None:
    found, provider = reading(name), sample(name)[0]
    assert (found.event_type, found.title, found.author) == EXPECTED[name]
    assert set(found.fields) <= set(FIELDS[provider])
    payload = enrich(Occasion("job", "webhook", provider.value, parsed=found.context(provider)))
    assert payload["summary"]["title"] == found.title
    has_url = provider in {Provider.GITHUB, Provider.LINEAR, Provider.SENTRY, Provider.POSTHOG} and "ping" not in name
    assert (payload["source"]["url"] is not None) == has_url


def test_the_fields_are_those_of_the_payload() -> None:
    merged = reading("github_pull_request_closed").fields
    assert merged | {"labels": 0} == {
        "repo": "acme/web", "author": "ada", "action": "closed", "number": 7, "branch": "mend-lamp", "labels": 0,
        "merged": True, "draft": False,
    }  # fmt: skip
    assert reading("linear_issue_update").fields["priority"] == 2
    assert reading("sentry_event_alert").fields["environment"] == "production"
    assert reading("github_ping").ignored
    assert read(Provider.STANDARD, {}, {"lamplighter_test": True}).ignored


@pytest.mark.parametrize(
    ("name", "gate", "told"),
    [
        ("github_issues_opened", {"events": ("issues",)}, ""),
        ("github_issues_opened", {"events": ("issues.opened", "push")}, ""),
        ("github_issues_opened", {"events": ("issues.*",)}, ""),
        ("github_issues_opened", {"events": ("issue", "pull_request")}, "events: "),
        ("github_issues_opened", {"filter": {"repo": "acme/*", "labels": "bug"}}, ""),
        ("github_issues_opened", {"filter": {"labels": ["wish", "gate"]}}, ""),
        ("github_issues_opened", {"filter": {"labels": "wish"}}, "filter: `labels`"),
        ("github_pull_request_closed", {"filter": {"merged": True}}, ""),
        ("github_pull_request_closed", {"filter": {"merged": False}}, "filter: `merged`"),
        ("github_check_run_completed", {"filter": {"conclusion": ["failure", "timed_out"]}}, ""),
        ("github_push", {"filter": {"branch": "release/*"}}, "filter: `branch`"),
        ("github_push", {"filter": {"number": 1}}, "filter: `number` is not there"),
        ("sentry_issue_created", {"filter": {"min_level": "warning", "project": "web"}}, ""),
        ("sentry_event_alert", {"filter": {"min_level": "error"}}, "filter: `level`"),
        ("linear_issue_update", {"filter": {"state": "In *", "team": "LAMP"}}, ""),
        ("standard_order", {"match": {"data.customer.name": "Ada"}}, ""),
        ("standard_order", {"match": {"data.customer.name": "Ben"}}, "match: "),
    ],
)
def test_filters_say_which_rule_keeps_a_delivery_back(name: str, gate: dict[str, Any], told: str) -> None:
    _, _, payload = sample(name)
    found = reading(name)
    said = undelivered(Webhook("c", **gate), found.event_type, payload, found.fields)
    assert said.startswith(told) if told else said == ""


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
INNER = [
    "name", "number", "labels", "label", "head", "ref", "conclusion", "check_suite", "message", "body", "title",
    "html_url",
    "tags", "level", "project", "slug", "id", "uuid", "event", "issue", "error", "state", "team", "assignee", "login",
    "priority", "distinct_id", "merged", "draft", "web_url", "full_name",
]  # fmt: skip
known_objects = st.recursive(
    json_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER), inner, max_size=6),
    max_leaves=12,
)
KEYS = [
    "action", "repository", "sender", "issue", "pull_request", "data", "event", "type", "commits", "label", "tags",
    "ref",
    "compare", "comment", "head_commit", "workflow_run", "check_run", "release", "actor", "url", "person", "title",
    "subject",
]  # fmt: skip
HEADERS = ["x-github-event", "linear-event", "sentry-hook-resource", "webhook-id"]


@given(
    provider=st.sampled_from(Provider),
    payload=st.dictionaries(st.sampled_from(KEYS), known_objects, max_size=6),
    headers=st.dictionaries(st.sampled_from(HEADERS), st.text(max_size=10)),
    template=st.sampled_from(["", "{data.title}", "{action} x"]),
)
def test_rubbish_is_read_and_has_a_title(
    provider: Provider, payload: dict[str, Any], headers: dict[str, str], template: str
) -> None:
    found = read(provider, headers, payload, template)
    assert found.title.strip()
    assert found.event_type
    wanted = {name: "error" if name == "min_level" else ["a", 1] for name in FIELDS[provider]}
    undelivered(Webhook("c", filter=wanted, match={"data.title": "x"}), found.event_type, payload, found.fields)
    json.dumps(found.context(provider))
    delivery_id(provider, headers, payload, b"{}")
    assert all(
        len(value) <= fields.LONGEST_VALUE for _, value in fields.values(SEARCHED[provider], found.fields, payload)
    )


@pytest.mark.parametrize(
    ("payload", "title"),
    [
        ({"type": "paid", "title": "Lamps"}, "paid: Lamps"),
        ({"type": "paid"}, "paid"),
        ({"title": "Lamps"}, "Lamps"),
        ({"data": {"name": "Lamps"}}, "Lamps"),
        ({}, "standard delivery"),
    ],
)
def test_a_delivery_is_titled_by_what_it_tells_of_itself(payload: dict[str, Any], title: str) -> None:
    assert read(Provider.STANDARD, {}, payload).title == title


@pytest.mark.parametrize("tags", [5, True, "level", {"level": "error"}, [5, ["level"], [["a"], 1], ["level", "error"]]])
def test_tags_of_any_shape_are_read(tags: Any) -> None:
    found = read(Provider.SENTRY, {}, {"data": {"event": {"tags": tags}}})
    assert found.fields.get("level") == ("error" if isinstance(tags, list) else None)


def test_a_title_is_made_from_a_template() -> None:
    payload = sample("standard_order")[2]
    assert titled("{data.repo}: {data.title}", payload) == "acme/shop: Twelve lamps"
    assert read(Provider.STANDARD, {}, payload, "{nothing.here}").title == "order.paid: Twelve lamps"
    assert wrong_template("{data.title}") == ""
    assert wrong_template("{data title}")
    assert wrong_template("a } b")


def test_what_runs_are_found_by_is_a_field_or_a_path() -> None:
    _, _, payload = sample("github_issues_opened")
    paths = ["repo", "number", "labels", "issue.state", "nothing"]
    assert fields.values(paths, reading("github_issues_opened").fields, payload) == [
        ("repo", "acme/web"), ("number", "12"), ("labels", "bug"), ("labels", "gate"), ("issue.state", "open"),
    ]  # fmt: skip


def test_a_delivery_is_known_by_what_its_sender_has_proved() -> None:
    body = b'{"uuid": "u-1"}'
    headers = {"webhook-id": "w-1", "x-github-delivery": "d-1", "x-request-id": "r-1"}
    known = {one: delivery_id(one, headers, json.loads(body), body) for one in Provider}
    assert (known[Provider.STANDARD], known[Provider.BEARER], known[Provider.POSTHOG]) == ("w-1", "w-1", "u-1")
    assert known[Provider.GITHUB] == known[Provider.SENTRY] == f"sha256:{hashlib.sha256(body).hexdigest()}"
    assert delivery_id(Provider.BEARER, {}, {}, b"{}") is None
    assert delivery_id(Provider.POSTHOG, headers, {}, b"{}") == "w-1", "the token proves the header too"
    signed = headers | {"x-posthog-signature": "s"}
    assert delivery_id(Provider.POSTHOG, signed, {}, b"{}") == f"sha256:{hashlib.sha256(b'{}').hexdigest()}"


def test_keys_authors_and_runs() -> None:
    assert dedup_key("github", "d-1", "dlv_1") == "github:d-1"
    assert dedup_key("bearer", None, "dlv_1") == "delivery:dlv_1"
    assert is_allowed("anybody", ())
    assert is_allowed("Ada-Bot", ("ada-*",))
    assert not is_allowed("", ("ada",))
    run = "run_01m7p2e51nrjjd7bkcj0najrbs"
    assert runs_named(f'{{"ref": "refs/heads/lamp/{run}", "again": "{run}"}}') == [run]
