"""What people type for an id, resolved for every operation in one place, on both databases."""

import pytest
from automation_city import City

from lamplighter.domain.beads.model import NewBead
from lamplighter.kit.errors import NotFound, UsageError
from lamplighter.ports.runs import RunUnknown
from lamplighter.services import auditing, looking, tokens
from lamplighter.services.automations import editing, operations, queries
from lamplighter.services.automations.firing import AutomationUnknown
from lamplighter.services.operation import judged
from lamplighter.services.resolving import RESOLVERS, matching, resolved, run_id, the_one
from lamplighter.services.runs.operations import CANCEL_RUN, CancelRun
from lamplighter.services.runs.queries import LIST_RUNS, SHOW_RUN, ListRuns, ShowRun


def fired(city: City, name: str) -> str:
    city.advance(seconds=1)
    return city.run_now(name).run


@pytest.fixture
def runs(city: City) -> dict[str, str]:
    city.add("sweep", overlap="allow")
    city.add("light")
    return {"old": fired(city, "sweep"), "lit": fired(city, "light"), "new": fired(city, "sweep")}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("last", "new"), ("last:light", "lit"), ("last:sweep", "new"), ("light", "lit"), ("sweep", "new"),
    ],
)  # fmt: skip
def test_words_for_the_newest(city: City, runs: dict[str, str], typed: str, meant: str) -> None:
    assert city.read(run_id, typed) == runs[meant]


def test_the_short_name_of_a_rigs_automation_means_its_newest_run(city: City) -> None:
    city.add("trim", rig="web")
    first = fired(city, "trim:rig:web")
    assert city.read(run_id, "trim") == city.read(run_id, "last:trim") == first
    city.add("trim", rig="docs")
    assert city.read(run_id, "trim") == first  # nothing has run in the other rig
    second = fired(city, "trim:rig:docs")
    with pytest.raises(UsageError, match="several runs") as told:
        city.read(run_id, "trim")
    assert first[-6:] in (told.value.hint or "")
    assert second[-6:] in (told.value.hint or "")


def test_the_short_name_of_a_rigs_only_automation_means_that_one_everywhere(city: City) -> None:
    city.add("trim", rig="web")
    assert city.do(queries.SHOW, queries.ShowAutomation("trim")).scoped_name == "trim:rig:web"
    assert city.do(queries.HISTORY, queries.AutomationHistory("trim")) == []
    run = city.do(operations.RUN_AUTOMATION, operations.RunAutomation("trim"))
    assert run.automation == "trim:rig:web"
    assert [one.id for one in city.do(LIST_RUNS, ListRuns(automation="trim"))] == [run.id]
    assert city.do(operations.DISABLE, operations.DisableAutomation("trim")).scoped_name == "trim:rig:web"
    assert city.do(looking.PIN, looking.PinAutomation("trim")).automation == "trim:rig:web"
    [entry, *_] = city.do(auditing.LIST, auditing.ListAudit())
    assert entry.object == "trim:rig:web"


def test_a_short_name_that_says_too_little_is_refused_with_the_names_there_are(city: City) -> None:
    city.add("trim", rig="web")
    with pytest.raises(AutomationUnknown):  # of the rig that is named
        city.do(queries.SHOW, queries.ShowAutomation("trim", rig="docs"))
    city.add("trim", rig="docs")
    with pytest.raises(AutomationUnknown, match="`trim:rig:docs`, `trim:rig:web`"):
        city.do(queries.SHOW, queries.ShowAutomation("trim"))
    city.add("trim")
    assert city.do(queries.SHOW, queries.ShowAutomation("trim")).scoped_name == "trim"


def test_the_name_of_a_deleted_automation_of_the_city_still_means_that_one(city: City) -> None:
    city.add("trim")
    old = city.finish(city.run_now("trim").run).id
    city.run(editing.delete, "trim", ctx=city.context)
    city.add("trim", rig="web")
    assert [one.id for one in city.do(LIST_RUNS, ListRuns(automation="trim"))] == [old]


def test_the_audit_names_the_run_that_was_meant(city: City, runs: dict[str, str]) -> None:
    city.do(CANCEL_RUN, CancelRun("last:light"))
    [entry, *_] = city.do(auditing.LIST, auditing.ListAudit())
    assert entry.object == runs["lit"]


