"""Configurations in the store beside those of the files: made, changed, deleted; used ones stay."""

from typing import Any

import pytest
from automation_city import City

from lamplighter.domain.city.configurations import ConfigurationInvalid
from lamplighter.domain.city.model import City as Declared
from lamplighter.domain.city.model import Configuration, Provider, Rig, Workspace
from lamplighter.kit.errors import UsageError
from lamplighter.kit.masking import MASK
from lamplighter.kit.shapes import to_json
from lamplighter.services import configurations
from lamplighter.services.configurations import (
    ConfigurationInUse,
    ConfigurationReadOnly,
    ConfigurationTaken,
    ConfigurationUnknown,
    ListConfigurations,
    ShowConfiguration,
    list_configurations,
    show_configuration,
)

TOWN = Declared(
    workspace=Workspace(name="town"),
    rigs=(Rig(name="web", path="web"),),
    providers={"caretaker": Provider(command="sh")},
)


def create(city: City, **body: Any) -> dict[str, Any]:
    city.run(configurations.create, body, source="api", city=TOWN, ctx=city.context)
    return show(city, body["name"])


def edit(city: City, name: str, /, **changes: Any) -> dict[str, Any]:
    city.run(configurations.edit, name, changes, city=TOWN, ctx=city.context)
    return show(city, name)


def delete(city: City, name: str) -> None:
    city.run(configurations.delete, name, ctx=city.context)


def show(city: City, name: str) -> dict[str, Any]:
    found: dict[str, Any] = to_json(city.read(show_configuration, ShowConfiguration(name), city.context))
    return found


def every(city: City) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = to_json(city.read(list_configurations, ListConfigurations(), city.context))
    return found


