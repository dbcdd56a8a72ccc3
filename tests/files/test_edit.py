import codecs
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from city_files import ENV, MakeCity
from city_with_every_key import CITY

from lamplighter.adapters.files.edit import (
    Edit,
    add_row,
    apply,
    set_value,
    suspend_agent,
    suspend_city,
    suspend_rig,
)
from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.layout import layout_of
from lamplighter.adapters.files.splice import append_row, set_key
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.kit.errors import Conflict, LampError, NotFound

Load = Callable[..., LoadedCity]

TEXT = """\
# my city
[workspace]      # here
name   = "x"     # the name

# The agents.
[[agents]]
name = 'mayor'
  nudge = \"\"\"
  many
  lines \"\"\"
pool = { min = 1,  max = 2 }

[[agents]]
name = "dog"
[agents.pool]
max = 3

[[rigs]]
  name = "shop"
  path = "r"
# the end"""


def added(before: str, after: str) -> list[str]:
    """The lines that are new, once it is sure that all others are as they were."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    extra = []
    for line in new:
        if old and (line == old[0] or line == old[0] + "\n"):
            old.pop(0)
        else:
            extra.append(line)
    assert not old
    return extra


@pytest.mark.parametrize(
    ("path", "value", "wanted"),
    [
        (("workspace", "suspended"), True, ["suspended = true\n"]),
        (("agents", 0, "suspended"), True, ["suspended = true\n"]),
        (("agents", 1, "suspended"), True, ["suspended = true\n"]),
        (("agents", 1, "pool", "min"), 1, ["min = 1\n"]),
        (("rigs", 0, "prefix"), "sh", ['  prefix = "sh"\n']),
        (("include",), ["a"], ['include = ["a"]\n']),
        (("daemon", "wisp_ttl"), "7d", ["\n", "[daemon]\n", 'wisp_ttl = "7d"\n']),
        (("session", "k8s", "image"), "x", ["\n", "[session.k8s]\n", 'image = "x"\n']),
        (("agents", 1, "env", "A"), "b", ["\n", "[agents.env]\n", 'A = "b"\n']),
    ],
)
def test_a_new_key_is_one_new_line_in_its_table(path: tuple[str | int, ...], value: object, wanted: list[str]) -> None:
    assert sorted(added(TEXT, set_key(TEXT, path, value))) == sorted(wanted)


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (("workspace", "name"), "y", 'name   = "x" ', 'name   = "y" '),
        (("agents", 0, "nudge"), "z", '"""\n  many\n  lines """', '"z"'),
        (("agents", 0, "name"), "a'b", "'mayor'", '"a\'b"'),
        (("agents", 1, "pool", "max"), 4, "max = 3", "max = 4"),
    ],
)
def test_an_old_key_gets_its_new_value_and_nothing_else_moves(
    path: tuple[str | int, ...], value: object, old: str, new: str
) -> None:
    assert set_key(TEXT, path, value) == TEXT.replace(old, new)


def test_a_key_inside_an_inline_table_changes_only_that_table() -> None:
    after = set_key(TEXT, ("agents", 0, "pool", "max"), 9)
    assert tomllib.loads(after)["agents"][0]["pool"] == {"min": 1, "max": 9}
    before, behind = TEXT.split("{ min = 1,  max = 2 }")
    assert after.startswith(before)
    assert after.endswith(behind)


def test_a_row_is_added_at_the_end_or_inside_its_list() -> None:
    row = {"name": "new", "env": {"A": "b"}, "args": ["x"]}
    wanted = ["\n", "[[agents]]\n", 'name = "new"\n', 'args = ["x"]\n', 'env = {A = "b"}\n']
    assert added(TEXT, append_row(TEXT, ("agents",), row)) == wanted
    inline = 'agents = [ {name = "a"} ] # all\nx = 1\n'
    after = append_row(inline, ("agents",), row)
    assert after.endswith(" # all\nx = 1\n")
    assert tomllib.loads(after)["agents"] == [{"name": "a"}, row]
    assert append_row("", ("agents",), {"name": "a"}) == '[[agents]]\nname = "a"\n'


def test_a_row_of_a_row_stands_behind_its_own_row() -> None:
    text = '[[rigs]]\nname = "a"\n\n[[rigs]]\nname = "b"\n'
    after = append_row(text, ("rigs", 0, "overrides"), {"agent": "x"})
    assert after == '[[rigs]]\nname = "a"\n\n[[rigs.overrides]]\nagent = "x"\n\n[[rigs]]\nname = "b"\n'
    inline = 'rigs = [{name = "a"}]\n'
    assert tomllib.loads(append_row(inline, ("rigs", 0, "overrides"), {"agent": "x"})) == {
        "rigs": [{"name": "a", "overrides": [{"agent": "x"}]}]
    }


def test_windows_line_ends_and_dotted_keys_stay_what_they_are() -> None:
    assert set_key("[a]\r\nb = 1\r\n", ("a", "c"), 2) == "[a]\r\nb = 1\r\nc = 2\r\n"
    assert set_key('workspace.name = "x"\n[a]\n', ("workspace", "suspended"), value=True) == (
        'workspace.name = "x"\nworkspace.suspended = true\n[a]\n'
    )


def test_what_cannot_be_changed_alone_is_refused() -> None:
    with pytest.raises(LampError, match="cannot be changed without rewriting more"):
        set_key("a = 1\n", ("a", "b"), 2)


def test_the_layout_knows_the_line_of_every_key() -> None:
    lines = layout_of(TEXT).lines
    assert lines["workspace", "name"] == 3
    assert lines["agents", 0, "pool"] == 11
    assert lines["agents", 1, "pool", "max"] == 16
    assert lines["rigs", 0, "path"] == 20


def test_every_key_of_a_large_file_can_be_set_to_itself_without_a_change() -> None:
    layout = layout_of(CITY)
    tree = tomllib.loads(CITY)
    for path in layout.pairs:
        value = tree
        for step in path:
            value = value[step]
        after = set_key(CITY, path, value)
        assert tomllib.loads(after) == tree


CITY_FILES = {
    "city.toml": """\
