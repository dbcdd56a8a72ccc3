"""Finding automations and runs by what one remembers of their names."""

from dataclasses import dataclass
from enum import StrEnum

from lamplighter.domain.access import Verb
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, read
from lamplighter.services.resolving import SHORTEST
from lamplighter.store.tx import Tx

LONGEST = 200


class Kind(StrEnum):
    AUTOMATION = "automation"
    RUN = "run"


@dataclass(frozen=True)
class FoundView:
    kind: Kind
    name: str = given("The scoped name of an automation, or the id of a run.")
    detail: str = given("In which state it is, and for a run of which automation.")


@dataclass(frozen=True)
class FindThings:
    """Automations whose names have a text in them, and runs whose ids begin or end with it."""

    text: str = given("What is remembered; every word of it must be in a name.", positional=True)
    limit: int = given("At most so many of each.", default=20, least=1, most=200)


def find_things(tx: Tx, ask: FindThings, _ctx: Context) -> list[FoundView]:
    words = ask.text[:LONGEST].casefold().split()
    if not words:
        return []
    named = tx.automations.with_words(words, limit=ask.limit)
    found = [FoundView(Kind.AUTOMATION, name, "on" if enabled else "off") for name, enabled in named]
    return found + [FoundView(Kind.RUN, run, detail) for run, detail in _runs(tx, words, ask.limit)]


def _runs(tx: Tx, words: list[str], limit: int) -> list[tuple[str, str]]:
    part = words[0].removeprefix("run_")
    if len(words) > 1 or len(part) < SHORTEST or not part.isalnum() or not part.isascii():
        return []
    ids = dict.fromkeys([*tx.runs.beginning(f"run_{part}", limit=limit), *tx.runs.ending(part, limit=limit)])
    rows = tx.runs.some(ids)
    return [(run, f"{rows[run].automation}, {rows[run].state.value}") for run in list(ids)[:limit] if run in rows]


FIND = read(
    "city.find", Verb.READ, FindThings, list[FoundView], find_things, command="find", http=Http("GET", "/found")
)
