"""`lamp automation`, `run`, `simulate`, `pause`, `resume`: what they print and how they end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lamplighter.cli.main import run

Lamp = Callable[..., tuple[int, str, str]]

HELLO = """
[automation]
description = "Says hello."
exec = "echo hello $LAMP_RUN_ID; cat $LAMP_TRIGGER_FILE"
gate = "cooldown"
interval = "1h"
"""
BAD = '[automation]\nexec = "true"\ngate = "cron"\nschedule = "61 * * * *"\n'


@pytest.fixture
def town(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert run(["init", str(root)]) == 0
    define(root, "hello", HELLO)
    return root


@pytest.fixture
def lamp(town: Path, capsys: pytest.CaptureFixture[str]) -> Lamp:
    capsys.readouterr()

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["--city", str(town), *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def define(root: Path, name: str, text: str) -> Path:
    file = root / ".gc" / "formulas" / "automations" / name / "automation.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def answer(lamp: Lamp, *arguments: str) -> Any:
    code, out, err = lamp(*arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_automations_beside_city_toml_are_read_below_those_of_the_formulas_directory(lamp: Lamp, town: Path) -> None:
    for name in ("nightly", "hello"):
        file = town / "automations" / name / "automation.toml"
        file.parent.mkdir(parents=True)
        file.write_text(HELLO.replace("Says hello", f"Beside, {name}"))
    found = {one["scoped_name"]: one["description"] for one in answer(lamp, "automation", "list")}
    assert found == {"hello": "Says hello.", "nightly": "Beside, nightly."}


def test_the_root_as_formulas_directory_is_read_once(lamp: Lamp, town: Path) -> None:
    with (town / "city.toml").open("a") as file:
        file.write('\n[formulas]\ndir = "."\n')
    place = town / "automations" / "nightly" / "automation.toml"
    place.parent.mkdir(parents=True)
    place.write_text(HELLO)
    assert [one["scoped_name"] for one in answer(lamp, "automation", "list")] == ["nightly"]


def test_list_shows_a_file_s_automation_in_the_shape_of_every_surface(lamp: Lamp) -> None:
    (one,) = answer(lamp, "automation", "list")
    assert (one["scoped_name"], one["source"], one["enabled"], one["problems"]) == ("hello", "file", True, [])
    assert one["action"]["kind"] == "exec"
    assert one["triggers"][0]["kind"] == "cooldown"
    assert one["path"].endswith("hello/automation.toml")


def test_a_bad_file_is_listed_with_its_problem_and_its_neighbour_lives(lamp: Lamp, town: Path) -> None:
    define(town, "bad", BAD)
    found = {one["name"]: one for one in answer(lamp, "automation", "list")}
    assert "has a minute of 61; minutes go from 0 to 59" in found["bad"]["problems"][0]
    assert found["hello"]["problems"] == []


def test_run_without_a_daemon_works_the_run_here_and_shows_its_output(lamp: Lamp) -> None:
    code, out, _ = lamp("automation", "run", "hello", "--payload", '{"branch": "main"}')
    assert code == 0
    assert "hello run_" in out
    assert '"branch": "main"' in out
    assert "succeeded" in out


def test_a_run_by_hand_moves_no_due_time(lamp: Lamp) -> None:
    before = answer(lamp, "automation", "show", "hello")["triggers"][0]["next_due_at"]
    answer(lamp, "automation", "run", "hello")
    assert answer(lamp, "automation", "show", "hello")["triggers"][0]["next_due_at"] == before


def test_a_failing_run_exits_1_and_keeps_exit_code_and_output(lamp: Lamp) -> None:
    answer(lamp, "automation", "create", "sad", "--exec", "echo oh no; exit 3", "--manual")
    code, out, _ = lamp("automation", "run", "sad", "--json")
    shown = json.loads(out)
    assert code == 1
    assert (shown["state"], shown["exit_code"], shown["output_tail"]) == ("failed", 3, "oh no\n")
    (listed,) = answer(lamp, "run", "list", "--state", "failed")
    assert listed["id"] == shown["id"]


def test_retry_makes_a_new_run_linked_to_the_old(lamp: Lamp) -> None:
    first = answer(lamp, "automation", "run", "hello")
    second = answer(lamp, "run", "retry", first["id"])
    assert (second["retry_of"], second["state"]) == (first["id"], "succeeded")
    events = answer(lamp, "run", "show", first["id"])["events"]
    assert [event["to"] for event in events][-1] == "succeeded"


def test_check_exits_0_with_something_due_and_1_without(lamp: Lamp) -> None:
    """Case 23 of the reference."""
    code, out, _ = lamp("automation", "check")
    assert code == 0
    assert "yes" in out
    assert "never run" in out
    answer(lamp, "automation", "create", "later", "--exec", "true", "--daily", "03:30")
    assert lamp("automation", "check", "later")[0] == 1


def test_check_gives_a_condition_the_surroundings_that_the_daemon_gives_it(lamp: Lamp, town: Path) -> None:
    check = 'test "$LAMP_AUTOMATION" = told && test -f "$AUTOMATION_DIR/automation.toml"'
    define(town, "told", f"[automation]\nexec = 'true'\ngate = 'condition'\ncheck = '{check}'\n")
    (found,) = answer(lamp, "automation", "check", "told")
    assert found["due"]


def test_check_runs_the_condition(lamp: Lamp) -> None:
    answer(lamp, "automation", "create", "yes", "--exec", "true", "--condition", "true")
    answer(lamp, "automation", "create", "no", "--exec", "true", "--condition", "exit 4")
    assert lamp("automation", "check", "yes")[0] == 0
    assert lamp("automation", "check", "no")[0] == 1


def test_explain_says_in_sentences_why_and_when(lamp: Lamp) -> None:
    answer(lamp, "automation", "create", "later", "--exec", "true", "--weekly", "mon 14:30", "--timezone", "UTC")
    answer(lamp, "automation", "disable", "later")
    said = " ".join(answer(lamp, "automation", "explain", "later")["sentences"])
    assert "disabled" in said
    assert "Weekly on Mon at 14:30" in said


def test_next_and_simulate_foretell_in_order(lamp: Lamp) -> None:
    answer(lamp, "automation", "create", "noon", "--exec", "true", "--cron", "0 12 * * *", "--timezone", "UTC")
    times = answer(lamp, "automation", "next", "noon", "--count", "3")
    assert [one["local"][11:16] for one in times] == ["12:00"] * 3
    week = answer(lamp, "simulate", "--days", "7", "--from", "2026-12-01")
    assert sum(one["scoped_name"] == "noon" for one in week) == 7
    assert week == sorted(week, key=lambda one: one["at"])


def test_edit_changes_only_what_is_named_and_rearms_the_trigger(lamp: Lamp) -> None:
    answer(lamp, "automation", "create", "tidy", "--exec", "true", "--daily", "09:00", "--timeout", "2m")
    value = answer(lamp, "automation", "edit", "tidy", "--daily", "18:00")
    assert value["triggers"][0]["human_schedule"].startswith("Daily at 18:00")
    assert value["policies"]["timeout"] == "2m"


def test_an_automation_of_a_file_is_read_only_here(lamp: Lamp) -> None:
    code, _, err = lamp("automation", "edit", "hello", "--timeout", "1m")
    assert code == 4
    assert "Edit the file" in err
    assert lamp("automation", "delete", "hello")[0] == 4


def test_an_unknown_automation_gives_the_nearest_and_exits_3(lamp: Lamp) -> None:
    code, _, err = lamp("automation", "show", "helo")
    assert code == 3
    assert "did you mean `hello`?" in err


def test_a_definition_that_is_wrong_tells_every_problem_and_stores_nothing(lamp: Lamp) -> None:
    code, _, err = lamp("automation", "create", "bad", "--exec", "true", "--daily", "25:00", "--set", "overlp=skip")
    assert code == 2
    assert "hour" in err
    assert "did you mean `overlap`?" in err
    assert lamp("automation", "show", "bad")[0] == 3


def test_two_triggers_on_the_command_line_are_refused(lamp: Lamp) -> None:
    code, _, err = lamp("automation", "create", "bad", "--exec", "true", "--daily", "09:00", "--cron", "* * * * *")
    assert code == 2
    assert "two triggers" in err


def test_a_template_pre_fills_and_never_enables(lamp: Lamp, town: Path) -> None:
    known = answer(lamp, "automation", "templates")
    assert len(known) >= 8
    for template in known:
        name = f"from-{template['id']}"
        value = answer(lamp, "automation", "create", name, "--template", template["id"], "--path", str(town))
        assert (value["enabled"], value["action"]["kind"]) == (False, "agent")


def test_what_a_template_does_not_take_is_refused_by_name(lamp: Lamp) -> None:
    code, _, err = lamp("automation", "create", "mine", "--template", "issue-triage", "--cron", "0 9 * * *")
    assert (code, "`gate` is none of them" in err) == (2, True)
    assert lamp("automation", "show", "mine")[0] == 3


def test_a_page_of_the_list_says_how_to_see_what_follows(lamp: Lamp) -> None:
    for name in ("b", "c"):
        answer(lamp, "automation", "create", name, "--exec", "true", "--manual")
    code, out, err = lamp("automation", "list", "--limit", "1")
    assert (code, len(out.splitlines()), "`--after b` shows what follows" in err) == (0, 2, True)
    assert [one["name"] for one in answer(lamp, "automation", "list", "--after", "b", "--limit", "1")] == ["c"]


def test_a_file_that_is_no_toml_is_named(lamp: Lamp, tmp_path: Path) -> None:
    file = tmp_path / "tidy.toml"
    for content in (b"gate = nonsense", b"\xff\xfe"):
        file.write_bytes(content)
        code, _, err = lamp("automation", "import", str(file))
        assert (code, f"{file} is not TOML" in err) == (2, True)


def test_export_and_import_make_the_round_trip(lamp: Lamp, tmp_path: Path) -> None:
    answer(lamp, "automation", "create", "tidy", "--exec", "make tidy", "--weekly", "fri 17:00", "--retry", "2")
    file = tmp_path / "tidy.toml"
    assert lamp("automation", "export", "tidy", "--to", str(file))[0] == 0
    before = answer(lamp, "automation", "show", "tidy")
    answer(lamp, "automation", "delete", "tidy")
    after = answer(lamp, "automation", "import", str(file))
    for key in ("action", "policies", "timezone", "description"):
        assert after[key] == before[key]
    assert after["triggers"][0]["human_schedule"] == before["triggers"][0]["human_schedule"]


def test_enable_starts_the_count_of_failures_anew(lamp: Lamp) -> None:
    answer(lamp, "automation", "create", "tidy", "--exec", "true", "--daily", "09:00", "--disabled")
    assert answer(lamp, "automation", "enable", "tidy")["enabled"] is True
    assert answer(lamp, "automation", "disable", "tidy")["enabled"] is False


def test_pause_refuses_a_run_and_resume_says_what_it_lifted(lamp: Lamp) -> None:
    assert answer(lamp, "pause")["changed"] is True
    assert answer(lamp, "status")["paused"] is True
    code, _, err = lamp("automation", "run", "hello")
    assert code == 4
    assert "paused" in err
    assert lamp("suspend")[0] == 0
    assert answer(lamp, "resume")["lifted"] == ["pause", "suspension"]
    assert answer(lamp, "resume")["lifted"] == []


def test_one_automation_is_suspended_and_resumed(lamp: Lamp) -> None:
    assert answer(lamp, "automation", "suspend", "hello")["changed"] is True
    assert answer(lamp, "automation", "suspend", "hello")["changed"] is False
    assert "suspended" in lamp("automation", "list")[1]
    code, _, err = lamp("automation", "run", "hello")
    assert code == 4
    assert "automation resume` lifts it" in err
    assert "suspended" in lamp("automation", "explain", "hello")[1]
    assert answer(lamp, "status")["next"] == []
    assert answer(lamp, "automation", "resume", "hello")["changed"] is True
    assert answer(lamp, "automation", "run", "hello")["state"] == "succeeded"
    assert lamp("automation", "suspend", "nobody")[0] == 3


def test_status_tells_runs_and_what_comes_next(lamp: Lamp) -> None:
    answer(lamp, "automation", "run", "hello")
    value = answer(lamp, "status")
    assert value["runs"] == {"succeeded": 1}
    assert value["next"][0]["scoped_name"] == "hello"


def test_history_names_every_firing_with_its_run(lamp: Lamp) -> None:
    ran = answer(lamp, "automation", "run", "hello")
    (event,) = answer(lamp, "automation", "history", "hello")
    assert (event["kind"], event["run"], event["run_state"]) == ("manual", ran["id"], "succeeded")


def test_an_action_that_prints_much_keeps_only_the_end(lamp: Lamp, town: Path) -> None:
    answer(lamp, "automation", "create", "loud", "--exec", "yes loud | head -c 50000000; echo the end", "--manual")
    value = answer(lamp, "automation", "run", "loud")
    assert value["output_tail"].endswith("the end\n")
    assert len(value["output_tail"]) <= 64 * 1024
    assert sum(path.stat().st_size for path in (town / ".gc").rglob("*") if path.is_file()) < 10_000_000


def test_a_formula_run_stays_running_until_its_wisp_is_closed(lamp: Lamp) -> None:
    answer(lamp, "automation", "create", "cook", "--formula", "feature", "--manual", "--set", 'vars={"what": "a door"}')
    code, out, err = lamp("automation", "run", "cook", "--json")
    assert code == 0, err
    value = json.loads(out)
    assert value["state"] == "running"
    steps = answer(lamp, "bead", "list", "--parent", value["wisp"])
    assert sorted(step["title"] for step in steps) == [
        "Build: a door", "Plan: a door", "Review: a door", "Test: a door",
    ]  # fmt: skip


def test_next_of_a_short_cooldown_works_out_only_what_it_shows(lamp: Lamp) -> None:
    answer(lamp, "automation", "create", "often", "--exec", "true", "--cooldown", "1ms")
    assert len(answer(lamp, "automation", "next", "often", "--count", "3", "--days", "36600")) == 3


def test_simulate_shows_so_many_and_says_that_more_follows(lamp: Lamp) -> None:
    answer(lamp, "automation", "create", "often", "--exec", "true", "--cooldown", "1ms")
    code, out, err = lamp("simulate", "--limit", "5", "--all")
    assert (code, len(out.splitlines())) == (0, 6)
    assert "these are the first 5; --limit shows more" in err
    code, out, err = lamp("simulate", "--limit", "5", "--json")
    assert (code, len(json.loads(out))) == (0, 5)
    assert "More follows" in err


DEEP = {"levels": "[" * 2000 + "]" * 2000, "very": "[" * 100_000, "named": '{"a":' * 300 + "1" + "}" * 300}


@pytest.mark.parametrize("deep", DEEP.values(), ids=DEEP)
def test_deep_json_is_refused_with_a_sentence_wherever_it_is_given(lamp: Lamp, deep: str) -> None:
    for arguments in (
        ("automation", "run", "hello", "--payload", deep),
        ("event", "emit", "x.y", "--payload", deep),
        ("automation", "create", "no", "--exec", "true", "--event", "x.y", "--set", f"match={deep}"),
    ):
        code, _, err = lamp(*arguments)
        assert code == 2
        assert "it has more than 100 arrays and objects within each other" in err


@pytest.mark.parametrize(
    "text",
    [f"[automation]\nx = {'[' * 2000}{']' * 2000}\n", f"[automation.match.{'.'.join('a' * 500)}]\nb = 1\n"],
    ids=["arrays", "tables"],
)
def test_a_deep_automation_file_is_told_as_a_problem(lamp: Lamp, town: Path, text: str) -> None:
    define(town, "deep", text)
    (row,) = [one for one in answer(lamp, "automation", "list") if one["name"] == "deep"]
    assert "it has more than 100 arrays and tables within each other" in row["problems"][0]


@pytest.mark.parametrize(("word", "told"), [("serve", "`lamp up`")])
def test_what_people_look_for_and_is_not_there_is_told_by_name(lamp: Lamp, word: str, told: str) -> None:
    code, _, err = lamp(word, "list")
    assert (code, told in err) == (2, True)


@pytest.mark.parametrize("word", ["--json", "--nonsense"])
def test_an_option_where_a_command_belongs_is_no_command(lamp: Lamp, word: str) -> None:
    code, _, err = lamp("--", word)
    assert code == 2
    assert f"There is no command `{word}`" in err


def test_a_strategy_with_its_choices_is_set_by_options_and_by_set(lamp: Lamp) -> None:
    for name in ("web", "api"):
        assert lamp("configuration", "create", name, "--description", name)[0] == 0
    made = answer(
        lamp, "automation", "create", "pick", "--prompt", "p", "--manual", "--strategy", "agent_decide",
        "--mode", "plan", "--allow", "web", "--allow", "api", "--fallback", "web",
        "--set", "agent.model=large", "--set", "budget.cost=2.5",
    )  # fmt: skip
    keys = ("strategy", "configurations", "fallback", "model")
    assert [made["action"][key] for key in keys] == ["agent_decide", ["web", "api"], "web", "large"]
    assert made["policies"]["budget"]["cost"] == 2.5
    lamp("automation", "create", "plain", "--prompt", "p", "--manual", "--mode", "plan")
    changed = answer(
        lamp, "automation", "edit", "plain", "--set", "agent.strategy=agent_decide",
        "--set", 'agent.configurations=["web"]',
    )  # fmt: skip
    assert changed["action"]["strategy"] == "agent_decide"


def test_every_is_a_cooldown_and_a_zone_that_is_not_the_citys_is_in_the_words(lamp: Lamp) -> None:
    made = answer(lamp, "automation", "create", "often", "--exec", "true", "--every", "5s")
    assert (made["triggers"][0]["kind"], made["triggers"][0]["human_schedule"]) == ("cooldown", "Every 5 s")
    for name, schedule, zone, told in (
        ("far", "0 3 * * *", "Asia/Tokyo", "At 03:00 every day (Asia/Tokyo)"),
        ("near", "0 3 * * *", None, "At 03:00 every day"),
        ("anywhere", "*/5 * * * *", "Asia/Tokyo", "Every 5 minutes"),
    ):
        own = ("--set", f'timezone="{zone}"') if zone else ()
        made = answer(lamp, "automation", "create", name, "--exec", "true", "--cron", schedule, *own)
        assert made["triggers"][0]["human_schedule"] == told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--prompt", "p", "--manual", "--path", "ssh://host/x"), "`ssh://host/x` is remote"),
        (("--exec", "true", "--every", "5m", "--manual"), "--every and --manual are two triggers"),
        (("--exec", "true"), "It is not said when it fires"),
        (("--prompt", "p", "--manual", "--preset", "cluade"), "there is no preset `cluade`; did you mean `claude`?"),
        (("--formula", "nothing", "--manual"), "There is no formula `nothing`"),
    ],
)
def test_what_could_not_work_is_refused_at_creation(lamp: Lamp, options: tuple[str, ...], told: str) -> None:
    code, _, err = lamp("automation", "create", "job", *options)
    assert code == 2
    assert told in err
    assert [one["name"] for one in answer(lamp, "automation", "list")] == ["hello"]


def test_a_name_with_a_space_is_refused(lamp: Lamp) -> None:
    code, _, err = lamp("automation", "create", "bad name", "--exec", "true", "--manual")
    assert (code, "write `bad-name`" in err) == (2, True)
