from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from city_files import ENV, MakeCity, git

from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.topologies import Fetch, altered, read_lock
from lamplighter.domain.city.tree import ConfigInvalid

MakeRepository = Callable[..., str]


def topology(agent: str, includes: str = "") -> str:
    return f'[topology]\nname = "pack"\nschema = 1\n{includes}[[agents]]\nname = "{agent}"\n'


def a_city(url: str, ref: str = "") -> dict[str, str]:
    return {"city.toml": f'[workspace]\ntopology = "far"\n[topologies.far]\nsource = "{url}"\nref = "{ref}"\n'}


def names(root: Path, fetch: Fetch = Fetch.MISSING) -> list[str]:
    return [agent.name for agent in load_city(root, env=ENV, fetch=fetch).city.agents]


def test_a_topology_is_fetched_once_and_pinned(
    make_city: MakeCity, make_repository: MakeRepository, tmp_path: Path
) -> None:
    root = make_city(a_city(make_repository("far", {"topology.toml": topology("one")})))
    assert names(root) == ["one"]
    pin = read_lock(root)["far"]
    assert pin.commit == git(tmp_path / "far", "rev-parse", "HEAD")
    assert len(pin.sha256) == 64
    assert not (root / ".gc/topologies/far/.git").exists()
    make_repository("far", {"topology.toml": topology("two")})
    assert names(root) == ["one"]
    assert names(root, Fetch.ALWAYS) == ["two"]
    assert read_lock(root)["far"].commit == git(tmp_path / "far", "rev-parse", "HEAD")


@pytest.mark.parametrize("ref", ["v1", "main", "side", "COMMIT"])
def test_a_ref_may_be_a_tag_a_branch_or_a_commit(
    make_city: MakeCity, make_repository: MakeRepository, tmp_path: Path, ref: str
) -> None:
    url = make_repository("far", {"topology.toml": topology("one")})
    repository = tmp_path / "far"
    git(repository, "tag", "v1")
    git(repository, "branch", "side")
    first = git(repository, "rev-parse", "HEAD")
    make_repository("far", {"topology.toml": topology("two")})
    root = make_city(a_city(url, first if ref == "COMMIT" else ref))
    assert names(root) == (["two"] if ref == "main" else ["one"])


def test_a_lost_cache_is_fetched_again_at_the_pinned_commit(
    make_city: MakeCity, make_repository: MakeRepository
) -> None:
    root = make_city(a_city(make_repository("far", {"topology.toml": topology("one")})))
    assert names(root) == ["one"]
    make_repository("far", {"topology.toml": topology("two")})
    (root / ".gc/topologies/far").rename(root / "away")
    assert names(root) == ["one"]


def test_another_ref_is_fetched_although_the_cache_is_there(
    make_city: MakeCity, make_repository: MakeRepository
) -> None:
    url = make_repository("far", {"topology.toml": topology("one")})
    assert names(make_city(a_city(url))) == ["one"]
    make_repository("far", {"topology.toml": topology("two")})
    assert names(make_city(a_city(url, "main"))) == ["two"]


def test_content_that_is_not_what_the_lock_recorded_is_refused(
    make_city: MakeCity, make_repository: MakeRepository
) -> None:
    root = make_city(a_city(make_repository("far", {"topology.toml": topology("one")})))
    names(root)
    lock = (root / "topology.lock").read_text()
    (root / "topology.lock").write_text(lock.replace(read_lock(root)["far"].sha256, "0" * 64))
    (root / ".gc/topologies/far").rename(root / "away")
    with pytest.raises(ConfigInvalid, match=r"does not have the content that topology\.lock recorded"):
        names(root)
    assert not (root / ".gc/topologies/far").exists()


def test_files_changed_in_the_cache_are_noticed(make_city: MakeCity, make_repository: MakeRepository) -> None:
    root = make_city(a_city(make_repository("far", {"topology.toml": topology("one")})))
    names(root)
    assert altered(root) == []
    (root / ".gc/topologies/far/topology.toml").write_text(topology("mine"))
    assert altered(root) == ["far"]


