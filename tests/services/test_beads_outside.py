"""Outside bead stores that misbehave: each is told with script, operation and next step, and none holds us up."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lamplighter.adapters.beads.bd import BdBackend, BdFailed
from lamplighter.adapters.beads.decode import BeadUnreadable
from lamplighter.adapters.beads.exec import ExecBackend, OperationUnknown, ScriptFailed
from lamplighter.adapters.beads.external import ChangeIgnored, ExternalBeads
from lamplighter.adapters.processes.program import AnswerTooLong, CallTooLong, Limits, Program, script_path
from lamplighter.domain.beads.formulas import Plan
from lamplighter.domain.beads.model import AlreadyClaimed, BeadChange, BeadFilter, BeadNotFound, NeedsCycle, NewBead
from lamplighter.kit.errors import Kind, Unavailable

BEAD = {"id": "ex-1", "title": "Build", "status": "open", "created_at": "2026-03-01T10:00:00Z"}
STAND_IN = Path(__file__).parent.parent / "contract" / "bd_stand_in.py"
MakeProgram = Callable[[str], Program]


@pytest.fixture
def script(tmp_path: Path) -> MakeProgram:
    """A shell script of these lines, as the program of a store."""

    def made(lines: str) -> Program:
        path = tmp_path / "keep"
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)
        return Program(str(path), tmp_path, {"PATH": os.defpath})

    return made


def store(program: Program) -> ExternalBeads:
    return ExternalBeads(ExecBackend(program))


def answers(**operations: object) -> str:
    """A case a line; `op` gives its JSON, and whatever is not named is unknown."""
    cases = "".join(
        f"{name.replace('_', '-')}) cat <<'END'\n{json.dumps(value)}\nEND\n;;\n" for name, value in operations.items()
    )
    return f'case "$1" in\n{cases}*) exit 2;;\nesac'


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("create", lambda beads: beads.create(NewBead("x"))),
        ("get", lambda beads: beads.get("ex-1")),
        ("list", lambda beads: beads.matching(BeadFilter(), limit=1)),
    ],
)
def test_an_operation_that_no_answer_can_be_made_up_for_is_asked_of_the_script(
    script: MakeProgram, operation: str, call: Callable[[ExternalBeads], object]
) -> None:
    with pytest.raises(OperationUnknown) as refused:
        call(store(script("exit 2")))
    assert f"does not know `{operation}`" in refused.value.message
    assert "keep" in refused.value.message
    assert "bead-stores.md" in refused.value.hint


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("claim", lambda beads: beads.claim("ex-1", "amber")),
        ("close", lambda beads: beads.close("ex-1")),
        ("update", lambda beads: beads.change("ex-1", BeadChange(title="x"))),
        ("set-metadata", lambda beads: beads.change("ex-1", BeadChange(metadata={"k": "v"}))),
    ],
)
def test_a_change_the_script_does_not_know_is_not_called_done(
    script: MakeProgram, operation: str, call: Callable[[ExternalBeads], object]
) -> None:
    with pytest.raises(OperationUnknown, match=f"does not know `{operation}`"):
        call(store(script(answers(get=BEAD))))


@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("title, labels", lambda beads: beads.change("ex-1", BeadChange(title="x", add_labels=("l",)))),
        ("status, assignee", lambda beads: beads.claim("ex-1", "amber")),
        ("status", lambda beads: beads.close("ex-1")),
    ],
)
def test_a_change_the_script_only_nods_at_is_told(
    script: MakeProgram, named: str, call: Callable[[ExternalBeads], object]
) -> None:
    with pytest.raises(ChangeIgnored, match=f"left {named} as before"):
        call(store(script(answers(get=BEAD, update=None, claim=BEAD, close=None))))


def test_lists_the_script_does_not_know_are_made_from_all(script: MakeProgram) -> None:
    child = BEAD | {"id": "ex-2", "parent_id": "ex-1", "labels": ["x"], "needs": ["ex-1"]}
    beads = store(script(answers(list=[BEAD, child])))
    assert [bead.id for bead in beads.children("ex-1")] == ["ex-2"]
    assert [bead.id for bead in beads.matching(BeadFilter(label="x"), limit=5)] == ["ex-2"]
    assert [bead.id for bead in beads.ready()] == ["ex-1"]


def test_null_counts_as_an_empty_list(script: MakeProgram) -> None:
    assert store(script(answers(ready=None))).ready() == []


def test_lifecycle_operations_are_optional(script: MakeProgram) -> None:
    assert not ExecBackend(script("exit 2")).lifecycle("ensure-ready")
    assert ExecBackend(script("exit 0")).lifecycle("init", "/city", "ct")
    with pytest.raises(ScriptFailed, match="keep shutdown` failed with exit code 1: no disk"):
        ExecBackend(script("echo no disk >&2; exit 1")).lifecycle("shutdown")


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("", "holds 'nothing'"),
        ("Bead ex-1", "JSON was expected on standard output, which holds 'Bead ex-1'"),
        ("[]", "answer: a bead was expected, not []"),
        ("{}", "created_at: is missing"),
        (json.dumps(BEAD | {"labels": "x", "title": 3}), "labels: is a list of texts, not 'x'"),
        (json.dumps(BEAD | {"metadata": []}), "metadata: is a table of texts"),
    ],
)
def test_an_answer_that_is_no_bead_is_told_with_script_and_operation(
    script: MakeProgram, output: str, told: str
) -> None:
    with pytest.raises(BeadUnreadable) as refused:
        store(script(f"printf '%s' '{output}'" if "'" not in output else "exit 3")).get("ex-1")
    assert told in refused.value.message
    assert "keep get ex-1: " in refused.value.message


def test_what_the_script_says_is_passed_on(script: MakeProgram) -> None:
    with pytest.raises(ScriptFailed, match="keep get ex-1` failed with exit code 7: the dog ate it"):
        store(script("echo the dog ate it >&2; exit 7")).get("ex-1")
    with pytest.raises(BeadNotFound, match="ex-1"):
        store(script("echo 'Bead Not Found' >&2; exit 1")).get("ex-1")


def test_a_claim_lost_to_another_is_told_with_the_holder(script: MakeProgram) -> None:
    lost = json.dumps(BEAD | {"status": "in_progress", "assignee": "beryl"})
    lines = f"""case "$1" in
        get) if test -e claimed; then echo '{lost}'; else echo '{json.dumps(BEAD)}'; fi;;
        claim) touch claimed; echo too late >&2; exit 1;;
    esac"""
    with pytest.raises(AlreadyClaimed, match="beryl"):
        store(script(lines)).claim("ex-1", "amber")


def test_a_script_that_is_not_there_is_unavailable(tmp_path: Path, script: MakeProgram) -> None:
    program = replace(script("exit 0"), path=str(tmp_path / "gone"))
    with pytest.raises(Unavailable, match="gone cannot be run: No such file"):
        store(program).get("ex-1")
    (tmp_path / "keep").chmod(0o644)
    with pytest.raises(Unavailable, match="cannot be run"):
        store(replace(program, path=str(tmp_path / "keep"))).get("ex-1")


def test_a_script_that_hangs_is_ended(script: MakeProgram) -> None:
    program = replace(script("sleep 600 & sleep 600"), limits=Limits(call_seconds=0.2))
    with pytest.raises(CallTooLong, match=r"keep get ex-1` gave no answer within 0\.2 seconds") as refused:
        store(program).get("ex-1")
    assert refused.value.kind is Kind.UNAVAILABLE


def test_a_child_that_keeps_the_pipe_open_holds_nobody_up(script: MakeProgram) -> None:
    assert store(script(f"echo '{json.dumps(BEAD)}'; sleep 600 & exit 0")).get("ex-1").title == "Build"


def test_an_endless_answer_is_cut_off(script: MakeProgram) -> None:
    program = replace(script("yes"), limits=Limits(longest_output=100_000))
    with pytest.raises(AnswerTooLong, match="keep list` wrote more than 100000 bytes"):
        store(program).matching(BeadFilter(), limit=1)


def test_a_script_need_not_read_what_it_is_told(script: MakeProgram) -> None:
    long = NewBead("x", description="y" * 500_000)
    assert store(script(f"exec <&-; echo '{json.dumps(BEAD)}'")).create(long).id == "ex-1"


def test_a_legacy_script_cooks_with_formula_title_and_variables(script: MakeProgram, tmp_path: Path) -> None:
    root = BEAD | {"id": "ex-9", "type": "molecule"}
    step = BEAD | {"id": "ex-8", "parent_id": "ex-9"}
    lines = f"""case "$1" in
        mol-cook) cat >asked; echo ex-9;;
        get) echo '{json.dumps(root)}';;
        children) echo '{json.dumps([step])}';;
    esac"""
    plan = Plan(NewBead("Tea", type="molecule", ref="tea"), (NewBead("Boil", ref="boil"),), values={"litres": "2"})
    assert store(script(lines)).cook(plan).id == "ex-9"
    asked = json.loads((tmp_path / "asked").read_text())
    assert (asked["formula"], asked["title"], asked["vars"]) == ("tea", "Tea", ["litres=2"])
    assert [(entry["ref"], entry["title"]) for entry in asked["steps"]] == [("boil", "Boil")]


def test_a_root_without_an_id_is_told(script: MakeProgram) -> None:
    with pytest.raises(BeadUnreadable, match="the id of the root was expected"):
        store(script("exit 0")).cook(Plan(NewBead("Tea"), ()))


def test_the_script_is_looked_for_in_the_city_and_then_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "keep").touch()
    assert script_path("keep", tmp_path, "/usr/bin:/bin") == str(tmp_path / "keep")
    assert script_path("bin/keep", tmp_path, None) == str(tmp_path / "bin/keep")
    assert script_path("/opt/keep", tmp_path, None) == "/opt/keep"
    assert script_path("sh", tmp_path, "/usr/bin:/bin").endswith("/bin/sh")
    assert script_path("gone-for-good", tmp_path, "/bin") == str(tmp_path / "gone-for-good")


ISSUE = {"id": "bd-1", "title": "Build", "status": "open", "issue_type": "bug", "created_at": "2026-03-01T10:00:00Z"}


def bd(program: Program) -> ExternalBeads:
    return ExternalBeads(BdBackend(program))


@pytest.mark.parametrize("shape", [ISSUE, [ISSUE], {"schema_version": 1, "data": ISSUE}, {"items": [ISSUE]}])
def test_bd_is_understood_in_every_shape_it_answers_in(script: MakeProgram, shape: object) -> None:
    bead = bd(script(f"echo '{json.dumps(shape)}'")).get("bd-1")
    assert (bead.id, bead.type) == ("bd-1", "bug")


def test_bd_metadata_carries_ref_and_sender(script: MakeProgram) -> None:
    issue = ISSUE | {"metadata": {"ref": "build", "from": "mayor", "tries": 2}, "status": "blocked"}
    bead = bd(script(f"echo '{json.dumps(issue)}'")).get("bd-1")
    assert (bead.ref, bead.sender, bead.metadata, bead.status) == ("build", "mayor", {"tries": "2"}, "open")


@pytest.mark.parametrize(
    ("lines", "error", "told"),
    [
        ("""echo '{"error": "no issue found matching bd-1"}' >&2; exit 1""", BeadNotFound, "bd-1"),
        ("""echo '{"error": "issue not found"}'; exit 1""", BeadNotFound, "bd-1"),
        ("echo '[]'", BeadNotFound, "bd-1"),
        ("echo database is locked >&2; exit 1", BdFailed, "failed with exit code 1: database is locked"),
        ("exit 9", BdFailed, "exit code 9: it said nothing"),
        ("echo Warning: old", BeadUnreadable, "JSON was expected, not 'Warning: old'"),
        ("echo 3", BeadUnreadable, "a bead was expected, not 3"),
    ],
)
def test_what_goes_wrong_with_bd_is_told(script: MakeProgram, lines: str, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        bd(script(lines)).get("bd-1")


def test_bd_types_that_are_not_set_up_come_with_the_remedy(script: MakeProgram) -> None:
    with pytest.raises(BdFailed) as refused:
        bd(script("echo 'invalid issue type: convoy' >&2; exit 1")).create(NewBead("x", type="convoy"))
    assert "types.custom" in refused.value.hint


def test_a_circle_that_bd_finds_is_told_as_one(script: MakeProgram) -> None:
    lines = f"""case "$1" in
        show) echo '{json.dumps(ISSUE)}';;
        list) echo '[]';;
        dep) echo would create a cycle >&2; exit 1;;
    esac"""
    with pytest.raises(NeedsCycle):
        bd(script(lines)).change("bd-1", BeadChange(add_needs=("bd-2",)))


def test_bd_gets_values_it_cannot_mistake_for_flags(script: MakeProgram, tmp_path: Path) -> None:
    lines = f"""printf '%s\\n' "$@" >asked; env >env; cat >body; echo '{json.dumps(ISSUE)}'"""
    bd(script(lines)).create(NewBead("--help", labels=("a,b", "c"), description="-"))
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == "create"
    assert {"--title=--help", '--labels="a,b",c', "--body-file=-", "--json"} <= set(asked)
    assert (tmp_path / "body").read_text() == "-"
    assert "BD_JSON_ENVELOPE=0" in (tmp_path / "env").read_text().splitlines()


def test_cooking_that_was_cut_off_is_finished_by_the_next_try(script: MakeProgram) -> None:
    beads = bd(script(f'exec "{sys.executable}" -I -S "{STAND_IN}" "$@"'))
    steps = (NewBead("Pour", ref="pour", needs=("boil",)), NewBead("Boil", ref="boil"))
    plan = Plan(NewBead("Tea", type="molecule", labels=("run:run_1",)), steps)
    root = beads.create(plan.root)
    boil = beads.create(NewBead("Boil", ref="boil", parent=root.id))
    beads.close(boil.id)
    assert beads.get(root.id).status == "closed", "all the steps there were are done"
    assert beads.cook(plan) == beads.cook(plan) == beads.get(root.id)
    assert [(step.ref, step.needs) for step in beads.children(root.id)] == [("boil", ()), ("pour", (boil.id,))]
    assert beads.get(root.id).status == "open"
    assert len(beads.matching(BeadFilter(label="run:run_1"), limit=9)) == 1


def test_closing_that_was_cut_off_is_finished_by_the_next_try(script: MakeProgram) -> None:
    program = script(f'exec "{sys.executable}" -I -S "{STAND_IN}" "$@"')
    beads = bd(program)
    root = beads.create(NewBead("Whole", type="molecule"))
    step = beads.create(NewBead("Step", parent=root.id))
    BdBackend(program).close(step.id)
    assert beads.get(root.id).status == "open"
    beads.close(step.id)
    assert beads.get(root.id).status == "closed"
