"""The last good configuration: kept as texts, read by the ordinary loader, whole at every moment."""

import threading
from pathlib import Path

import pytest
from city_files import ENV, MakeCity

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.last_good import ConfigFiles, NoLastGood, keep, last_good, rejected
from lamplighter.adapters.files.layers import LoadedCity, load_city, load_kept
from lamplighter.testing.clock import FakeClock

FILES = {
    "city.toml": """\
include = ["more.toml"]
[workspace]
name = "town"
topology = "packs/guard"
[[agents]]
name = "mayor"
prompt_template = "prompts/mayor.md.tmpl"
session_setup_script = "setup.sh"
""",
    "more.toml": "[daemon]\nmax_restarts = 3\n",
    "prompts/mayor.md.tmpl": 'You are {{.AgentName}}. {{template "greet.md.tmpl" .}}',
    "prompts/shared/greet.md.tmpl": '{{define "greet.md.tmpl"}}Hello.{{end}}',
    "setup.sh": "#!/bin/sh\n",
    "packs/guard/topology.toml": '[topology]\nname = "guard"\nschema = 1\n[[agents]]\nname = "guard"\n',
    ".gc/formulas/x.formula.toml": "",
}


def read_back(root: Path) -> LoadedCity:
    good = last_good(root)
    return load_kept(root, good.texts, good.revision, env=ENV)


def test_what_was_kept_is_the_same_configuration_after_every_file_is_gone(
    make_city: MakeCity, fake_clock: FakeClock
) -> None:
    root = make_city(FILES)
    before = load_city(root, env=ENV)
    keep(root, before, fake_clock)
    for name in FILES:
        (root / name).unlink()
    after = read_back(root)
    assert after.city == before.city
    assert (after.revision, dict(after.contents), after.sources) == (
        before.revision,
        dict(before.contents),
        before.sources,
    )
    assert [after.fingerprint(agent) for agent in after.city.agents] == [
        before.fingerprint(agent) for agent in before.city.agents
    ]
    mayor = next(agent for agent in after.city.agents if agent.name == "mayor")
    assert after.prompt(mayor, "mayor", env={}) == "You are mayor. Hello."


def test_texts_move_with_their_city(make_city: MakeCity, fake_clock: FakeClock, tmp_path: Path) -> None:
    root = make_city(FILES)
    keep(root, load_city(root, env=ENV), fake_clock)
    moved = root.rename(tmp_path / "moved")
    assert read_back(moved).city.root == moved
    assert {path.relative_to(moved).as_posix() for path in last_good(moved).texts} >= {"city.toml", "more.toml"}


def test_texts_of_any_size_and_content_are_kept(make_city: MakeCity, fake_clock: FakeClock) -> None:
    huge = "Be brief. \N{SNOWMAN}" * 1_000_000
    root = make_city(FILES | {"prompts/mayor.md.tmpl": huge})
    (root / "setup.sh").write_bytes(b"\xff\x00\n")
    keep(root, load_city(root, env=ENV), fake_clock)
    good = last_good(root)
    assert good.texts[root / "prompts/mayor.md.tmpl"] == huge.encode()
    assert good.texts[root / "setup.sh"] == b"\xff\x00\n"


def test_only_the_owner_can_read_them_and_old_ones_go(make_city: MakeCity, fake_clock: FakeClock) -> None:
    root = make_city(FILES)
    for restarts in (3, 4, 5):
        (root / "more.toml").write_text(f"[daemon]\nmax_restarts = {restarts}\n")
        keep(root, load_city(root, env=ENV), fake_clock)
    kept = list((root / ".gc/config.good").iterdir())
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    assert len([path for path in kept if path.name.endswith("-more.toml")]) == 1
    assert read_back(root).city.daemon.max_restarts == 5


def test_keeping_the_same_again_writes_nothing_and_mends_what_was_damaged(
    make_city: MakeCity, fake_clock: FakeClock
) -> None:
    root = make_city(FILES)
    loaded = load_city(root, env=ENV)
    keep(root, loaded, fake_clock)
    manifest = root / ".gc/config.good/manifest.json"
    first = manifest.stat().st_ino
    keep(root, loaded, fake_clock)
    assert manifest.stat().st_ino == first
    text = next((root / ".gc/config.good").glob("*-city.toml"))
    text.write_text("[[x")
    with pytest.raises(NoLastGood, match="is damaged"):
        last_good(root)
    keep(root, loaded, fake_clock)
    assert read_back(root).city == loaded.city


def test_whoever_reads_while_two_write_finds_one_configuration_whole(
    make_city: MakeCity, fake_clock: FakeClock
) -> None:
    """City and fragment carry the same number: a mixture of two configurations would show."""
    versions = []
    for number in range(10):
        city, more = f"# {number}\n" + FILES["city.toml"], f"[daemon]\nmax_restarts = {number}\n"
        root = make_city(FILES | {"city.toml": city, "more.toml": more})
        versions.append(load_city(root, env=ENV))
    keep(root, versions[0], fake_clock)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for version in versions:
                keep(root, version, fake_clock)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(200):
            texts = last_good(root).texts
            first = texts[root / "city.toml"].split(b"\n")[0].removeprefix(b"# ")
            assert texts[root / "more.toml"].endswith(b"= " + first + b"\n")
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def test_a_disk_that_takes_nothing_stops_nobody(make_city: MakeCity, fake_clock: FakeClock) -> None:
    root = make_city(FILES)
    (root / ".gc/config.good").write_text("in the way")
    files = ConfigFiles(CityPaths(root), fake_clock)
    files.accepted(load_city(root, env=ENV))
    (root / ".gc/config.rejected").mkdir()
    files.rejected("no", readable=True)
    assert rejected(root / ".gc/config.rejected") is None