def test_what_cannot_be_fetched_is_a_problem_and_with_a_copy_a_warning(
    make_city: MakeCity, make_repository: MakeRepository, tmp_path: Path
) -> None:
    url = make_repository("far", {"topology.toml": topology("one")})
    with pytest.raises(ConfigInvalid, match=r"topologies\.far\.source: is not fetched yet"):
        names(make_city(a_city(url)), Fetch.NEVER)
    with pytest.raises(ConfigInvalid, match=r"could not be fetched: there is no `nope` in it"):
        names(make_city(a_city(url, "nope")))
    root = make_city(a_city(url))
    assert names(root) == ["one"]
    (tmp_path / "far").rename(tmp_path / "gone")
    loaded = load_city(root, env=ENV, fetch=Fetch.ALWAYS)
    assert "so the copy of before is used" in loaded.warnings[0].message
    assert [agent.name for agent in loaded.city.agents] == ["one"]


@pytest.mark.parametrize(
    ("source", "ref", "path"),
    [
        ("--upload-pack=touch x", "", ""),
        ("file:///x", "--output=x", ""),
        ("ext::sh -c touch% x", "", ""),
        ("file:///x", "", "../.."),
    ],
)
def test_a_source_cannot_run_commands_or_leave_the_repository(
    make_city: MakeCity, source: str, ref: str, path: str
) -> None:
    text = f'[workspace]\ntopology = "far"\n[topologies.far]\nsource = "{source}"\nref = "{ref}"\npath = "{path}"\n'
    root = make_city({"city.toml": text})
    with pytest.raises(ConfigInvalid):
        names(root)
    assert not list(root.rglob("x"))


def test_a_name_that_leaves_the_cache_is_refused(make_city: MakeCity, make_repository: MakeRepository) -> None:
    url = make_repository("far", {"topology.toml": topology("one")})
    root = make_city({"city.toml": f'[workspace]\ntopology = "../x"\n[topologies."../x"]\nsource = "{url}"\n'})
    with pytest.raises(ConfigInvalid, match="is not a name"):
        names(root)


def test_topologies_include_others_from_git(make_city: MakeCity, make_repository: MakeRepository) -> None:
    url = make_repository("far.git", {"deep/pack/topology.toml": topology("one")})
    include = f'includes = ["{url}//deep/pack#main"]\n'
    root = make_city({"city.toml": '[workspace]\ntopology = "near"\n', "near/topology.toml": topology("two", include)})
    assert names(root) == ["one", "two"]
    (slot,) = read_lock(root)
    assert slot.startswith("_inc/far-")
    assert (root / ".gc/topologies" / slot / "deep/pack/topology.toml").is_file()


def test_a_password_in_a_source_is_not_told(make_city: MakeCity) -> None:
    root = make_city(a_city("http://user:hunter2@127.0.0.1:9/x.git"))
    with pytest.raises(ConfigInvalid) as raised:
        names(root)
    assert "hunter2" not in raised.value.message


def test_a_hook_s_environment_does_not_lead_the_fetch_astray(
    make_city: MakeCity, make_repository: MakeRepository, tmp_path: Path
) -> None:
    root = make_city(a_city(make_repository("r", {"topology.toml": topology("one")})))
    astray = {
        "GIT_DIR": str(tmp_path / "other.git"),
        "GIT_WORK_TREE": str(tmp_path),
        "GIT_INDEX_FILE": "/nonexistent/i",
    }
    assert [agent.name for agent in load_city(root, env=ENV | astray).city.agents] == ["one"]
    assert not (tmp_path / "other.git").exists()


def test_a_git_that_is_not_there_is_told(make_city: MakeCity) -> None:
    with pytest.raises(ConfigInvalid, match="`git` command is not installed"):
        load_city(make_city(a_city("file:///x")), env={**ENV, "PATH": "/nonexistent"})


def test_a_git_that_hangs_is_ended_with_its_helpers(
    make_city: MakeCity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "git").write_text("#!/bin/sh\nsleep 600 &\nwait\n")
    (tools / "git").chmod(0o755)
    monkeypatch.setattr("lamplighter.adapters.files.git.LIMIT", timedelta(seconds=0.2))
    with pytest.raises(ConfigInvalid, match=r"took longer than 0\.2 s"):
        load_city(make_city(a_city("file:///x")), env={**ENV, "PATH": f"{tools}:{ENV['PATH']}"})
