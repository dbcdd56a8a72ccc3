"""Each kind of item has a sentence that reads well and a command."""

from datetime import UTC, datetime, timedelta

import pytest

from lamplighter.domain.inbox.items import InboxItem, Kind, Need, NotOpen, Shown, State, fix, how_settled, sentence
from lamplighter.kit.records import changed

NOW = datetime(2026, 11, 17, 21, tzinfo=UTC)


def item(kind: Kind, *, count: int = 1, **facts: str) -> InboxItem:
    return changed(Need(kind, "f", "nightly", NOW, facts, "run_1").item("inb_1", NOW), count=count)


CASES = [
    (
        item(Kind.NEEDS_HUMAN, question="Which branch?"),
        "nightly asks: Which branch?",
        "lamp run resolve run_1 --outcome succeeded",
    ),
    (
        item(Kind.NEEDS_HUMAN),
        "A run of nightly ended and asks for a person.",
        "lamp run resolve run_1 --outcome succeeded",
    ),
    (
        item(Kind.FAILED, reason="exit_1", error="disk full"),
        "nightly failed (exit 1): disk full.",
        "lamp run retry run_1",
    ),
    (item(Kind.FAILED, count=3, error="disk full!"), "nightly failed 3 times: disk full!", "lamp run retry run_1"),
    (item(Kind.TIMED_OUT, count=2), "nightly ran out of time 2 times.", "lamp run retry run_1"),
    (item(Kind.SKIPPED), "nightly could not run: its directory is missing.", "lamp run retry run_1"),
    (
        item(Kind.QUARANTINED, error="started 5 times"),
        "Agent nightly is quarantined: started 5 times.",
        "lamp agent unquarantine nightly",
    ),
    (
        item(Kind.NEEDS_HUMAN, question="Trim, then light.", plan=True),
        "nightly has a plan that waits for approval: Trim, then light.",
        "lamp run approve run_1",
    ),
    (
        item(Kind.WAITING, question="rm -rf build Do you want to proceed?"),
        "Agent nightly waits at a permission prompt: rm -rf build Do you want to proceed?",
        "lamp agent attach nightly",
    ),
    (
        item(Kind.DISABLED, reason="it failed 5 times in a row"),
        "nightly was disabled, because it failed 5 times in a row.",
        "lamp automation enable nightly",
    ),
    (
        item(Kind.QUIET, message="nothing has fired since noon"),
        "nightly has gone quiet: nothing has fired since noon.",
        "lamp automation explain nightly",
    ),
    (
        item(Kind.BROKEN, error="bad key"),
        "The file of nightly cannot be used, so that it fires nothing: bad key.",
        "lamp automation show nightly",
    ),
    (
        item(Kind.DRAFT),
        "An agent proposed the automation nightly; it fires nothing until a person enables it.",
        "lamp automation enable nightly",
    ),
    (
        item(Kind.CONFIG, error="bad key"),
        "The changed configuration is refused, and the one before stays in force: bad key.",
        "lamp config check",
    ),
    (
        item(Kind.OUTBOX, error="disk full", item="out_1"),
        "Work was given up (nightly): disk full.",
        "lamp outbox retry out_1",
    ),
    (item(Kind.DESTINATION, error="503"), "Destination nightly takes no notices: 503.", "lamp notify test nightly"),
]


@pytest.mark.parametrize(("one", "told", "command"), CASES)
def test_what_is_said_and_what_would_mend_it(one: InboxItem, told: str, command: str) -> None:
    assert sentence(one) == told.replace("?.", "?")
    assert fix(one) == command


def test_an_agent_that_asks_can_be_answered() -> None:
    one = changed(item(Kind.NEEDS_HUMAN), facts={"question": "Which?", "answerable": True})
    assert fix(one) == "lamp run answer run_1 TEXT"


def test_an_exit_code_that_is_all_that_is_known_is_said_once() -> None:
    once, other = (item(Kind.FAILED, reason="exit_4", error=f"exit code {code}") for code in (4, 14))
    assert (sentence(once), sentence(other)) == ("nightly failed (exit 4).", "nightly failed (exit 4): exit code 14.")


def test_a_refused_login_leads_to_how_one_signs_in() -> None:
    assert fix(item(Kind.FAILED, reason="login")) == "lamp login list"


def test_every_kind_is_said() -> None:
    assert {one.kind for one, _, _ in CASES} == set(Kind)


def test_a_snoozed_item_comes_back_by_itself() -> None:
    one = changed(item(Kind.FAILED), snoozed_until=NOW + timedelta(hours=1))
    assert one.shown(NOW) is Shown.SNOOZED
    assert one.shown(NOW + timedelta(hours=1)) is Shown.OPEN
    assert changed(one, state=State.SETTLED).shown(NOW) is Shown.SETTLED


def test_a_settled_item_says_how_and_by_whom() -> None:
    one = changed(item(Kind.FAILED), state=State.SETTLED, settled_by="eva", settled_how="dismissed")
    assert how_settled(one) == "it was dismissed"
    assert "by eva: it was dismissed" in NotOpen(one).message
