"""A bead file of Gas City, taken over once; and which store a city's beads live in."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lamplighter.adapters.beads.decode import BeadUnreadable
from lamplighter.adapters.beads.external import ExternalBeads
from lamplighter.adapters.files.city import CityPaths
from lamplighter.app.bead_adapters import import_bead_file
from lamplighter.app.beads import bead_provider
from lamplighter.app.create import create_city
from lamplighter.app.open_beads import bead_store
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.beads.model import BeadFilter, BeadStatus, NewBead
from lamplighter.domain.city.tree import ConfigInvalid
from lamplighter.domain.events import EventFilter
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.services.import_beads import IdTaken
from lamplighter.services.own_beads import OwnBeads
from lamplighter.testing.clock import FakeClock

CREATED = "2026-02-01T10:00:00.123456789Z"
MakeCity = Callable[..., OpenCity]


@pytest.fixture
def make_city(tmp_path: Path, fake_clock: FakeClock, ids: IdSource) -> Iterator[MakeCity]:
    root = tmp_path / "city"
    cities: list[OpenCity] = []

    def opened(toml: str = '[beads]\nprovider = "file"\n', **env: str) -> OpenCity:
        settings = Settings(cwd=root, city=root, actor="human", run=None, env=env)
        create_city(root, settings)
        (root / "city.toml").write_text(f'[workspace]\nname = "city"\n{toml}')
        cities.append(OpenCity(settings, CityPaths(root), fake_clock, ids))
        return cities[-1]

    yield opened
    for city in cities:
        city.close()


@pytest.fixture
def city(make_city: MakeCity) -> OpenCity:
    return make_city()


def write(city: OpenCity, *beads: dict[str, Any]) -> Path:
    path = city.paths.runtime / "beads.json"
    path.write_text(json.dumps({"seq": len(beads), "beads": [{"created_at": CREATED} | bead for bead in beads]}))
    return path


def test_beads_come_over_as_they_are(city: OpenCity) -> None:
    path = write(
        city,
        {"id": "gc-2", "title": "Step", "type": "task", "parent_id": "gc-1", "ref": "step", "needs": ["gc-3"]},
        {
            "id": "gc-1", "title": "Whole", "status": "in_progress", "type": "molecule", "assignee": "amber",
            "from": "mayor", "labels": ["b", "a"], "description": "text", "metadata": {"k": "v"},
        },
        {"id": "gc-3", "title": "Done", "status": "closed", "parent_id": "gc-2", "updated_at": "2026-02-02T10:00:00Z"},
    )  # fmt: skip
    whole, step, done = (bead_store(city).get(bead) for bead in ("gc-1", "gc-2", "gc-3"))
    assert (whole.status, whole.type, whole.assignee) == (BeadStatus.IN_PROGRESS, "molecule", "amber")
    assert (whole.sender, whole.labels, whole.description) == ("mayor", ("a", "b"), "text")
    assert (whole.metadata, whole.root, whole.parent) == ({"k": "v"}, "gc-1", None)
    assert (step.parent, step.root, step.ref, step.needs) == ("gc-1", "gc-1", "step", ("gc-3",))
    assert step.created_at == datetime(2026, 2, 1, 10, 0, 0, 123456, tzinfo=UTC)
    assert (done.status, done.closed_at, done.root) == (BeadStatus.CLOSED, datetime(2026, 2, 2, 10, tzinfo=UTC), "gc-1")
    assert not path.exists()
    assert path.with_name("beads.json.imported").exists()
    (event,) = city.store.read(lambda tx: tx.events.latest(EventFilter(), limit=10))
    assert (event.type, event.message, event.payload) == ("bead.imported", "3 beads", {"source": str(path)})


def test_an_import_that_was_cut_off_before_the_rename_changes_nothing_the_second_time(city: OpenCity) -> None:
    path = write(city, {"id": "gc-1", "title": "Build"})
    bead_store(city).close("gc-1")
    path.with_name("beads.json.imported").rename(path)
    done = import_bead_file(city)
    assert done is not None
    assert done.count == 0
    assert bead_store(city).get("gc-1").status is BeadStatus.CLOSED
    assert import_bead_file(city) is None


def test_a_second_file_is_put_beside_the_first(city: OpenCity) -> None:
    write(city, {"id": "gc-1", "title": "Build"})
    import_bead_file(city)
    path = write(city, {"id": "gc-2", "title": "Test"})
    import_bead_file(city)
    assert path.with_name("beads.json.imported.2").exists()
    assert [bead.id for bead in bead_store(city).matching(BeadFilter(), limit=9)] == ["gc-2", "gc-1"]


def test_links_to_nowhere_are_left_out_and_told(city: OpenCity) -> None:
    write(
        city,
        {"id": "gc-1", "title": "A", "parent_id": "gc-8", "needs": ["gc-9", "gc-1", "gc-2"]},
        {"id": "gc-2", "title": "B", "parent_id": "gc-3"},
        {"id": "gc-3", "title": "C", "parent_id": "gc-2"},
    )
    done = import_bead_file(city)
    assert done is not None
    assert done.count == 3
    assert sorted(done.notes) == [
        "gc-1: its need gc-1 was left out",
        "gc-1: its need gc-9 was left out",
        "gc-1: its parent gc-8 was left out",
        "gc-3: its parent gc-2 was left out",
    ]
    assert [bead_store(city).get(bead).root for bead in ("gc-1", "gc-2", "gc-3")] == ["gc-1", "gc-3", "gc-3"]


def test_an_id_that_another_bead_has_imports_nothing(city: OpenCity) -> None:
    beads = bead_store(city)
    taken = beads.create(NewBead("Ours")).id
    path = write(city, {"id": "gc-1", "title": "New"}, {"id": taken, "title": "Theirs"})
    with pytest.raises(IdTaken, match=taken):
        import_bead_file(city)
    assert path.exists()
    assert [bead.id for bead in beads.matching(BeadFilter(), limit=9)] == [taken]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a bead file"),
        ('{"beads": 3}', "is not a bead file"),
        ('{"beads": [3]}', r"beads\[0\]: a bead was expected, not 3"),
        ('{"beads": [{"title": "x"}]}', r"beads\[0\].created_at: is missing"),
        ('{"beads": [{"created_at": "noon"}]}', r"beads\[0\].created_at: is a time such as"),
        (f'{{"beads": [{{"created_at": "{CREATED}", "labels": "x"}}]}}', r"beads\[0\].id: is missing"),
        (f'{{"beads": [{{"created_at": "{CREATED}", "labels": "x"}}]}}', r"beads\[0\].labels: is a list of texts"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_its_place_and_kept(city: OpenCity, content: str, told: str) -> None:
    path = city.paths.runtime / "beads.json"
    path.write_text(content)
    with pytest.raises(BeadUnreadable, match=told) as refused:
        import_bead_file(city)
    assert str(path) in refused.value.message
    assert path.read_text() == content


def test_two_beads_of_one_id_are_told(city: OpenCity) -> None:
    write(city, {"id": "gc-1", "title": "A"}, {"id": "gc-1", "title": "B"})
    with pytest.raises(BeadUnreadable, match="'gc-1' stands twice"):
        import_bead_file(city)


def test_a_file_that_is_empty_of_beads_is_put_aside(city: OpenCity) -> None:
    path = city.paths.runtime / "beads.json"
    path.write_text('{"seq": 0, "beads": null}')
    done = import_bead_file(city)
    assert done is not None
    assert done.count == 0
    assert not path.exists()


def test_a_directory_in_its_place_is_told(city: OpenCity) -> None:
    (city.paths.runtime / "beads.json").mkdir()
    with pytest.raises(Unavailable, match=r"beads\.json cannot be read"):
        import_bead_file(city)


@pytest.mark.parametrize(
    ("toml", "env", "provider", "whole"),
    [
        ("", {}, "store", False),
        ('[beads]\nprovider = "file"', {}, "file", False),
        ('[beads]\nprovider = "bd"', {"GC_BEADS": "file"}, "file", False),
        ('[beads]\nprovider = "bd"', {"GC_BEADS": "file", "LAMP_BEADS_PROVIDER": "store"}, "store", False),
        ('[beads]\nprovider = "bd"', {}, "bd", True),
        ("", {"LAMP_BEADS_PROVIDER": "exec:keep"}, "exec:keep", True),
    ],
)
def test_the_provider_is_known_without_the_whole_configuration_where_it_is_ours(
    make_city: MakeCity,
    toml: str,
    env: dict[str, str],
    provider: str,
    whole: bool,  # noqa: FBT001  a case
) -> None:
    city = make_city(toml, **env)
    assert bead_provider(city) == provider
    assert isinstance(bead_store(city), OwnBeads) is not whole
    assert isinstance(bead_store(city), ExternalBeads) is whole
    assert ("config" in city.__dict__) is whole


@pytest.mark.parametrize("toml", ['[beads]\nprovider = "fiel"', "[beads]\nprovider = 3", "[beads"])
def test_a_wrong_provider_is_told_by_the_configuration(make_city: MakeCity, toml: str) -> None:
    with pytest.raises(ConfigInvalid):
        bead_provider(make_city(toml))


def test_the_prefix_is_asked_for_only_to_create(make_city: MakeCity) -> None:
    city = make_city("")
    assert bead_store(city).ready() == []
    assert "config" not in city.__dict__
    assert bead_store(city).create(NewBead("Build")).id.startswith(f"{city.config.city.prefix}-")
