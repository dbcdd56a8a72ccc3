"""Where a run works: the configuration its automation names, or one that a model picks from the allowed ones."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from lamplighter.kit.records import record

FAILED_SELECTION = "configuration_selection_failed"
MISSING = "missing_configuration"
NO_CANDIDATES = "no_eligible_candidates"
OUTSIDE = "selected_id_not_in_eligible_set"


class How(StrEnum):
    DEFAULT = "default"
    SELECTED = "selected"
    FALLBACK = "fallback"
    FAILED = "failed"


@record
class Wish:
    """What the automation asks for. `decide` means that a model picks from `allowed`."""

    configuration: str | None = None
    decide: bool = False
    allowed: tuple[str, ...] = ()
    fallback: str | None = None


@record
class Candidate:
    name: str
    description: str
    where: str = ""


@record
class Target:
    """`configuration` None with `how` default means the automation's own path, rig or city. `reason` is recorded."""

    how: How
    configuration: str | None
    reason: str

    @property
    def failure(self) -> str | None:
        """The reason with which the run fails; None if it can go on."""
        return None if self.how is not How.FAILED else MISSING if self.reason == MISSING else FAILED_SELECTION

    def as_json(self) -> dict[str, str | None]:
        return {"type": self.how.value, "reason": self.reason, "configuration": self.configuration}


@record
class Ask:
    """A model must be asked; pass its answer to `settle`."""

    candidates: tuple[Candidate, ...]


@record
class Selected:
    configuration: str
    rationale: str


@record
class NotSelected:
    reason: str


Selection = Selected | NotSelected


def resolve(wish: Wish, known: Mapping[str, Candidate]) -> Target | Ask:
    """The target, or Ask if a model must choose it."""
    if not wish.decide:
        return _named(How.DEFAULT, wish.configuration, "selection_disabled", known)
    if not wish.allowed:
        return Target(How.FAILED, None, "empty_allowlist")
    candidates = eligible(wish.allowed, known)
    return Ask(candidates) if candidates else settle(wish, known, NotSelected(NO_CANDIDATES))


def eligible(allowed: Sequence[str], known: Mapping[str, Candidate]) -> tuple[Candidate, ...]:
    """The allowed configurations that exist and have a description; a model could not choose one without."""
    found = (known.get(name) for name in dict.fromkeys(allowed))
    return tuple(one for one in found if one is not None and one.description.strip())


def settle(wish: Wish, known: Mapping[str, Candidate], answer: Selection) -> Target:
    if isinstance(answer, Selected) and answer.configuration in {one.name for one in eligible(wish.allowed, known)}:
        return Target(How.SELECTED, answer.configuration, answer.rationale)
    why = answer.reason if isinstance(answer, NotSelected) else OUTSIDE
    for name in (wish.fallback, wish.configuration):
        if name is not None and name in known:
            return Target(How.FALLBACK, name, f"{why}; using_fallback")
    return Target(How.FAILED, None, why)


def _named(how: How, name: str | None, reason: str, known: Mapping[str, Candidate]) -> Target:
    if name is not None and name not in known:
        return Target(How.FAILED, None, MISSING)
    return Target(how, name, reason)