def test_every_unique_beginning_and_end_is_taken(city: City, runs: dict[str, str]) -> None:
    for run in runs.values():
        assert city.read(run_id, run) == run
        assert city.read(run_id, run[-6:]) == run
        assert city.read(run_id, run[-6:].upper()) == run
        assert city.read(run_id, run[:-1]) == run
        assert city.read(run_id, run.removeprefix("run_")[:-2]) == run


def test_one_that_could_be_several_lists_them(city: City, runs: dict[str, str]) -> None:
    with pytest.raises(UsageError) as told:
        city.read(run_id, "run_0")
    assert "several runs" in told.value.message
    assert all(run[-6:] in (told.value.hint or "") for run in runs.values())
    assert "light" in (told.value.hint or "")


@pytest.mark.parametrize("typed", ["nothing", "last:nothing", "zzzz", "%", "a'b", "run_", "x" * 500, "-", "ses_0"])
@pytest.mark.usefixtures("runs")
def test_what_means_nothing_is_left_to_the_operation(city: City, typed: str) -> None:
    with pytest.raises(RunUnknown, match="There is no run"):
        city.read(judged, SHOW_RUN, ShowRun(typed), city.context)


def test_every_operation_takes_it(city: City, runs: dict[str, str]) -> None:
    ended = city.run(judged, CANCEL_RUN, CancelRun("last:light"), city.context)
    assert (ended.id, ended.state) == (runs["lit"], "canceled")
    page = city.read(judged, LIST_RUNS, ListRuns(before=runs["lit"][-6:]), city.context)
    assert [one.id for one in page] == [runs["old"]]


def test_nothing_is_asked_of_the_store_for_a_whole_id(city: City) -> None:
    whole = ShowRun("run_" + "0" * 26)
    assert resolved(None, whole) is whole  # type: ignore[arg-type]  # it must not be used
    with pytest.raises(NotFound):
        city.read(judged, SHOW_RUN, whole, city.context)


def test_beads_by_a_part_of_their_id(city: City) -> None:
    from lamplighter.services.beads.queries import SHOW, ShowBead

    for bead in ("sf-4k2", "sf-4m7", "we-9xy"):
        city.run(lambda tx, bead=bead: tx.beads.insert(bead, NewBead("t"), root=bead, run=None, now=city.clock.now()))

    def shown(typed: str) -> str:
        found: str = city.read(judged, SHOW, ShowBead(typed), city.context).id
        return found

    assert [shown(typed) for typed in ("sf-4k2", "4k2", "we", "9xy", "SF-4M")] == [
        "sf-4k2", "sf-4k2", "we-9xy", "we-9xy", "sf-4m7",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="several beads"):
        shown("sf-4")


def test_of_given_ids_the_one_that_matches() -> None:
    ids = ["ses_1", "ses_10", "ses_2abcd"]
    assert matching("ses_1", ids) == ["ses_1"]
    assert the_one("abcd", "session", ids) == "ses_2abcd"
    assert the_one("cd", "session", ids) is None
    with pytest.raises(UsageError, match="several sessions"):
        the_one("ses_", "session", ids)


@pytest.mark.parametrize("noun", ["entry", "outbox", "notice", "delivery", "item"])
def test_what_tables_list_is_found_by_what_they_show(city: City, noun: str) -> None:
    resolve = RESOLVERS[noun]
    whole = "adt_01m7nr6nw5xe0aahdscs3ad9j4"
    assert city.read(resolve, whole) == whole
    assert city.read(resolve, "nothing") == "nothing"


def test_the_next_page_of_the_audit_and_a_token_are_named_by_what_the_table_shows(city: City) -> None:
    for name in ("one", "two"):
        city.do(tokens.CREATE, tokens.CreateToken(name))
    newest, oldest = city.do(auditing.LIST, auditing.ListAudit())
    assert city.do(auditing.LIST, auditing.ListAudit(before=newest.id[-6:])) == [oldest]
    first = city.do(tokens.LIST, tokens.ListTokens())[0]
    assert city.do(tokens.REVOKE, tokens.RevokeToken(first.id[-6:])).id == first.id
    with pytest.raises(tokens.TokenUnknown):
        city.do(tokens.REVOKE, tokens.RevokeToken("nobody"))
