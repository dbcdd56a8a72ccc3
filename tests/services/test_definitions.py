"""File definitions into the store: added, changed, removed, disabled, broken; and stored ones beside them."""

from pathlib import Path

import pytest
from automation_city import City

from lamplighter.adapters.files.automations import LayerDirectory, scan
from lamplighter.domain.inbox.items import Kind
from lamplighter.services.automations import definitions, editing, firing
from lamplighter.services.automations.queries import LIST, SHOW, ListAutomations, ShowAutomation


class Files:
    def __init__(self, city: City, root: Path) -> None:
        self.city, self.root = city, root

    def write(self, name: str, text: str, *, layer: str = "city") -> Path:
        path = self.root / layer / "automations" / name / "automation.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"[automation]\n{text}")
        return path

    def sync(self, *, skip: tuple[str, ...] = ()) -> definitions.Synced:
        layers = [LayerDirectory(self.root / "low"), LayerDirectory(self.root / "city")]
        layers += [LayerDirectory(self.root / f"rig-{rig}", rig) for rig in ("a", "b")]
        found = scan(layers, skip=skip)
        city = self.city
        report: definitions.Synced = city.run(definitions.sync, found, city.rules, ctx=city.context)
        return report


@pytest.fixture
def files(city: City, tmp_path: Path) -> Files:
    return Files(city, tmp_path / "layers")


COOLDOWN = 'exec = "true"\ngate = "cooldown"\ninterval = "1h"\n'


def test_a_new_file_is_added_and_fires_a_second_sync_changes_nothing(files: Files, city: City) -> None:
    path = files.write("tidy", COOLDOWN)
    assert files.sync().added == ["tidy"]
    row = city.row("tidy")
    assert (row.source, row.path) == ("file", str(path))
    assert not files.sync()
    assert len(city.tick().fired) == 1


def test_a_changed_file_keeps_the_state_of_untouched_triggers(files: Files, city: City) -> None:
    files.write("tidy", COOLDOWN)
    files.sync()
    city.finish(city.tick().fired[0])
    before = city.trigger("tidy").state
    files.write("tidy", COOLDOWN + 'description = "new"\n')
    assert files.sync().changed == ["tidy"]
    assert city.trigger("tidy").state == before
    assert city.tick().fired == []


def test_a_removed_file_takes_its_automation_with_it(files: Files, city: City) -> None:
    path = files.write("tidy", COOLDOWN)
    files.sync()
    path.unlink()
    assert files.sync().removed == ["tidy"]
    assert city.tick().looked_at == 0
    with pytest.raises(firing.AutomationUnknown):
        city.row("tidy")


def test_case_11_one_bad_file_is_reported_and_the_others_live(files: Files, city: City) -> None:
    files.write("good", COOLDOWN)
    files.write("bad", 'exec = "true"\ngate = "cooldown"\n')
    report = files.sync()
    assert report.added == ["good"]
    assert report.broken == ["bad"]
    row = city.row("bad")
    assert row.definition is None
    assert "interval" in row.problems[0]
    assert city.do(SHOW, ShowAutomation("bad")).problems == list(row.problems)
    assert len(city.tick().fired) == 1
    assert not files.sync()


def test_a_file_that_breaks_fires_nothing_until_it_is_mended_and_keeps_its_state(files: Files, city: City) -> None:
    files.write("tidy", COOLDOWN)
    files.sync()
    city.finish(city.tick().fired[0])
    files.write("tidy", "gate = nonsense")
    assert files.sync().broken == ["tidy"]
    city.advance(hours=2)
    assert city.tick().fired == []
    files.write("tidy", COOLDOWN)
    assert [one.kind for one in city.read(lambda tx: tx.inbox.open_ones())] == [Kind.BROKEN]
    assert files.sync().changed == ["tidy"]
    assert city.row("tidy").problems == ()
    assert city.read(lambda tx: tx.inbox.open_ones()) == [], "nobody has to look into it any more"
    assert len(city.tick().fired) == 1


def test_case_12_the_higher_layer_replaces_the_definition_whole(files: Files, city: City) -> None:
    files.write("tidy", COOLDOWN, layer="low")
    high = files.write("tidy", 'exec = "false"\ngate = "manual"\n')
    files.sync()
    assert city.row("tidy").path == str(high)
    assert city.tick().fired == []


