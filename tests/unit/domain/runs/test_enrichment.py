from dataclasses import replace

import pytest

from lamplighter.domain.runs.enrichment import EnrichmentFailed, Occasion, enrich

GITHUB = {
    "title": "Issue #7: the lamp\nis out",
    "description": "It flickers.",
    "relatedFiles": ["lamp.py", 3],
    "github": {"issueUrl": "https://example.test/7", "compareUrl": "https://example.test/c", "action": "opened"},
}
DELIVERY = Occasion("triage", "webhook", "github", event_type="issues:opened", external_id="d-1", parsed=GITHUB)


def test_a_delivery_becomes_the_payload_of_version_one() -> None:
    assert enrich(DELIVERY) == {
        "version": 1,
        "provider": "github",
        "summary": {"title": "Issue #7: the lamp is out", "description": "It flickers."},
        "source": {"url": "https://example.test/7", "external_id": "d-1", "event_type": "issues:opened"},
        "related_files": ["lamp.py"],
        "suggested_rig": None,
        "provider_context": GITHUB["github"],
        "automation_context": {"automation": "triage", "trigger": "webhook", "slot": None},
    }


@pytest.mark.parametrize("title", [None, "", " \n ", 7, ["x"]])
def test_context_without_a_title_fails_enrichment(title: object) -> None:
    with pytest.raises(EnrichmentFailed, match="no title") as failed:
        enrich(replace(DELIVERY, parsed=GITHUB | {"title": title}))
    assert failed.value.reason == "enrichment_failed"


def test_a_delivery_that_nobody_parsed_fails_enrichment() -> None:
    with pytest.raises(EnrichmentFailed) as failed:
        enrich(replace(DELIVERY, parsed=None))
    assert failed.value.reason == "enrichment_failed"


def test_an_occasion_that_is_gone_is_missing_context() -> None:
    with pytest.raises(EnrichmentFailed) as failed:
        enrich(None)
    assert failed.value.reason == "missing_context"


@pytest.mark.parametrize("kind", ["cooldown", "cron", "schedule", "condition", "manual"])
def test_every_trigger_of_our_own_has_a_title(kind: str) -> None:
    payload = enrich(Occasion("sweep", kind, slot="2026-03-02T09:00Z"))
    assert payload["summary"]["title"].endswith("of sweep")
    assert payload["summary"]["description"] == "2026-03-02T09:00Z"
    assert payload["provider"] == kind


@pytest.mark.parametrize(
    ("events", "title"),
    [
        ([{"type": "bead.closed", "message": "Fix the lamp"}], "bead.closed: Fix the lamp"),
        ([{"type": "bead.closed", "subject": "sf-1"}], "bead.closed: sf-1"),
        ([{"type": "bead.closed"}], "bead.closed"),
        ([{"type": "a.b"}, {"type": "a.c"}, {"type": "a.b"}], "3 events: a.b, a.c"),
        ([{"type": f"a.{n}"} for n in range(5)], "5 events: a.0, a.1, a.2, …"),
    ],
)
def test_an_event_gate_tells_its_events(events: list[dict[str, str]], title: str) -> None:
    assert enrich(Occasion("react", "event", events=events))["summary"]["title"] == title


def test_an_event_gate_without_events_has_nothing_to_say() -> None:
    with pytest.raises(EnrichmentFailed):
        enrich(Occasion("react", "event"))


@pytest.mark.parametrize(
    ("blocks", "url"),
    [
        ({"linear": {"issueUrl": "l"}, "github": {"prUrl": "g"}}, "l"),
        ({"sentry": {"issue_url": "s"}, "posthog": {"eventUrl": "p"}}, "s"),
        ({"github": {"workflowUrl": "w", "compareUrl": "c"}}, "c"),
        ({"github": {"issueUrl": "", "prUrl": None, "workflow_url": "w"}}, "w"),
        ({"posthog": {"eventUrl": "p"}}, "p"),
        ({"gmail": {"url": "m"}}, None),
        ({"github": "rubbish"}, None),
    ],
)
def test_the_source_url_follows_its_precedence(blocks: dict[str, object], url: str | None) -> None:
    assert enrich(replace(DELIVERY, parsed={"title": "t"} | blocks))["source"]["url"] == url


def test_only_the_first_provider_s_block_is_copied() -> None:
    payload = enrich(replace(DELIVERY, parsed={"title": "t", "gmail": {"from": "a"}, "sentry": {"release": "1"}}))
    assert payload["provider_context"] == {"release": "1"}
    assert enrich(replace(DELIVERY, parsed={"title": "t"}))["provider_context"] == {}


def test_the_same_occasion_gives_the_same_payload() -> None:
    assert enrich(DELIVERY) == enrich(DELIVERY)
