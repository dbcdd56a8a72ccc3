"""What the database finds for a query is what a plain predicate picks out of all runs, on both databases."""

import contextlib
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.runs.query import (
    ACTIONS,
    Condition,
    CostBound,
    Field,
    PayloadField,
    QueryWrong,
    RunQuery,
    Sign,
    Word,
    parse,
    passes,
)
from lamplighter.kit.ids import At, IdSource
from lamplighter.store import run_lists
from lamplighter.store.tx import DirectStore, Tx
from lamplighter.store.url import Place, open_direct
from lamplighter.testing.contracts.store import CITY

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
NAMES = ["a", "ab", "abc", "b:rig:web", "A", "ä", "a%", "a_", "~z"]
REASONS = ["", "budget", "exit_1", "exit_12", 'it said "no"', "a, b"]
RIGS = [None, "web", "we"]
TRIGGERS = ["cron", "manual", "event"]
PEOPLE = [None, "ada", "adam"]
COSTS = [None, 0.0, 0.5, 1.0, 12.25]
COUNT = 150


def made() -> list[Run]:
    chance = random.Random(7)
    found = []
    for number in range(COUNT):
        at = BEGIN + timedelta(minutes=number * 17)
        run = Run(IdSource(At(at)).make("run"), chance.choice(NAMES), chance.choice(list(RunState)), at)
        run = replace(run, reason=chance.choice(REASONS), rig=chance.choice(RIGS), action=chance.choice(ACTIONS))
        run = replace(run, assigned_to=chance.choice(PEOPLE), cost=chance.choice(COSTS))
        run = replace(run, continued_by=f"run_after{number}" if number % 3 == 0 else None)
        found.append(replace(run, trigger_kind=chance.choice(TRIGGERS), automation_id=f"aut_{run.automation}"))
    return found


RUNS = made()
PATHS = ("repo", "data.n")
PAYLOADS = {
    run.id: [("repo", ["acme/web", "acme/shop", "other"][n % 3])] * (n % 4 > 0) + [("data.n", str(n % 5))] * (n % 2)
    for n, run in enumerate(RUNS)
}


@pytest.fixture
def store(place: Place) -> Iterator[DirectStore]:
    direct = open_direct(place, CITY)

    def fill(tx: Tx) -> None:
        tx.cities.ensure("test", BEGIN)
        for run in RUNS:
            tx.runs.insert(run)
            tx.run_fields.add(run.id, PAYLOADS[run.id])
            later = {"reason": run.reason, "by": run.continued_by, "who": run.assigned_to, "cost": run.cost,
                     "city": CITY, "id": run.id}  # fmt: skip  # a new run has none yet
            tx.db.execute(
                "UPDATE runs SET reason = :reason, continued_by = :by, assigned_to = :who, cost = :cost "
                "WHERE city_id = :city AND id = :id", later,
            )  # fmt: skip

    direct.transact(fill)
    yield direct
    direct.close()


def values(field: Field | PayloadField) -> st.SearchStrategy[str]:
    known: dict[Field | PayloadField, list[str]] = {
        PayloadField("repo"): ["acme/web", "acme/shop", "other", "none"],
        PayloadField("data.n"): ["0", "1", "2", "3", "4", "5"],
        Field.STATE: [one.value for one in RunState],
        Field.AUTOMATION: NAMES,
        Field.REASON: REASONS,
        Field.RIG: ["", "web", "we", "other"],
        Field.TRIGGER: TRIGGERS,
        Field.ACTION: list(ACTIONS),
        Field.CONTINUED: ["yes", "no"],
        Field.CLAIMED: ["", "ada", "adam", "eve"],
    }
    return st.sampled_from(known[field])


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    field: Field | PayloadField = draw(st.sampled_from([*Field, *map(PayloadField, PATHS)]))
    may_begin = field not in {Field.STATE, Field.ACTION, Field.CONTINUED}
    texts = draw(st.lists(values(field), min_size=1, max_size=3, unique=True))
    found = []
    for text in texts:
        is_prefix = may_begin and draw(st.booleans())
        found.append(Word(text[: draw(st.integers(0, len(text)))] if is_prefix else text, is_prefix))
    return Condition(field, tuple(found), draw(st.booleans()))


times = st.none() | st.integers(-20, COUNT + 20).map(lambda number: BEGIN + timedelta(minutes=number * 17))
bounds = st.builds(CostBound, st.sampled_from(Sign), st.sampled_from([0.0, 0.5, 1.0, 20.0]))
queries = st.builds(
    RunQuery, st.lists(conditions(), max_size=3).map(tuple), times, times, st.lists(bounds, max_size=2).map(tuple)
)


def _search(tx: Tx, query: RunQuery, before: str | None, limit: int) -> tuple[list[Run], str | None]:
    return tx.runs.search(query, before=before, limit=limit)


def found_by(store: DirectStore, query: RunQuery, limit: int) -> list[str]:
    """All pages, one after the other."""
    seen: list[str] = []
    before: str | None = None
    while True:
        rows, searched_to = store.read(_search, query, before, limit)
        seen += [row.id for row in rows]
        before = rows[-1].id if len(rows) == limit else searched_to
        if before is None:
            return seen


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=queries, limit=st.sampled_from([3, 1000]), most=st.sampled_from([1, 7, 1000]))
def test_a_search_finds_what_passes_newest_first(store: DirectStore, query: RunQuery, limit: int, most: int) -> None:
    expected = [
        run.id for run in sorted(RUNS, key=lambda run: run.id, reverse=True) if passes(query, run, PAYLOADS[run.id])
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run_lists, "MOST_SEARCHED", most)
        assert found_by(store, query, limit) == expected


def written(query: RunQuery) -> str:
    """The query as a person writes it."""
    parts = []
    for one in query.conditions:
        words = ",".join(f'"{word.text}{"*" if word.is_prefix else ""}"' for word in one.words)
        parts.append(f"{'-' if one.negated else ''}{one.field.value}:{words}")
    for name, at in (("since", query.since), ("until", query.until)):
        if at is not None:
            parts.append(f"{name}:{at.isoformat()}")
    parts += [f"cost:{one.sign.value}{one.dollars}" for one in query.costs]
    return " ".join(parts)


@given(query=queries)
def test_a_query_is_read_as_it_was_written(query: RunQuery) -> None:
    texts = [word.text for one in query.conditions for word in one.words]
    keys = [(one.field, one.negated) for one in query.conditions]
    if any('"' in text for text in texts) or len(keys) != len(set(keys)):
        return
    assert parse(written(query), BEGIN, PATHS) == query


@given(text=st.text(max_size=60) | st.from_regex(r'(-?[a-z.]{1,9}:"?[a-z*,]{0,6}"? ?){1,4}', fullmatch=True))
def test_no_text_is_more_than_refused(text: str) -> None:
    with contextlib.suppress(QueryWrong):
        parse(text, BEGIN)