# kept
include = ["more.toml"]

[workspace]
topology = "pack"

[[agents]]
name = "mayor"   # kept

[[rigs]]
name = "shop"
path = "r"
topology = "pack"

[[rigs]]
name = "last"
path = "l"
""",
    "more.toml": '[[agents]]\nname = "extra"\n\n[[rigs]]\nname = "moved"\npath = "m"\n',
    "pack/topology.toml": '[topology]\nname = "pack"\nschema = 1\n[[agents]]\nname = "dog"\n',
}


def done(loaded: LoadedCity, edit: Edit) -> tuple[LoadedCity, list[str]]:
    apply(edit)
    return load_city(loaded.city.root, env=ENV), added(edit.before, edit.after)


@pytest.mark.parametrize(
    ("agent", "file", "lines"),
    [
        ("mayor", "city.toml", ["suspended = true\n"]),
        ("extra", "more.toml", ["suspended = true\n"]),
        ("dog", "city.toml", ["\n", "[[patches.agents]]\n", 'name = "dog"\n', "suspended = true\n"]),
        ("shop/dog", "city.toml", ["[[rigs.overrides]]\n", 'agent = "dog"\n', "suspended = true\n", "\n"]),
    ],
)
def test_bug_an_agent_is_suspended_where_it_is_declared_and_never_expanded(
    load: Load, agent: str, file: str, lines: list[str]
) -> None:
    loaded = load(CITY_FILES)
    edit = suspend_agent(loaded, agent, suspended=True)
    assert edit.file == loaded.city.root / file
    again, new = done(loaded, edit)
    assert sorted(new) == sorted(lines)
    assert [known.qualified_name for known in again.city.agents if known.suspended] == [agent]
    apply(_resumed(again, agent))
    resumed = load_city(loaded.city.root, env=ENV)
    assert not any(known.suspended for known in resumed.city.agents)
    assert not suspend_agent(resumed, agent, suspended=False).changes


def _resumed(loaded: LoadedCity, agent: str) -> Edit:
    edit = suspend_agent(loaded, agent, suspended=False)
    assert edit.after == edit.before.replace("suspended = true", "suspended = false")
    return edit


def test_city_and_rigs_are_suspended_in_place(load: Load) -> None:
    loaded = load(CITY_FILES)
    city, lines = done(loaded, suspend_city(loaded, suspended=True))
    assert (city.city.workspace.suspended, lines) == (True, ["suspended = true\n"])
    rig, lines = done(city, suspend_rig(city, "moved", suspended=True))
    assert [known.name for known in rig.city.rigs if known.suspended] == ["moved"]
    assert lines == ["suspended = true\n"]
    assert not suspend_rig(loaded, "shop", suspended=False).changes


def test_what_the_environment_sets_is_not_edited(load: Load) -> None:
    loaded = load(CITY_FILES, LAMP_WORKSPACE_SUSPENDED="1")
    with pytest.raises(Conflict, match="set by the environment, as LAMP_WORKSPACE_SUSPENDED"):
        suspend_city(loaded, suspended=False)


def test_names_that_are_not_there_are_told(load: Load) -> None:
    loaded = load(CITY_FILES)
    with pytest.raises(NotFound, match="There is no agent `mayr`; did you mean `mayor`"):
        suspend_agent(loaded, "mayr", suspended=True)
    with pytest.raises(NotFound, match="There is no rig `shp`"):
        suspend_rig(loaded, "shp", suspended=True)


def test_agents_and_rigs_are_added(load: Load) -> None:
    loaded = load(CITY_FILES)
    file = loaded.city.root / "city.toml"
    again, lines = done(loaded, add_row(file, "rigs", {"name": "fresh", "path": "/srv/fresh"}))
    assert again.city.rigs[-2].name == "fresh"
    assert lines == ["\n", "[[rigs]]\n", 'name = "fresh"\n', 'path = "/srv/fresh"\n']
    again, _ = done(again, set_value(file, ("api", "port"), 0))
    assert again.city.api.port == 0


def test_a_byte_order_mark_stays_where_it_was(make_city: MakeCity) -> None:
    root = make_city({"city.toml": ""})
    file = root / "city.toml"
    file.write_bytes(codecs.BOM_UTF8 + b'[workspace]\nname = "x"\n')
    apply(suspend_city(load_city(root, env=ENV), suspended=True))
    assert file.read_bytes() == codecs.BOM_UTF8 + b'[workspace]\nname = "x"\nsuspended = true\n'
    assert load_city(root, env=ENV).city.workspace.suspended


def test_a_write_keeps_mode_and_link_and_refuses_a_changed_file(make_city: MakeCity, tmp_path: Path) -> None:
    root = make_city({"city.toml": "a = 1\n"})
    real = tmp_path / "real.toml"
    real.write_text("a = 1\n")
    real.chmod(0o600)
    (root / "city.toml").unlink()
    (root / "city.toml").symlink_to(real)
    edit = set_value(root / "city.toml", ("a",), 2)
    apply(edit)
    assert (root / "city.toml").is_symlink()
    assert real.read_text() == "a = 2\n"
    assert real.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".real*"))
    with pytest.raises(Conflict, match="was changed meanwhile"):
        apply(edit)
