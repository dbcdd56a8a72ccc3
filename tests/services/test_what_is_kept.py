"""What is kept once, replaced by who was first, or forgotten: control, positions, notes, artifacts, connections."""

from datetime import datetime, timedelta

from automation_city import City
from test_what_records_find import SECOND

from lamplighter.domain.delivery_fields import Provider
from lamplighter.store.artifacts import ArtifactRow
from lamplighter.store.audit import AuditRow
from lamplighter.store.connections import ConnectionRow
from lamplighter.store.cursors import Cursor
from lamplighter.store.notes import Notes
from lamplighter.store.sessions import SessionRow

MINUTE, INSTANT = timedelta(minutes=1), timedelta(microseconds=1)


def test_of_two_that_take_control_the_first_has_it_until_it_lets_go(city: City) -> None:
    now = city.clock.now()
    row = lambda: city.read(lambda tx: tx.cities.find())  # noqa: E731
    take = lambda owner, expected: city.run(lambda tx: tx.cities.take_control(owner, expected=expected, now=now))  # noqa: E731
    version = row().controller_version
    assert (take("own_1", version), take("own_2", version)) == (True, False)
    assert (row().controller, row().controller_since, row().controller_version) == ("own_1", now, version + 1)
    city.run(lambda tx: tx.cities.drop_control("own_2"))
    assert row().controller == "own_1"
    city.run(lambda tx: tx.cities.drop_control("own_1"))
    assert (row().controller, row().controller_since) == (None, None)


def test_what_was_scanned_is_never_scanned_less(city: City) -> None:
    for seq in (5, 3, 5, 9):
        city.run(lambda tx, seq=seq: tx.cities.scanned(seq))
    assert city.read(lambda tx: tx.cities.find()).events_scanned == 9
    city.run(lambda tx: tx.cities.ensure("renamed", city.clock.now()))
    assert (city.read(lambda tx: tx.cities.find()).name, city.read(lambda tx: tx.cities.find()).events_scanned) == (
        "renamed",
        9,
    )


def test_that_something_came_is_noted_to_the_minute(city: City) -> None:
    began = city.clock.now()
    for name in ("gh", "other"):
        made = ConnectionRow(name, Provider.GITHUB, "", (), (), (), began, "ada")
        assert city.run(lambda tx, made=made: tx.connections.add(made))
        assert not city.run(lambda tx, made=made: tx.connections.add(made))

    def came() -> int:
        known = city.read(lambda tx: tx.connections.versions(["gh"]))["gh"]
        city.run(lambda tx: tx.connections.came(known, city.clock.now()))
        return (city.read(lambda tx: tx.connections.get("gh")).last_at - began) // SECOND

    assert came() == 0
    city.clock.advance(MINUTE)
    assert came() == 0
    stale = city.read(lambda tx: tx.connections.versions(["gh"]))["gh"]
    city.clock.advance(INSTANT)
    assert came() == 60
    city.clock.advance(30 * SECOND)
    city.run(lambda tx: tx.connections.came(stale, city.clock.now()))
    assert came() == 60, "another process has noted it meanwhile"
    assert city.read(lambda tx: tx.connections.get("other")).last_at is None
    before = city.read(lambda tx: tx.connections.get("gh")).version
    assert before.is_same(city.read(lambda tx: tx.connections.versions(["gh"]))["gh"])
    city.run(lambda tx: tx.connections.rotated("gh", city.clock.now(), city.clock.now()))
    after = city.read(lambda tx: tx.connections.versions(["gh", "other"]))
    assert (before.is_same(after["gh"]), before.is_same(None), list(after)) == (False, False, ["gh", "other"])


def test_of_two_readers_of_one_output_the_first_adds_what_it_read(city: City) -> None:
    now = city.clock.now()
    for number in (1, 2):
        row = SessionRow(f"ses_{number}", "s", None, "run_1", "tmux", "here", number, now)
        city.run(lambda tx, row=row: tx.sessions.add(row))
    advance = lambda before, after, program=None: city.run(  # noqa: E731
        lambda tx: tx.transcripts.advance("ses_1", before=before, after=after, program=program)
    )
    assert (advance(0, 10, "abc"), advance(0, 12), advance(10, 12)) == (True, False, True)
    position = lambda name: city.read(lambda tx: tx.transcripts.position(name))  # noqa: E731
    assert (position("ses_1"), position("ses_2"), position("ses_9")) == (12, 0, None)
    assert city.read(lambda tx: tx.sessions.get("ses_1")).program_session == "abc", "it is not forgotten"
    told = [("text", {"text": f"line {number}"}) for number in range(3)]
    city.run(lambda tx: tx.transcripts.add("ses_1", 1, told, now))
    city.run(lambda tx: tx.transcripts.add("ses_2", 1, [("text", {"text": "other"})], now))
    found = lambda **keys: [one.number for one in city.read(lambda tx: tx.transcripts.after("ses_1", **keys))]  # noqa: E731
    assert (found(), found(number=1), found(limit=1)) == ([1, 2, 3], [2, 3], [1])
    assert city.read(lambda tx: (tx.transcripts.count("ses_1"), tx.transcripts.count("ses_9"))) == (3, 0)


