"""How many runs may be at work at once, by city, rig, preset and login; those that wait are let in as they came."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import timedelta

from lamplighter.kit.records import record

LIMIT = "limit"
MEMORY = "memory"
AGENT = "agent"
"""The reasons of a run that waits for others to end, for memory, and for the agent that is to be told it."""
LOOK_EVERY = timedelta(seconds=2)
"""How often a run that waits looks whether it may start; those far behind look less often."""
LONGEST_PAUSE = timedelta(minutes=1)
A_FEW = 10
QUOTED = 3


@record
class Most:
    """0 is no limit. `rigs` and `presets` name single ones; the others have `per_rig` and `per_preset`."""

    runs: int = 0
    per_rig: int = 0
    per_preset: int = 0
    per_login: int = 0
    rigs: Mapping[str, int] = field(default_factory=dict)
    presets: Mapping[str, int] = field(default_factory=dict)

    @property
    def bounds_commands(self) -> bool:
        """Whether runs of commands are counted, too; they have neither preset nor login."""
        return bool(self.runs or self.per_rig or any(self.rigs.values()))

    @property
    def bounds_agents(self) -> bool:
        return self.bounds_commands or self.needs_plan

    @property
    def needs_plan(self) -> bool:
        """Whether the preset or the login of a run has to be known before it starts."""
        return bool(self.per_preset or self.per_login or any(self.presets.values()))


@record
class Counted:
    """A run as the limits see it; `login` is the directory and the account of its program's login."""

    run: str
    rig: str = ""
    preset: str = ""
    login: str = ""


@record
class Bound:
    """One limit that a run falls under: what it is called, and which runs count."""

    named: str
    most: int
    attribute: str
    value: str

    def counts(self, one: Counted) -> bool:
        return not self.attribute or getattr(one, self.attribute) == self.value


@record
class Full:
    """The limit that keeps a run waiting, and the runs that take its places."""

    bound: Bound
    runs: tuple[str, ...]

    @property
    def told(self) -> str:
        """Such as `2 of 2 runs in rig shop are at work: run_a, run_b`."""
        some = ", ".join(self.runs[:QUOTED]) + (", …" if len(self.runs) > QUOTED else "")
        verb = "is" if len(self.runs) == 1 else "are"
        noun = "run" if self.bound.most == 1 else "runs"
        return f"{len(self.runs)} of {self.bound.most} {noun} {self.bound.named} {verb} at work or before it: {some}."


def bounds_of(most: Most, one: Counted) -> Iterator[Bound]:
    """The limits that the run falls under, the widest first."""
    if most.runs:
        yield Bound("of the city", most.runs, "", "")
    if one.rig and (limit := most.rigs.get(one.rig, most.per_rig)):
        yield Bound(f"in rig {one.rig}", limit, "rig", one.rig)
    if one.preset and (limit := most.presets.get(one.preset, most.per_preset)):
        yield Bound(f"of preset {one.preset}", limit, "preset", one.preset)
    if one.login and most.per_login:
        yield Bound(f"with the login {one.login.partition(' ')[0]}", most.per_login, "login", one.login)


def full(most: Most, one: Counted, at_work: Sequence[Counted], before: Sequence[Counted] = ()) -> Full | None:
    """What keeps the run waiting; None if it may start.

    `before` are those that have waited for longer, the first to come first: each takes the place that it can have.
    """
    places = list(at_work)
    for other in before:
        if _full(most, other, places) is None:
            places.append(other)
    return _full(most, one, places)


def pause(ahead: int) -> timedelta:
    """How long a run with so many before it waits until it looks again."""
    return min(LOOK_EVERY * (1 + ahead // A_FEW), LONGEST_PAUSE)


def too_little(available: int | None, wanted: int) -> str:
    """Why nothing starts on a machine with so many megabytes available; empty if it may, or if nobody knows."""
    if not wanted or available is None or available >= wanted:
        return ""
    return f"{available} MB of memory are available, and `[limits] memory` asks for {wanted} MB."


def _full(most: Most, one: Counted, places: Sequence[Counted]) -> Full | None:
    for bound in bounds_of(most, one):
        taken = tuple(other.run for other in places if bound.counts(other))
        if len(taken) >= bound.most:
            return Full(bound, taken)
    return None
