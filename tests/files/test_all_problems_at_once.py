"""Every problem of a configuration is told at once, and files of later versions of Gas City are named as such."""

from collections.abc import Callable

import pytest
from city_files import ENV, MakeCity

from lamplighter.adapters.files.layers import LoadedCity, load_city

Problems = Callable[..., list[str]]

MANY = """
[workspace]
proivder = "x"
timezone = "Mars/Base"
[session]
provider = "k8s"
[[agents]]
name = "a"
start_command = "true"
depends_on = ["b"]
idle_timeout = "soon"
[[agents]]
name = "b"
start_command = "true {{.Nothing}}"
depends_on = ["a", "zz"]
[[agents]]
start_command = "x"
[[rigs]]
name = "r"
[[rigs.overrides]]
suspended = true
[[automations.overrides]]
rig = "r"
[[patches.agents]]
suspended = true
[[patches.rigs]]
prefix = "x"
[[patches.providers]]
command = "x"
"""


def test_all_problems_are_told_at_once(problems: Problems) -> None:
    keys = {line.split(": ")[1] for line in problems({"city.toml": MANY})}
    assert keys == {
        "workspace.proivder", "workspace.timezone", "session.provider", "agents[0].depends_on",
        "agents[0].idle_timeout", "agents[1].start_command", "agents[1].depends_on", "agents[2].name", "rigs[0].path",
        "rigs[0].overrides[0].agent", "automations.overrides[0].name", "patches.agents[0].name",
        "patches.rigs[0].name", "patches.providers[0].name",
    }  # fmt: skip


def test_a_circle_of_dependencies_is_told_beside_other_problems(problems: Problems) -> None:
    told = problems({"city.toml": MANY})
    assert sum("goes round in a circle: a → b → a" in line for line in told) == 1


def test_a_rig_without_a_path_makes_no_second_problem_of_its_name(problems: Problems) -> None:
    text = '[[rigs]]\nname = "r"\n[[configurations]]\nname = "c"\nrig = "r"\n'
    assert [line.split(": ")[1] for line in problems({"city.toml": text})] == ["rigs[0].path"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[agent]]\nname = "x"\n', "agent: is how later versions of Gas City write `[[agents]]`"),
        ('[imports.gastown]\nsource = "x"\n', "imports: is of later versions of Gas City"),
        ('[orders]\nskip = ["x"]\n', "orders: is how later versions of Gas City write `[automations]`"),
        ('[workspace]\ntopology = "pack"\n', "is a pack of a later version of Gas City (pack.toml)"),
    ],
)
def test_files_of_later_versions_of_gas_city_are_named_as_such(problems: Problems, text: str, told: str) -> None:
    (found,) = problems({"city.toml": text, "pack/pack.toml": '[pack]\nname = "x"\n'})
    assert told in found


def test_a_pack_beside_the_city_is_told_and_does_not_stop_it(load: Callable[..., LoadedCity]) -> None:
    loaded = load({"city.toml": "", "pack.toml": '[pack]\nname = "x"\n'})
    assert [one.message for one in loaded.warnings] == [
        "pack.toml beside it is of a later version of Gas City and is not read"
    ]


def test_a_patch_that_names_its_target_is_not_told(make_city: MakeCity) -> None:
    text = '[[agents]]\nname = "a"\nstart_command = "x"\n[[patches.agents]]\nname = "a"\nsuspended = true\n'
    assert load_city(make_city({"city.toml": text}), env=ENV).city.agents[0].suspended
