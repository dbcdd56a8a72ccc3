"""Committed events on PostgreSQL get consecutive numbers as they were written, whatever plan the server chooses."""

import psycopg

from lamplighter.domain.events import NewEvent
from lamplighter.store.engine.numbering import number_committed
from lamplighter.store.tx import Tx
from lamplighter.store.url import PostgresUrl, open_direct
from lamplighter.testing.contracts.store import AT, CITY


def append(tx: Tx, *types: str) -> None:
    for one in types:
        tx.events.append(NewEvent(one, AT, "me"))


def append_and_number(tx: Tx, *types: str) -> int:
    append(tx, *types)
    return number_committed(tx.db)


def test_a_server_that_takes_the_table_for_empty_numbers_each_event_once(postgres_place: PostgresUrl) -> None:
    """Its plan then goes through all events, and looks for each which are to be numbered."""
    store = open_direct(postgres_place, CITY)
    try:
        store.transact(lambda tx: tx.cities.ensure("town", AT))
        store.transact(append, "town.first")
        with psycopg.connect(postgres_place.url, autocommit=True) as other:
            other.execute("ANALYZE events")
        store.transact(append, *(f"town.old{n}" for n in range(29)))
        assert store.transact(append_and_number, "town.a", "town.b", "town.c") == 3
        seen = store.read(lambda tx: tx.events.after(0))
    finally:
        store.close()
    assert [event.seq for event in seen] == list(range(1, 34))
    assert [event.type for event in seen[-3:]] == ["town.a", "town.b", "town.c"]
