import tomllib
from datetime import timedelta
from typing import Any

import pytest

from lamplighter.domain.automations.layers import Definitions, Found, Layer, Override, Standing, resolve
from lamplighter.domain.automations.model import Cooldown, Cron, Exec

SYSTEM, CITY = "/system/automations/{}/automation.toml", "/city/automations/{}/automation.toml"
JOB = 'exec = "{}"\ngate = "cooldown"\ninterval = "5m"\n'


def test_case_12_the_later_layer_replaces_the_whole_definition_and_its_path_is_told() -> None:
    low = layer(SYSTEM, sweep=JOB.format("low") + 'description = "kept?"', tidy=JOB.format("tidy"))
    high = layer(CITY, sweep=JOB.format("high"), another=JOB.format("more"))
    found = resolve([low, high])
    assert names(found) == ["sweep", "tidy", "another"]
    sweep = found.defined[0]
    assert sweep.automation.action == Exec("high")
    assert sweep.automation.description == ""
    assert sweep.automation.path == CITY.format("sweep")
    assert sweep.hides == (SYSTEM.format("sweep"),)


def test_case_13_disabled_and_skipped_ones_are_listed_as_such() -> None:
    files = layer(CITY, off=JOB.format("a") + "enabled = false", left=JOB.format("b"), on=JOB.format("c"))
    found = resolve([files], skip=["left"])
    assert [one.standing for one in found.defined] == [Standing.DISABLED, Standing.SKIPPED, Standing.READY]
    assert not found.problems


def test_a_skip_may_name_one_rigs_automation() -> None:
    found = resolve([layer(CITY, "a", job=JOB.format("a")), layer(CITY, "b", job=JOB.format("b"))], skip=["job:rig:a"])
    assert [one.standing for one in found.defined] == [Standing.SKIPPED, Standing.READY]


def test_case_14_a_rigs_automation_has_its_own_name_beside_the_citys() -> None:
    found = resolve([layer(CITY, job=JOB.format("c")), layer(CITY, "a", job=JOB.format("a"))])
    assert names(found) == ["job", "job:rig:a"]
    assert found.named("job:rig:a") is found.defined[1]
    assert found.named("other") is None


def test_one_bad_file_never_disables_its_neighbours() -> None:
    files = layer(CITY, good=JOB.format("a"), bad='gate = "cron"')
    broken = Layer((*files.files, Found("torn", "/city/torn", None, "is not valid TOML: line 3")))
    found = resolve([broken])
    assert names(found) == ["good"]
    assert str(found.problems[0]).startswith(f"{CITY.format('bad')}: automation.exec: ")
    assert str(found.problems[-1]) == "/city/torn: is not valid TOML: line 3"


def test_a_bad_file_in_a_higher_layer_does_not_let_the_lower_one_come_back() -> None:
    found = resolve([layer(SYSTEM, job=JOB.format("low")), layer(CITY, job="gate = 3")])
    assert names(found) == []
    assert {one.path for one in found.problems} == {CITY.format("job")}


def test_an_override_changes_the_gate_and_its_keys() -> None:
    found = overridden({"interval": "15m"})
    assert gates(found) == [Cooldown.__name__]
    assert str(found.defined[0].automation.triggers[0].gate) == "Cooldown(interval=datetime.timedelta(seconds=900))"
    assert gates(overridden({"gate": "cron", "schedule": "@daily"})) == [Cron.__name__]


def test_an_override_may_come_already_read() -> None:
    found = overridden({"interval": timedelta(minutes=15), "timeout": None})
    assert not found.problems
    assert "900" in str(found.defined[0].automation.triggers[0].gate)


def test_an_override_reaches_the_only_trigger_of_a_list() -> None:
    text = 'exec = "a"\ntriggers = [{ gate = "cooldown", interval = "5m" }]'
    found = resolve([layer(CITY, job=text)], overrides=[Override("job", {"interval": "1h"})])
    assert not found.problems
    assert "3600" in str(found.defined[0].automation.triggers[0].gate)


@pytest.mark.parametrize("values", [{"gate": "cooldown", "interval": "1h"}, {"interval": "1h"}])
def test_an_override_of_one_trigger_among_several_is_refused(values: dict[str, str]) -> None:
    text = 'exec = "x"\n' + '[[automation.triggers]]\ngate = "cooldown"\ninterval = "1m"\n' * 2
    found = resolve([layer(CITY, job=text)], overrides=[Override("job", {**values, "timeout": "9s"})])
    (job,) = found.defined
    assert len(job.automation.triggers) == 2
    assert "automations.overrides[job].interval: the automation has 2 triggers" in str(found.problems[-1])


def test_an_override_can_disable_and_revive() -> None:
    assert overridden({"enabled": False}).defined[0].standing is Standing.DISABLED
    off = layer(CITY, job=JOB.format("a") + "enabled = false")
    revived = resolve([off], overrides=[Override("job", {"enabled": True})])
    assert revived.defined[0].standing is Standing.READY


def test_a_bad_override_is_told_at_its_place_and_changes_nothing() -> None:
    found = overridden({"interval": "soon"})
    assert str(found.problems[0]).startswith("city.toml: automations.overrides[job].interval: `soon` is not a duration")
    assert "300" in str(found.defined[0].automation.triggers[0].gate)
    assert "cannot be overridden" in str(overridden({"exec": "x"}).problems[0])
    assert "did you mean `interval`" in str(overridden({"intervall": "5m"}).problems[0])


def test_good_overrides_stand_beside_a_bad_one() -> None:
    overrides = [Override("job", {"interval": "x"}), Override("job", {"timeout": "9s"})]
    found = resolve([layer(CITY, job=JOB.format("a"))], overrides=overrides)
    assert len(found.problems) == 1
    assert found.defined[0].automation.policies.timeout is not None


def test_an_override_without_a_rig_reaches_all_of_its_name_and_one_with_a_rig_only_that() -> None:
    layers = [
        layer(CITY, job=JOB.format("c")),
        layer(CITY, "a", job=JOB.format("a")),
        layer(CITY, "b", job=JOB.format("b")),
    ]
    everywhere = resolve(layers, overrides=[Override("job", {"enabled": False})])
    assert {one.standing for one in everywhere.defined} == {Standing.DISABLED}
    only_a = resolve(layers, overrides=[Override("job", {"enabled": False}, "a")])
    assert [one.standing for one in only_a.defined] == [Standing.READY, Standing.DISABLED, Standing.READY]


def test_names_that_match_nothing_are_told_with_the_nearest() -> None:
    found = resolve(
        [layer(CITY, sweep=JOB.format("a"))],
        skip=["swep"],
        overrides=[Override("seep", {}), Override("sweep", {}, "r")],
    )
    told = [str(one) for one in found.problems]
    assert told == [
        "city.toml: automations.overrides[seep]: no automation `seep`; did you mean `sweep`?",
        "city.toml: automations.overrides[sweep]: no automation `sweep` in rig `r`",
        "city.toml: automations.skip: no automation `swep`; did you mean `sweep`?",
    ]


def overridden(values: dict[str, Any]) -> Definitions:
    return resolve([layer(CITY, job=JOB.format("a"))], overrides=[Override("job", values)])


def layer(path: str, rig: str | None = None, /, **files: str) -> Layer:
    return Layer(
        tuple(Found(name, path.format(name), tomllib.loads(f"[automation]\n{text}")) for name, text in files.items()),
        rig,
    )


def names(found: Definitions) -> list[str]:
    return [one.automation.scoped_name for one in found.defined]


def gates(found: Definitions) -> list[str]:
    return [type(one.gate).__name__ for one in found.defined[0].automation.triggers]