def test_case_13_disabled_and_skipped_ones_are_listed_and_never_fire(files: Files, city: City) -> None:
    files.write("off", COOLDOWN + "enabled = false\n")
    files.write("left", COOLDOWN)
    files.sync(skip=("left",))
    found = {one.name: one for one in city.do(LIST, ListAutomations())}
    assert found["off"].enabled is False
    assert found["left"].skipped is True
    assert city.tick().looked_at == 0


def test_case_14_same_names_in_two_rigs_are_independent(files: Files, city: City) -> None:
    files.write("db-health", COOLDOWN, layer="rig-a")
    files.sync()
    assert len(city.tick().fired) == 1
    files.write("db-health", COOLDOWN, layer="rig-b")
    files.sync()
    assert [city.get(run).automation for run in city.tick().fired] == ["db-health:rig:b"]
    label = "automation-run:db-health:rig:a"
    from lamplighter.domain.beads.model import BeadFilter

    assert len(city.read(lambda tx: tx.beads.matching(BeadFilter(label=label), limit=10))) == 1


def test_files_are_read_only_but_can_be_switched_off_and_on(files: Files, city: City) -> None:
    files.write("tidy", COOLDOWN)
    files.sync()
    with pytest.raises(editing.ReadOnly):
        city.run(editing.edit, "tidy", {"description": "x"}, rules=city.rules, ctx=city.context)
    with pytest.raises(editing.ReadOnly):
        city.run(editing.delete, "tidy", ctx=city.context)
    city.run(editing.set_enabled, "tidy", enabled=False, rules=city.rules, ctx=city.context)
    files.write("tidy", COOLDOWN + 'description = "edited"\n')
    files.sync()
    assert city.tick().fired == []
    city.run(editing.set_enabled, "tidy", enabled=True, rules=city.rules, ctx=city.context)
    assert len(city.tick().fired) == 1


def test_a_file_whose_name_a_stored_one_has_is_told_and_does_not_take_it(files: Files, city: City) -> None:
    city.add("tidy")
    files.write("tidy", COOLDOWN)
    report = files.sync()
    assert report.added == []
    assert "stored automation" in report.problems[0]
    assert city.row("tidy").source == "api"


def test_export_and_import_make_the_round_trip(city: City) -> None:
    city.add("tidy", gate="cron", schedule="*/5 * * * *", retry=2, description="d")
    tree = city.run(editing.export, "tidy")
    with pytest.raises(editing.NameTaken):
        city.run(editing.import_file, editing.Import("tidy", tree), rules=city.rules, ctx=city.context)
    city.run(editing.import_file, editing.Import("copy", tree), rules=city.rules, ctx=city.context)
    assert city.run(editing.export, "copy") == tree


def test_case_1_bad_input_names_every_field_and_changes_nothing(city: City) -> None:
    with pytest.raises(editing.DefinitionInvalid) as told:
        city.add(
            "bad", agent={"prompt": " ", "path": "ssh://x", "mode": "yolo"}, gate="schedule", cadence="fortnightly"
        )
    keys = {problem.key for problem in told.value.problems}
    assert {"agent.prompt", "agent.path", "agent.mode", "cadence"} <= keys
    assert city.do(LIST, ListAutomations()) == []


def test_case_3_two_writers_of_fifty_each_leave_a_hundred(city: City) -> None:
    import threading

    from automation_city import CITY

    from lamplighter.store.url import open_direct

    def create(name: str) -> None:
        store = open_direct(city.place, CITY)
        for number in range(50):
            body = {"name": f"{name}{number}", "exec": "true", "gate": "manual"}
            store.transact(editing.create, body, rules=city.rules, ctx=city.context)
        store.close()

    threads = [threading.Thread(target=create, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(city.do(LIST, ListAutomations())) == 100


def test_another_zone_of_the_city_moves_schedules_that_go_by_it(files: Files, city: City) -> None:
    from zoneinfo import ZoneInfo

    files.write("daily", 'exec = "true"\ngate = "schedule"\ncadence = "daily"\nhour = 12\n')
    files.write("fixed", 'exec = "true"\ngate = "schedule"\ncadence = "daily"\nhour = 12\ntimezone = "UTC"\n')
    files.sync()
    before = city.trigger("daily").state.next_due_at
    city.rules = type(city.rules)(ZoneInfo("America/New_York"))
    files.sync()
    assert city.trigger("daily").state.next_due_at != before
    assert city.trigger("fixed").state.next_due_at == before
