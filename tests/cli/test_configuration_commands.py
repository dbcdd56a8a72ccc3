"""`lamp configuration`: those of city.toml and those in the store, from nothing to a run that used one."""

from pathlib import Path

import pytest
from lamp_program import here, lamp

SCRIPT = 'echo "$LAMPS in $PWD" > seen; lamp run complete --outcome succeeded --summary lit\n'


@pytest.fixture
def city(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert lamp("init", str(root), cwd=tmp_path).code == 0
    (root / "agent.sh").write_text(SCRIPT)
    (tmp_path / "site").mkdir()
    with (root / "city.toml").open("a") as file:
        file.write(f'\n[providers.scripted]\ncommand = "sh"\nargs = ["{root}/agent.sh"]\n')
        file.write('\n[[configurations]]\nname = "filed"\npreset = "scripted"\ndescription = "By hand."\n')
    return root


def test_a_stored_configuration_from_its_making_to_a_run(city: Path) -> None:
    made = lamp(
        "configuration", "create", "site", "--path", "../site", "--preset", "scripted", "--env", "LAMPS=seven",
        "--json", cwd=city,
    )  # fmt: skip
    assert made.code == 0, made
    assert (made.json["path"], made.json["source"]) == (str(city.parent / "site"), "cli")
    words = ("--prompt", "Go.", "--configuration", "site", "--manual", "--mode", "full_access")
    lamp("automation", "create", "light", *words, cwd=city)
    done = lamp("automation", "run", "light", "--json", cwd=city)
    assert done.json["state"] == "succeeded", done
    assert (city.parent / "site" / "seen").read_text() == f"seven in {city.parent / 'site'}\n"
    kept = here("--city", str(city), "configuration", "delete", "site")
    assert kept.code == 4
    assert "light" in kept.err
    here("--city", str(city), "automation", "delete", "light")
    assert here("--city", str(city), "configuration", "delete", "site").code == 0


def test_those_of_the_file_stand_beside_and_are_read_only(city: Path) -> None:
    at = ("--city", str(city))
    assert here(*at, "configuration", "create", "mine", "--description", "Mine.").code == 0
    listed = here(*at, "configuration", "list", "--json").json
    assert [(one["name"], one["source"]) for one in listed] == [("filed", "file"), ("mine", "cli")]
    assert "By hand." in here(*at, "configuration", "list").out
    for arguments in (("edit", "filed", "--model", "m"), ("delete", "filed"), ("create", "filed")):
        assert here(*at, "configuration", *arguments).code == 4
    assert here(*at, "configuration", "show", "filed").code == 0


def test_an_edit_changes_what_it_names(city: Path) -> None:
    at = ("--city", str(city), "configuration")
    here(*at, "create", "site", "--model", "big", "--mode", "plan", "--env", "A=1", "--env", "B=2")
    changed = here(*at, "edit", "site", "--model", "", "--mode", "", "--env", "C=3=3", "--no-env", "A", "--json").json
    assert (changed["model"], changed["mode"], changed["env"]) == (None, None, {"B": "2", "C": "3=3"})
    shown = here(*at, "show", "site")
    assert "C=3=3" in shown.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "nobody"), 3),
        (("edit", "nobody", "--model", "m"), 3),
        (("delete", "nobody"), 3),
        (("edit", "filed"), 2),
        (("create", "x", "--env", "A"), 2),
        (("create", "x", "--mode", "wild"), 2),
        (("create", "x", "--rig", "nowhere"), 2),
        (("create", "x", "--path", "https://example.com/x"), 2),
        (("create", "a b"), 2),
    ],
)
def test_what_cannot_be_done_says_so_by_its_code(city: Path, arguments: tuple[str, ...], code: int) -> None:
    found = here("--city", str(city), "configuration", *arguments)
    assert found.code == code
    assert found.err


def test_doctor_tells_a_name_that_the_file_and_the_store_both_claim(city: Path) -> None:
    here("--city", str(city), "configuration", "create", "late")
    with (city / "city.toml").open("a") as file:
        file.write('\n[[configurations]]\nname = "late"\n')
    told = here("--city", str(city), "doctor")
    assert told.code == 1
    assert "`late` of city.toml is not in force" in told.out
