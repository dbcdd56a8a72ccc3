"""What an automation names must be there; lists tell the last run, the limits in force and what leads nowhere."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from automation_city import City

from lamplighter.domain.beads.formulas import Formula, FormulaInvalid, Step
from lamplighter.domain.city.model import Configuration
from lamplighter.kit.errors import NotFound
from lamplighter.kit.shapes import to_json
from lamplighter.services import configurations, looking
from lamplighter.services.automations import operations, outlook, queries
from lamplighter.services.automations.editing import DefinitionInvalid
from lamplighter.services.automations.firing import AutomationUnknown
from lamplighter.services.context import Configured, Context
from lamplighter.services.operation import judged
from lamplighter.services.runs import review
from lamplighter.services.runs.queries import LIST_RUNS, ListRuns
from lamplighter.store.artifacts import ArtifactRow


@dataclass(frozen=True)
class Formulas:
    """A city with two formulas that can be cooked, `feature`, and `lantern`, which has to be told where; `broken`
    is the name of a file that is wrong.
    """

    def every(self, rig: str | None) -> Any:
        raise AssertionError(rig)

    def read(self, name: str, rig: str | None) -> Formula:
        if name == "broken":
            raise FormulaInvalid("broken.formula.toml", ["steps: is missing"])
        if name == "lantern":
            return Formula(name, "", "", (), (Step("hang", "Hang it {{where}}"),), f"{rig}")
        if name != "feature":
            raise NotFound(f"There is no formula `{name}`")
        return Formula(name, "", "", (), (), f"{rig}")


def do(city: City, operation: Any, ask: Any, *, surface: str = "cli") -> Any:
    """As `city.do`, in a city that has formulas."""
    known = city.configured
    configured = Configured(known.city, known.rules, Formulas())
    ctx = replace(city.context, surface=surface, configured=configured)
    assert isinstance(ctx, Context)
    return (city.read if operation.kind.value == "read" else city.run)(judged, operation, ask, ctx)


def create(city: City, name: str = "job", *, surface: str = "cli", **keys: Any) -> Any:
    body = {"name": name, "gate": "manual"} | keys
    return do(city, operations.CREATE, operations.CreateAutomation(body), surface=surface)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"agent": {"prompt": "p", "configuration": "nope"}}, "agent.configuration: there is no configuration `nope`"),
        ({"agent": {"prompt": "p", "preset": "cluade"}}, "agent.preset: there is no preset `cluade`; did you mean"),
        (
            {"agent": {"prompt": "p", "strategy": "agent_decide", "configurations": ["web", "gone"]}},
            "agent.configurations: there is no configuration `gone`",
        ),
        (
            {"agent": {"prompt": "p", "strategy": "agent_decide", "configurations": ["web"], "fallback": "gone"}},
            "agent.fallback: there is no configuration `gone`",
        ),
        ({"exec": "true", "gate": "webhook", "connection": "hub"}, "connection: there is no connection `hub`"),
        ({"formula": "none"}, "formula: There is no formula `none`"),
        ({"formula": "broken"}, "steps: is missing"),
        ({"formula": "lantern"}, "formula: Formula lantern cannot be cooked: `where` is missing; `vars` of the"),
        ({"formula": "feature", "vars": {"wehre": "here"}}, "`wehre` is not one of its variables"),
        ({"exec": "true", "rig": "wbe"}, "rig: there is no rig `wbe`; did you mean `web`?"),
    ],
)
@pytest.mark.parametrize("surface", ["cli", "api", "tool"])
def test_what_is_not_there_is_refused_at_creation(city: City, keys: dict[str, Any], told: str, surface: str) -> None:
    city.run(configurations.sync, (Configuration(name="web"),), city.clock.now())
    with pytest.raises(DefinitionInvalid, match=r"(?s)job.* is not right") as refused:
        create(city, surface=surface, **keys)
    assert told in refused.value.message
    assert city.read(lambda tx: tx.automations.page()) == []


def test_an_edit_that_leaves_a_lost_name_alone_is_taken_and_one_that_adds_another_is_not(city: City) -> None:
    city.add("old", formula="gone")
    edit = operations.EditAutomation("old", changes={"timeout": "9s"})
    assert do(city, operations.EDIT, edit).policies["timeout"] == "9s"
    with pytest.raises(DefinitionInvalid, match="There is no formula `other`"):
        do(city, operations.EDIT, operations.EditAutomation("old", changes={"formula": "other"}))


def test_lists_tell_names_that_lead_nowhere_and_formulas_that_are_refused(city: City) -> None:
    city.add("lost", formula="gone")
    city.add("wrong", formula="broken")
    city.add("good", formula="feature")
    city.add("fed", formula="lantern", vars={"where": "here"})
    found = {one.name: one.warnings for one in do(city, queries.LIST, queries.ListAutomations())}
    assert found["good"] == found["fed"] == []
    assert found["lost"] == ["formula: There is no formula `gone`"]
    assert "steps: is missing" in found["wrong"][0]


@pytest.mark.parametrize("name", ["bad name", "a\tb"])
def test_a_name_with_a_space_is_refused_where_it_is_made_and_kept_where_it_is(city: City, name: str) -> None:
    with pytest.raises(DefinitionInvalid, match="name: "):
        create(city, name, exec="true")


def test_an_automation_of_a_file_may_have_a_space_and_its_copy_may_not(city: City) -> None:
    wanted = operations.ImportAutomation('[automation]\nexec = "true"\ngate = "manual"\n', "bad name")
    with pytest.raises(DefinitionInvalid, match="write `bad-name`"):
        do(city, operations.IMPORT, wanted)
    made = do(city, operations.IMPORT, replace(wanted, name="good", disabled=True))
    assert (made.enabled, made.source) == (False, "import")


def test_a_tool_that_names_no_trigger_is_told_its_own_field(city: City) -> None:
    body = {"name": "job", "action": {"kind": "exec", "command": "true"}}
    with pytest.raises(DefinitionInvalid) as refused:
        do(city, operations.CREATE, operations.CreateAutomation(body), surface="tool")
    assert [one.key for one in refused.value.problems] == ["triggers"]


def test_lists_have_the_last_run_and_the_limits_in_force(city: City) -> None:
    city.rules = replace(city.rules, cap=timedelta(minutes=2))
    city.add("job")
    city.add("quick", timeout="9s", deadline="1m")
    city.finish(city.run_now("job").run, "failed", "exit_1")
    city.advance(seconds=1)
    last = city.run_now("job").run
    city.finish(last, "failed", "exit_2")
    job, quick = do(city, queries.LIST, queries.ListAutomations())
    assert (job.last_run.id, job.last_run.state, job.last_run.reason) == (last, "failed", "exit_2")
    assert (job.limits.timeout, job.limits.deadline) == ("2m", "2h")
    assert (quick.last_run, quick.limits.timeout, quick.limits.deadline) == (None, "9s", "1m")
    assert do(city, queries.SHOW, queries.ShowAutomation("job")).last_run == job.last_run


def test_what_a_list_shows_can_be_given_back(city: City) -> None:
    city.add("job")
    shown = to_json(do(city, queries.SHOW, queries.ShowAutomation("job")))
    body = {**shown, "name": "copy"}
    assert do(city, operations.CREATE, operations.CreateAutomation(body)).name == "copy"


def test_a_list_of_runs_has_their_artifacts(city: City) -> None:
    city.add("job", overlap="allow")
    bare, rich = city.run_now("job").run, city.run_now("job").run
    city.run(lambda tx: tx.artifacts.put(ArtifactRow(rich, "completion", "k", 2, "t", city.clock.now())))
    found = {one.id: one.artifacts for one in do(city, LIST_RUNS, ListRuns())}
    assert found[bare] == []
    assert [one.name for one in found[rich]] == ["completion"]


def test_a_trigger_event_is_processing_while_its_run_works(city: City) -> None:
    city.add("job")
    run = city.run_now("job").run
    seen = [city.history("job")[0]["status"]]
    city.start(run)
    seen.append(city.history("job")[0]["status"])
    city.finish(run)
    seen.append(city.history("job")[0]["status"])
    assert seen == ["fired", "processing", "completed"]


def test_the_history_of_a_retried_slot_tells_both(city: City) -> None:
    city.add("job", gate="cooldown", interval="1h")
    city.tick()
    (first,) = city.runs_of("job")
    city.finish(first.id, "failed", "exit_1")
    city.advance(seconds=1)
    second = city.run(review.retry, first.id, ctx=city.context)
    city.finish(second.id)
    told = [(one["run"], one["status"], one["run_state"], one["slot"]) for one in city.history("job")]
    slot = told[0][3]
    assert told == [(first.id, "failed", "failed", slot), (second.id, "completed", "succeeded", slot)]


def test_events_of_failures_name_automation_run_and_attempt_and_say_which_is_final(city: City) -> None:
    city.add("job", retry=1)
    first = city.finish(city.run_now("job").run, "failed", "exit_1")
    city.advance(hours=1)
    second = next(run for run in city.runs_of("job") if run.id != first.id)
    city.finish(second.id, "failed", "exit_1")
    keys = ("automation", "run", "attempt", "final")
    told = [tuple(one.payload[key] for key in keys) for one in city.events("automation.failed")]
    assert told == [("job", first.id, 0, False), ("job", second.id, 1, True)]


def test_an_automation_can_wait_for_the_final_failure_of_one_other(city: City) -> None:
    city.add("job", retry=1)
    city.add("alarm", gate="event", on="automation.failed", match={"automation": "job", "final": True}, exec="true")
    first = city.finish(city.run_now("job").run, "failed", "exit_1")
    city.tick()
    assert city.runs_of("alarm") == []
    told = " ".join(city.read(outlook.explained, "alarm", now=city.clock.now(), rules=city.rules))
    assert "came and did not open it: `final` is false; wanted is true" in told
    city.advance(hours=1)
    city.finish(next(run for run in city.runs_of("job") if run.id != first.id).id, "failed", "exit_1")
    city.tick()
    assert len(city.runs_of("alarm")) == 1


def test_an_automation_that_only_rigs_have_is_named_with_them(city: City) -> None:
    for rig in ("web", "api"):
        city.add("dbh", rig=rig)
    with pytest.raises(AutomationUnknown, match="rigs have `dbh:rig:api`, `dbh:rig:web`") as refused:
        city.run_now("dbh")
    assert refused.value.hint == "Add `--rig api`, or name it as `dbh:rig:api`."


def test_a_check_shows_no_next_time_in_the_past(city: City) -> None:
    city.add("job", gate="cooldown", interval="1h")
    city.add("off", gate="cron", schedule="0 * * * *", enabled=False)
    city.advance(days=2)
    found = city.read(outlook.verdicts, now=city.clock.now(), rules=city.rules)
    nexts = {one.view().scoped_name: one.view().next_due_at for one in found}
    assert nexts == {"job": city.clock.now(), "off": None}


def test_who_keeps_as_many_on_top_as_may_be_can_pin_one_of_them_again(city: City) -> None:
    for number in range(looking.MOST_PINS):
        city.add(f"job-{number}")
        do(city, looking.PIN, looking.PinAutomation(f"job-{number}"))
    assert do(city, looking.PIN, looking.PinAutomation("job-7")).automation == "job-7"
    city.add("another")
    with pytest.raises(looking.TooManyPins):
        do(city, looking.PIN, looking.PinAutomation("another"))
    with pytest.raises(AutomationUnknown, match="did you mean `another`"):
        do(city, looking.PIN, looking.PinAutomation("anothr"))
