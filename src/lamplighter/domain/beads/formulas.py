"""Formulas: templates of steps, and the plan of beads that cooking one makes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from lamplighter.domain.beads.model import NewBead
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.kit.nearest import did_you_mean

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PLACEHOLDER = re.compile(r"\{\{\s*(" + _VARIABLE.pattern + r")\s*\}\}")
_TOP_KEYS = ("formula", "description", "version", "vars", "steps")
_STEP_KEYS = ("id", "title", "description", "needs")
_VAR_KEYS = ("description", "default", "required")


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    description: str = ""
    default: str | None = None
    required: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    id: str
    title: str
    description: str = ""
    needs: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        """The name by which other steps, and the bead cooked from this step, refer to it."""
        return self.id


@dataclass(frozen=True, slots=True)
class Formula:
    name: str
    description: str
    version: str | None
    variables: tuple[Variable, ...]
    steps: tuple[Step, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The beads of one wisp: the root, and one bead per step, whose `needs` name other steps by their ref."""

    root: NewBead
    steps: tuple[NewBead, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    """The variables as given, for a bead store that cooks the formula itself."""

    def in_order(self) -> list[NewBead]:
        """The steps, each after those it needs. Raises FormulaInvalid for needs that cannot be met."""
        ordered = in_order(self.steps)
        if len(ordered) < len(self.steps):
            stuck = ", ".join(step.ref or step.title for step in self.steps if step not in ordered)
            raise FormulaInvalid(self.root.ref or self.root.title, [f"steps: these can never be done: {stuck}"])
        return ordered


class FormulaInvalid(LampError):
    def __init__(self, source: str, problems: Sequence[str]) -> None:
        super().__init__("\n".join(f"{source}: {problem}" for problem in problems), hint="Mend the formula's file.")
        self.problems = tuple(problems)


def decode(tree: Mapping[str, Any], source: str) -> Formula:
    """A formula from its parsed file. Raises FormulaInvalid with every problem."""
    problems = _unknown(tree, _TOP_KEYS, "")
    name = _text(tree, "formula", "formula", problems, required=True)
    variables = _variables(tree.get("vars", {}), problems)
    steps = _steps(tree.get("steps", []), problems)
    _check_steps(steps, problems)
    version = tree.get("version")
    formula = Formula(
        name=name,
        description=_text(tree, "description", "description", problems),
        version=None if version is None else str(version),
        variables=variables,
        steps=tuple(steps),
        source=source,
    )
    _check_placeholders(formula, problems)
    if problems:
        raise FormulaInvalid(source, problems)
    return formula


def plan(formula: Formula, *, title: str | None, values: Mapping[str, str]) -> Plan:
    """The beads to create. Raises UsageError that names every missing and every unknown variable.

    A placeholder in a description that is not declared may be given a value; without one it is kept as it is, for
    descriptions hold templates of commands and texts in braces that are not ours.
    """
    in_titles = _placeholders(step.title for step in formula.steps)
    implied = {name: Variable(name, required=name in in_titles) for name in _placeholders(_texts(formula))}
    declared = {variable.name: variable for variable in formula.variables}
    known = implied | declared
    unknown = [
        f"`{name}` is not one of its variables{did_you_mean(name, known)}" for name in values if name not in known
    ]
    filled = {name: variable.default for name, variable in known.items() if variable.default is not None} | dict(values)
    missing = [f"`{name}` is missing" for name, variable in known.items() if name not in filled and variable.required]
    if unknown or missing:
        raise UsageError(
            f"Formula {formula.name} cannot be cooked: {'; '.join(missing + unknown)}.",
            hint=f"Give each as --var NAME=VALUE; `lamp formula show {formula.name}` lists them.",
        )
    filled = dict.fromkeys(declared, "") | filled

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda mark: filled.get(mark[1], mark[0]), text)

    root = NewBead(
        title=title or formula.name,
        type="molecule",
        ref=formula.name,
        description=fill(formula.description),
        ephemeral=True,
    )
    steps = tuple(
        NewBead(title=fill(step.title), ref=step.id, needs=step.needs, description=fill(step.description))
        for step in formula.steps
    )
    return Plan(root, steps, values=dict(values))


class _Needy(Protocol):
    @property
    def needs(self) -> tuple[str, ...]: ...

    @property
    def ref(self) -> str | None: ...


N = TypeVar("N", bound=_Needy)


def in_order(steps: Sequence[N]) -> list[N]:
    """The steps, each after those it needs; steps in a cycle, and steps that depend on one, are left out."""
    done: set[str | None] = set()
    ordered: list[N] = []
    waiting = list(steps)
    while waiting:
        free = [step for step in waiting if done.issuperset(step.needs)]
        if not free:
            break
        ordered += free
        done |= {step.ref for step in free}
        waiting = [step for step in waiting if step not in free]
    return ordered