def test_one_is_made_with_the_keys_of_a_file(city: City) -> None:
    made = create(city, name="site", rig="web", preset="caretaker", mode="plan", env={"LAMPS": "7"}, description="Web.")
    assert made == {
        "name": "site", "description": "Web.", "rig": "web", "path": None, "preset": "caretaker", "model": None,
        "mode": "plan", "env": {"LAMPS": "7"}, "source": "api", "used_by": [], "effort": None, "home": None,
        "fallback_preset": None, "fallback_model": None,
    }  # fmt: skip
    assert city.read(configurations.known)["site"].rig == "web"
    assert [one["name"] for one in every(city)] == ["site"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "name: is missing"),
        ({"name": ""}, "name: is empty"),
        ({"name": "a/b"}, "`a/b` is not a name"),
        ({"name": 3}, "name: must be a text"),
        ({"name": "x", "rig": "wbe"}, "rig: `wbe` is not a rig; did you mean"),
        ({"name": "x", "preset": "caretakr"}, "did you mean `caretaker`?"),
        ({"name": "x", "path": "https://example.com/app.git"}, "is remote"),
        ({"name": "x", "path": "git@example.com:app.git"}, "is remote"),
        ({"name": "x", "path": "work/app"}, "is relative; write the whole path"),
        ({"name": "x", "path": "/a\0b"}, "holds a NUL"),
        ({"name": "x", "rig": "web", "path": "/srv"}, "a rig or in a path, not in both"),
        ({"name": "x", "mode": "careful"}, "mode: `careful` is not one of"),
        ({"name": "x", "env": {"A B": "c"}}, "is not a name of an environment variable"),
        ({"name": "x", "env": ["A"]}, "must be a table of texts"),
        ({"name": "x", "prest": "big"}, "prest: is not a setting; did you mean `preset`?"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_kept(city: City, body: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        city.run(configurations.create, body, source="api", city=TOWN, ctx=city.context)
    assert told in caught.value.message
    assert every(city) == []


def test_all_problems_come_at_once(city: City) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        create(city, name="x y", rig="nowhere", mode="careful")
    assert len(caught.value.message.splitlines()) == 3


def test_a_name_is_given_once(city: City) -> None:
    create(city, name="site")
    with pytest.raises(ConfigurationTaken):
        create(city, name="site", model="big")
    assert show(city, "site")["model"] is None


def test_only_what_is_named_changes(city: City) -> None:
    create(city, name="site", rig="web", model="big", env={"A": "1", "B": "2"})
    assert edit(city, "site", model="small")["rig"] == "web"
    assert edit(city, "site", env={"A": None, "C": "3"})["env"] == {"B": "2", "C": "3"}
    assert edit(city, "site", model=None)["model"] is None
    assert edit(city, "site", env=None)["env"] == {}


def test_a_path_takes_the_place_of_a_rig_and_back(city: City) -> None:
    create(city, name="site", rig="web")
    moved = edit(city, "site", path="/srv/app")
    assert (moved["rig"], moved["path"]) == (None, "/srv/app")
    back = edit(city, "site", rig="web")
    assert (back["rig"], back["path"]) == ("web", None)
    with pytest.raises(ConfigurationInvalid, match="not in both"):
        edit(city, "site", rig="web", path="/srv/app")


def test_what_looks_secret_is_covered_and_survives_being_sent_back(city: City) -> None:
    create(city, name="site", env={"API_TOKEN": "s3cr3t", "DB": "postgres://u:pw@h/d"})
    shown = show(city, "site")["env"]
    assert shown == {"API_TOKEN": MASK, "DB": f"postgres://u:{MASK}@h/d"}
    edit(city, "site", env=shown, model="big")
    assert city.read(configurations.known)["site"].env == {"API_TOKEN": "s3cr3t", "DB": "postgres://u:pw@h/d"}


def test_a_name_is_kept(city: City) -> None:
    create(city, name="site")
    assert edit(city, "site", name="site", model="m")["model"] == "m"
    with pytest.raises(UsageError, match="keeps its name"):
        edit(city, "site", name="other")


def test_one_of_a_file_is_read_only_here(city: City) -> None:
    city.run(configurations.sync, (Configuration(name="site", model="big"),), city.clock.now())
    assert show(city, "site")["source"] == "file"
    for change in (lambda: edit(city, "site", model="small"), lambda: delete(city, "site")):
        with pytest.raises(ConfigurationReadOnly):
            change()
    with pytest.raises(ConfigurationTaken):
        create(city, name="site")


def test_a_file_does_not_take_the_name_of_a_stored_one(city: City) -> None:
    create(city, name="site", model="mine")
    declared = (Configuration(name="site", model="theirs"), Configuration(name="api"))
    assert city.run(configurations.sync, declared, city.clock.now()) == ["site"]
    assert (show(city, "site")["model"], show(city, "api")["source"]) == ("mine", "file")
    delete(city, "site")
    assert city.run(configurations.sync, declared, city.clock.now()) == []
    assert show(city, "site")["model"] == "theirs"


@pytest.mark.parametrize(
    "agent",
    [
        {"configuration": "site"},
        {"strategy": "agent_decide", "configurations": ["site", "other"]},
        {"strategy": "agent_decide", "configurations": ["other"], "fallback": "site"},
    ],
)
def test_one_that_an_automation_uses_stays(city: City, agent: dict[str, Any]) -> None:
    create(city, name="site")
    city.add("sweep", agent={"prompt": "Go."} | agent)
    city.add("other", exec="echo site agent")
    assert show(city, "site")["used_by"] == ["sweep"]
    with pytest.raises(ConfigurationInUse, match=r"used by sweep\."):
        delete(city, "site")
    assert show(city, "site")["name"] == "site"


def test_an_unused_one_is_deleted_and_what_happened_is_told(city: City) -> None:
    create(city, name="site")
    edit(city, "site", model="m")
    delete(city, "site")
    with pytest.raises(ConfigurationUnknown):
        show(city, "site")
    with pytest.raises(ConfigurationUnknown):
        delete(city, "site")
    for verb in ("added", "changed", "removed"):
        assert len(city.events(f"configuration.{verb}")) == 1


def test_a_misspelt_name_is_told_with_the_nearest(city: City) -> None:
    create(city, name="site")
    with pytest.raises(ConfigurationUnknown, match="did you mean `site`"):
        show(city, "siet")


def test_what_a_newer_program_kept_is_read_as_far_as_it_is_known(city: City) -> None:
    from lamplighter.store.configurations import ConfigurationRow

    row = ConfigurationRow("new", "api", {"model": "m", "sandbox": "deep"})
    city.run(lambda tx: tx.configurations.put(row, city.clock.now()))
    assert city.read(configurations.known)["new"].model == "m"