def test_notes_and_cursors_are_written_in_place_of_the_version_that_was_read(city: City) -> None:
    now = city.clock.now()
    one, other = city.add("one").id, city.add("other").id
    note = lambda of, version: city.run(lambda tx: tx.notes.add(Notes(of, version, f"v{version}", "ann", now)))  # noqa: E731
    assert (note(one, 1), note(one, 2), note(one, 2), note(other, 1)) == (True, True, False, True)
    latest = lambda of: city.read(lambda tx: tx.notes.latest(of))  # noqa: E731
    assert (latest(one).version, latest(other).version) == (2, 1)
    assert city.run(lambda tx: tx.notes.prune(one, up_to=1)) == 1
    assert city.read(lambda tx: [tx.notes.get(of, 1) is None for of in (one, other)]) == [True, False]
    put = lambda of, version, value: city.run(  # noqa: E731
        lambda tx: tx.cursors.put(Cursor(of, "text", value, version, "ann", now))
    )
    assert (put(one, 1, "a"), put(one, 1, "b"), put(one, 3, "c"), put(one, 2, "d"), put(one, 2, "e")) == (
        True, False, False, True, False,
    )  # fmt: skip
    assert city.read(lambda tx: (tx.cursors.get(one).value, tx.cursors.get(other))) == ("d", None)


def test_an_artifact_is_replaced_by_its_second_write_and_the_oldest_goes_first(city: City) -> None:
    now = city.clock.now()
    for run, name, size, at in (
        ("run_1", "a", 1, now),
        ("run_1", "b", 2, now - SECOND),
        ("run_2", "a", 3, now + SECOND),
    ):
        row = ArtifactRow(run, name, f"{run}/{name}", size, "text/plain", at)
        city.run(lambda tx, row=row: tx.artifacts.put(row))
    city.run(lambda tx: tx.artifacts.put(ArtifactRow("run_1", "a", "run_1/a2", 9, "text/plain", now)))
    of = lambda run: [(one.name, one.key, one.size) for one in city.read(lambda tx: tx.artifacts.of(run))]  # noqa: E731
    assert of("run_1") == [("a", "run_1/a2", 9), ("b", "run_1/b", 2)]
    some = city.read(lambda tx: tx.artifacts.of_some(["run_1", "run_2", "run_3"]))
    assert {run: len(found) for run, found in some.items()} == {"run_1": 2, "run_2": 1}

    def old(before: datetime, limit: int = 9) -> list[str]:
        return [one.key for one in city.read(lambda tx: tx.artifacts.old(before=before, limit=limit))]

    assert (old(now - SECOND), old(now), old(now + MINUTE, 2)) == ([], ["run_1/b"], ["run_1/b", "run_1/a2"])
    city.run(lambda tx: tx.artifacts.forget(tx.artifacts.of("run_1")[0]))
    assert (of("run_1"), of("run_2")) == ([("b", "run_1/b", 2)], [("a", "run_2/a", 3)])


def test_a_conversation_is_that_of_its_automation_and_its_key_and_goes_with_its_run(city: City) -> None:
    one, other = city.add("one").id, city.add("other").id
    for of, key, run in ((one, "42", "run_1"), (one, "43", "run_2"), (other, "42", "run_3"), (one, "42", "run_4")):
        city.run(lambda tx, of=of, key=key, run=run: tx.conversations.put(of, key, run))
    run_of = lambda of, key: city.read(lambda tx: tx.conversations.run_of(of, key))  # noqa: E731
    assert (run_of(one, "42"), run_of(one, "43"), run_of(other, "42"), run_of(other, "43")) == (
        "run_4", "run_2", "run_3", None,
    )  # fmt: skip
    assert city.run(lambda tx: tx.conversations.delete_of_runs(["run_1", "run_2"])) == 1
    assert (run_of(one, "42"), run_of(one, "43")) == ("run_4", None)


def test_the_audit_is_read_newest_first_by_page_and_by_actor(city: City) -> None:
    for number in range(4):
        row = AuditRow(f"adt_{number}", city.clock.now(), "ann" if number % 2 else "max", None, "cli", "x", None, {})
        city.run(lambda tx, row=row: tx.audit.add(row))
    page = lambda **keys: [one.id for one in city.read(lambda tx: tx.audit.page(**keys))]  # noqa: E731
    assert page() == ["adt_3", "adt_2", "adt_1", "adt_0"]
    assert (page(limit=1), page(before="adt_2"), page(actor="ann"), page(actor="ann", before="adt_3")) == (
        ["adt_3"], ["adt_1", "adt_0"], ["adt_3", "adt_1"], ["adt_1"],
    )  # fmt: skip
