"""Formulas: what is wrong with one is told all at once; a plan is made whole or not at all."""

from typing import Any

import pytest

from lamplighter.domain.beads.formulas import FormulaInvalid, Plan, decode, plan
from lamplighter.domain.beads.model import NewBead
from lamplighter.kit.errors import UsageError

STEP = {"id": "a", "title": "A"}


def problems(tree: dict[str, Any]) -> list[str]:
    with pytest.raises(FormulaInvalid) as refused:
        decode(tree, "f.toml")
    assert refused.value.message == "\n".join(f"f.toml: {problem}" for problem in refused.value.problems)
    return list(refused.value.problems)


def steps(**needs: list[str]) -> dict[str, Any]:
    return {"formula": "f", "steps": [{"id": name, "title": name, "needs": value} for name, value in needs.items()]}


@pytest.mark.parametrize(
    ("tree", "told"),
    [
        ({}, ["formula: is missing", "steps: a formula needs at least one step"]),
        ({"formula": " ", "steps": [STEP]}, ["formula: is a text that is not empty"]),
        ({"formula": "f", "description": 3, "steps": [STEP]}, ["description: is a text"]),
        ({"formula": "f", "stepz": [], "steps": [STEP]}, ["stepz: is not a setting; did you mean `steps`?"]),
        (
            {"formula": "f", "steps": {}},
            ["steps: is a list of [[steps]] tables", "steps: a formula needs at least one step"],
        ),
        ({"formula": "f", "steps": [{"id": "a"}]}, ["steps[1].title: is missing"]),
        ({"formula": "f", "steps": [STEP, STEP]}, ["steps: the id `a` stands twice"]),
        ({"formula": "f", "steps": [STEP | {"needs": "a"}]}, ["steps[1].needs: is a list of step ids"]),
        ({"formula": "f", "steps": [STEP | {"need": []}]}, ["steps[1].need: is not a setting; did you mean `needs`?"]),
        (steps(build=[], test=["biuld"]), ["steps: `test` needs `biuld`, which is no step; did you mean `build`?"]),
        (steps(a=["a"]), ["steps: these wait for one another in a circle: a"]),
        (steps(a=["b"], b=["c"], c=["a"], behind=["a"]), ["steps: these wait for one another in a circle: a, b, c"]),
        (
            steps(a=["b"], b=["a"], c=["z"]),
            ["steps: `c` needs `z`, which is no step", "steps: these wait for one another in a circle: a, b"],
        ),
        ({"formula": "f", "vars": [], "steps": [STEP]}, ["vars: is a table of variables, such as [vars.branch]"]),
        (
            {"formula": "f", "vars": {"x y": "1"}, "steps": [STEP]},
            ["vars.x y: no text can name it; use letters, digits, `_` and `-`"],
        ),
        ({"formula": "f", "vars": {"x": {"default": []}}, "steps": [STEP]}, ["vars.x.default: is a text or a number"]),
        ({"formula": "f", "vars": {"x": {"required": "no"}}, "steps": [STEP]}, ["vars.x.required: is true or false"]),
        (
            {"formula": "f", "vars": {"branch": {}}, "steps": [STEP | {"title": "{{ brnch }}"}]},
            ["vars: `{{brnch}}` is used in a title but not declared; did you mean `branch`?"],
        ),
    ],
)
def test_every_problem_is_told_with_its_place(tree: dict[str, Any], told: list[str]) -> None:
    assert problems(tree) == told


def test_a_formula_reads_its_variables_in_both_forms() -> None:
    formula = decode(
        {
            "formula": "f",
            "version": 2,
            "vars": {"a": "1", "b": {"required": True, "description": "the b"}, "c": {"default": True}},
            "steps": [STEP],
        },
        "f.toml",
    )
    assert [(var.name, var.default, var.required) for var in formula.variables] == [
        ("a", "1", False),
        ("b", None, True),
        ("c", "true", False),
    ]
    assert formula.version == "2"
    assert formula.variables[1].description == "the b"


GREET = decode(
    {
        "formula": "greet",
        "description": "Greet {{name}}",
        "vars": {"name": {}, "mood": {"default": "warm"}, "title": {"required": False}},
        "steps": [
            {"id": "say", "title": "Greet {{ name }}{{title}}", "description": "Be {{mood}}; keep {{ this one }}"}
        ],
    },
    "greet.formula.toml",
)


def test_variables_fill_titles_and_descriptions() -> None:
    made = plan(GREET, title=None, values={"name": "Ada {{mood}}"})
    assert made.root == NewBead(
        "greet", type="molecule", ref="greet", description="Greet Ada {{mood}}", ephemeral=True
    ), "a value is text, never a template"
    assert made.steps == (NewBead("Greet Ada {{mood}}", ref="say", description="Be warm; keep {{ this one }}"),)
    assert made.values == {"name": "Ada {{mood}}"}


def test_every_missing_and_unknown_variable_is_named_with_the_nearest_known() -> None:
    with pytest.raises(UsageError) as refused:
        plan(GREET, title=None, values={"moood": "x", "zzz": "y"})
    assert refused.value.message == (
        "Formula greet cannot be cooked: `name` is missing; "
        "`moood` is not one of its variables; did you mean `mood`?; `zzz` is not one of its variables."
    )
    assert "lamp formula show greet" in refused.value.hint


def test_a_formula_that_declares_none_needs_what_its_texts_use() -> None:
    formula = decode({"formula": "f", "steps": [STEP | {"title": "Do {{what}}"}]}, "f.toml")
    with pytest.raises(UsageError, match="`what` is missing"):
        plan(formula, title=None, values={})
    assert plan(formula, title="T", values={"what": "it"}).steps[0].title == "Do it"


@pytest.mark.parametrize("declared", [{}, {"mood": "warm"}])
def test_an_undeclared_placeholder_in_a_description_is_kept_as_it_is_unless_it_is_given(
    declared: dict[str, str],
) -> None:
    text = "docker ps --format '{{ID}}' and {{branch}}"
    tree = {"formula": "f", "description": "On {{branch}}", "vars": declared, "steps": [STEP | {"description": text}]}
    formula = decode(tree, "f.toml")
    as_it_is = plan(formula, title=None, values={})
    assert (as_it_is.root.description, as_it_is.steps[0].description) == ("On {{branch}}", text)
    given = plan(formula, title=None, values={"branch": "main"})
    assert (given.root.description, given.steps[0].description) == ("On main", "docker ps --format '{{ID}}' and main")


def test_a_plan_comes_in_the_order_of_its_needs() -> None:
    made = Plan(
        NewBead("r"),
        (NewBead("C", ref="c", needs=("b", "a")), NewBead("B", ref="b", needs=("a",)), NewBead("A", ref="a")),
    )
    assert [step.ref for step in made.in_order()] == ["a", "b", "c"]


def test_a_plan_that_can_never_be_done_is_refused() -> None:
    named = Plan(
        NewBead("Root", ref="mol-r"), (NewBead("B", ref="b", needs=("never",)), NewBead("C", needs=("never",)))
    )
    with pytest.raises(FormulaInvalid) as refused:
        named.in_order()
    assert refused.value.message == "mol-r: steps: these can never be done: b, C"
    made = Plan(NewBead("r"), (NewBead("A", ref="a"), NewBead("B", ref="b", needs=("never",))))
    with pytest.raises(FormulaInvalid, match="these can never be done: b"):
        made.in_order()