def _variables(tree: Any, problems: list[str]) -> tuple[Variable, ...]:
    if not isinstance(tree, Mapping):
        problems.append("vars: is a table of variables, such as [vars.branch]")
        return ()
    found = []
    for name, entry in tree.items():
        if not isinstance(entry, Mapping):
            entry = {"default": entry}  # noqa: PLW2901  the short form: a variable with just its default
        found.append(_variable(name, entry, problems))
    return tuple(found)


def _variable(name: str, entry: Mapping[str, Any], problems: list[str]) -> Variable:
    where = f"vars.{name}"
    problems += _unknown(entry, _VAR_KEYS, f"{where}.")
    if not _VARIABLE.fullmatch(name):
        problems.append(f"{where}: no text can name it; use letters, digits, `_` and `-`")
    default = entry.get("default")
    if default is not None and not isinstance(default, str | int | float):
        problems.append(f"{where}.default: is a text or a number")
    required = entry.get("required", default is None)
    if not isinstance(required, bool):
        problems.append(f"{where}.required: is true or false")
    return Variable(
        name=name,
        description=_text(entry, "description", f"{where}.description", problems),
        default=_as_text(default),
        required=required is True,
    )


def _as_text(default: Any) -> str | None:
    if isinstance(default, bool):
        return "true" if default else "false"
    return None if default is None else str(default)


def _steps(tree: Any, problems: list[str]) -> list[Step]:
    if not isinstance(tree, list) or not all(isinstance(entry, Mapping) for entry in tree):
        problems.append("steps: is a list of [[steps]] tables")
        return []
    steps = []
    for number, entry in enumerate(tree, start=1):
        where = f"steps[{number}]"
        problems += _unknown(entry, _STEP_KEYS, f"{where}.")
        needs = entry.get("needs", [])
        if not isinstance(needs, list) or not all(isinstance(need, str) for need in needs):
            problems.append(f"{where}.needs: is a list of step ids")
            needs = []
        steps.append(
            Step(
                id=_text(entry, "id", f"{where}.id", problems, required=True),
                title=_text(entry, "title", f"{where}.title", problems, required=True),
                description=_text(entry, "description", f"{where}.description", problems),
                needs=tuple(dict.fromkeys(needs)),
            )
        )
    return steps


def _check_steps(steps: list[Step], problems: list[str]) -> None:
    if not steps:
        problems.append("steps: a formula needs at least one step")
    ids = [step.id for step in steps]
    problems += [
        f"steps: the id `{step_id}` stands twice" for step_id in sorted({i for i in ids if i and ids.count(i) > 1})
    ]
    for step in steps:
        problems += [
            f"steps: `{step.id}` needs `{need}`, which is no step{did_you_mean(need, ids)}"
            for need in step.needs
            if need not in ids
        ]
    circle = _circle([step for step in steps if set(step.needs) <= set(ids)])
    if circle:
        problems.append(f"steps: these wait for one another in a circle: {', '.join(circle)}")


def _circle(steps: list[Step]) -> list[str]:
    """The ids of steps that wait for one another, without steps that only depend on them."""
    known = {step.id for step in steps}
    ordered = in_order([replace(step, needs=tuple(need for need in step.needs if need in known)) for step in steps])
    left = [step for step in steps if step.id not in {done.id for done in ordered}]
    while True:
        wanted = {need for step in left for need in step.needs}
        inside = [step for step in left if step.id in wanted]
        if len(inside) == len(left):
            return [step.id for step in left]
        left = inside


def _check_placeholders(formula: Formula, problems: list[str]) -> None:
    """Titles may use declared variables only; descriptions are kept as they are where they use others."""
    if not formula.variables:
        return
    known = {variable.name for variable in formula.variables}
    problems += [
        f"vars: `{{{{{name}}}}}` is used in a title but not declared{did_you_mean(name, known)}"
        for name in _placeholders(step.title for step in formula.steps)
        if name not in known
    ]


def _texts(formula: Formula) -> list[str]:
    return [formula.description, *(text for step in formula.steps for text in (step.title, step.description))]


def _placeholders(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name for text in texts for name in _PLACEHOLDER.findall(text)))


def _unknown(tree: Mapping[str, Any], known: Sequence[str], where: str) -> list[str]:
    return [f"{where}{key}: is not a setting{did_you_mean(key, known)}" for key in tree if key not in known]


def _text(tree: Mapping[str, Any], key: str, where: str, problems: list[str], *, required: bool = False) -> str:
    value = tree.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value.strip()):
        wanted = "is a text that is not empty" if required else "is a text"
        problems.append(f"{where}: is missing" if value is None else f"{where}: {wanted}")
        return ""
    return value
