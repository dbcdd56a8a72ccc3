from dataclasses import replace
from pathlib import Path

import pytest

from lamplighter.domain.city.environment import variables
from lamplighter.domain.city.fingerprint import fingerprint
from lamplighter.domain.city.model import Agent, City, Pool, Provider, Rig
from lamplighter.domain.city.names import derived_prefix, find_agent, instance_names, split_qualified
from lamplighter.domain.city.paths import Remote, inside, remote, resolved
from lamplighter.domain.city.presets import builtin_providers
from lamplighter.domain.city.providers import NoProgram, program
from lamplighter.domain.city.sections import Workspace
from lamplighter.domain.city.session_env import session_environment
from lamplighter.domain.city.variables import (
    command_variables,
    prompt_variables,
    session_name,
    sling_query,
    work_dir,
    work_query,
)
from lamplighter.domain.sessions.drift import drifted_fields, marks
from lamplighter.testing.sessions import a_session

ROOT = Path("/srv/city")
CITY = City(
    workspace=Workspace(name="bright", provider="claude"),
    rigs=(Rig(name="shop", path="/elsewhere/shop", prefix="sh"),),
    root=ROOT,
    prefix="br",
)
CODER = Agent(name="coder", dir="shop", env={"TEAM": "web"}, config_dir=ROOT / "packs/a")


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("storefront", "st"), ("gas-town", "gt"), ("my_big_app", "mba"), ("api", "api"), ("tool-py", "to"),
        ("web-go", "web"), ("fooBarBaz", "fbb"), ("HTTPServer", "hs"), ("X", "x"), ("a-py-b", "apb"),
        ("my city", "mc"), ("日本", "hq"), ("_", "hq"),
    ],
)  # fmt: skip
def test_a_rig_s_prefix_follows_from_its_name(name: str, prefix: str) -> None:
    assert derived_prefix(name) == prefix


def test_qualified_names_split_at_the_last_slash() -> None:
    assert split_qualified("a/b/c") == ("a/b", "c")
    assert split_qualified("c") == ("", "c")


@pytest.mark.parametrize(
    ("pool", "names"),
    [
        (None, ("shop/coder",)),
        (Pool(max=1), ("shop/coder",)),
        (Pool(max=0), ()),
        (Pool(max=2), ("shop/coder-1", "shop/coder-2")),
    ],
)
def test_instances_of_an_agent(pool: Pool | None, names: tuple[str, ...]) -> None:
    assert instance_names(replace(CODER, pool=pool)) == names


@pytest.mark.parametrize(
    ("given", "rig", "found"),
    [
        ("shop/coder", "", "shop/coder"), ("coder", "shop", "shop/coder"), ("coder-2", "shop", "shop/coder-2"),
        ("shop/coder-3", "", None), ("shop/coder-0", "", None), ("shop/coder-01", "", None), ("coder", "", None),
        ("shop/coder-\u0661", "", None),
    ],
)  # fmt: skip
def test_an_agent_is_found_by_name_instance_or_rig(given: str, rig: str, found: str | None) -> None:
    pool = replace(CODER, pool=Pool(max=2))
    answer = find_agent([pool], given, rig=rig)
    assert (answer and answer[1]) == found


def test_bug_an_agent_works_in_its_rig_s_path_wherever_that_is() -> None:
    assert work_dir(CITY, CODER) == Path("/elsewhere/shop")
    assert work_dir(CITY, Agent(name="a", dir="sub/{{.Agent}}")) == ROOT / "sub/a"
    assert work_dir(CITY, Agent(name="a")) == ROOT


def test_variables_of_commands_and_prompts() -> None:
    assert command_variables(CITY, CODER, "shop/coder") == {
        "Session": "gc-bright-shop--coder", "Agent": "shop/coder", "Rig": "shop", "CityRoot": "/srv/city",
        "CityName": "bright", "WorkDir": "/elsewhere/shop", "ConfigDir": "/srv/city/packs/a",
    }  # fmt: skip
    prompt = prompt_variables(CITY, CODER, "shop/coder", env={"TEAM": "web", "RigName": "wrong"})
    assert (prompt["TEAM"], prompt["RigName"], prompt["IssuePrefix"]) == ("web", "shop", "sh")
    assert prompt_variables(CITY, Agent(name="a"), "a", env={})["IssuePrefix"] == "br"


def test_bug_a_session_template_may_leave_the_usual_prefix_and_stays_fit_for_every_provider() -> None:
    city = replace(CITY, workspace=replace(CITY.workspace, session_template="{{.Dir}}:{{.Name}}.x"))
    assert session_name(city, "shop/coder") == "shop-coder-x"


def test_queries_have_defaults_that_name_the_agent() -> None:
    pool = replace(CODER, pool=Pool(max=2))
    assert work_query(CODER) == "lamp bead ready --assignee=shop/coder"
    assert work_query(pool) == "lamp bead ready --label=pool:shop/coder --limit=1"
    assert "{}" in sling_query(CODER)
    assert "pool:shop/coder" in sling_query(pool)
    assert (work_query(replace(pool, work_query="x")), sling_query(replace(pool, sling_query="y"))) == ("x", "y")


def test_bug_a_session_does_not_inherit_the_marks_and_settings_of_its_parent() -> None:
    parent = {
        "PATH": "/bin", "HOME": "/h", "GC_DRAIN": "1", "GC_AGENT": "other", "GC_SESSION": "fake", "EMPTY": "",
        "LAMP_STORE_URL": "postgresql://u:p@h/d", "LAMP_RUN_ID": "run_x", "OTEL_SERVICE_NAME": "s",
        "ANTHROPIC_API_KEY": "k", "LC_ALL": "", "RANDOM_SECRET": "x",
    }  # fmt: skip
    env = session_environment(
        CITY, CODER, "shop/coder-1", parent=parent, preset={"TEAM": "preset", "P": "1"}, work_dir=Path("/w")
    )
    assert env == {
        "PATH": "/bin", "HOME": "/h", "OTEL_SERVICE_NAME": "s", "ANTHROPIC_API_KEY": "k", "TEAM": "web", "P": "1",
        "GC_AGENT": "shop/coder-1", "GC_CITY": "/srv/city", "GC_DIR": "/w", "GC_RIG": "shop",
        "LAMP_AGENT": "shop/coder-1", "LAMP_CITY": "/srv/city", "LAMP_DIR": "/w", "LAMP_RIG": "shop",
    }  # fmt: skip
    assert "GC_SESSION" not in env


def everything(_command: str) -> bool:
    return True


def test_which_program_an_agent_runs() -> None:
    assert program(CITY, CODER, everything).command == "claude"
    assert program(CITY, replace(CODER, provider="codex"), everything).prompt_mode == "none"
    assert program(CITY, replace(CODER, start_command="x"), everything).shell == "x"
    bare = replace(CITY, workspace=Workspace(name="b"))
    assert program(bare, CODER, lambda command: command in {"gemini", "amp"}).provider == "gemini"
    assert program(replace(bare, workspace=Workspace(start_command="y")), CODER, everything).shell == "y"
    with pytest.raises(NoProgram, match="names no provider"):
        program(bare, CODER, lambda _command: False)
    with pytest.raises(NoProgram, match="needs `claude`, which is not on the path"):
        program(CITY, CODER, lambda _command: False)
    with pytest.raises(NoProgram, match="did you mean `claude`"):
        program(CITY, replace(CODER, provider="cluade"), everything)


def test_a_city_s_provider_stands_in_full_for_a_built_in_one_and_agents_override_fields() -> None:
    city = replace(CITY, providers={"claude": Provider(command="mine", env={"A": "1", "TEAM": "x"})})
    found = program(city, replace(CODER, args=("z",), ready_delay_ms=0), lambda _command: True)
    assert (found.command, found.args, found.process_names, found.ready_delay_ms) == ("mine", ("z",), (), 0)
    assert dict(found.env) == {"A": "1", "TEAM": "web"}


def test_built_in_providers_are_found_in_their_order() -> None:
    assert list(builtin_providers)[:7] == ["claude", "codex", "gemini", "cursor", "copilot", "amp", "opencode"]


def test_bug_a_fingerprint_knows_neither_order_nor_clock_nor_path() -> None:
    first = fingerprint(CITY, replace(CODER, env={"A": "1", "B": "2"}), {})
    again = fingerprint(CITY, replace(CODER, env={"B": "2", "A": "1"}), {})
    assert first == again
    assert len(first.hash) == 64


@pytest.mark.parametrize(
    "change",
    [
        {"pool": Pool(max=9)}, {"idle_timeout": None}, {"suspended": True}, {"depends_on": ("a",)},
        {"work_query": "x"}, {"ready_delay_ms": 7}, {"default_sling_formula": "f"},
    ],
)  # fmt: skip
def test_what_takes_effect_without_a_restart_is_no_drift(change: dict[str, object]) -> None:
    assert fingerprint(CITY, replace(CODER, **change), {}) == fingerprint(CITY, CODER, {})  # type: ignore[arg-type]


def test_drift_is_explained_field_by_field() -> None:
    old = replace(CODER, prompt_template="p.md", nudge="x")
    new = replace(CODER, prompt_template="p.md", env={"TEAM": "api", "NEW": "1"}, pre_start=("a",))
    before = fingerprint(CITY, old, {"p.md": "1"}).fields
    session = a_session("coder", marked=marks(before))
    drift = drifted_fields(session, fingerprint(CITY, new, {"p.md": "2"}).fields)
    assert drift == ("env.NEW", "env.TEAM", "nudge", "pre_start", "prompt")
    assert drifted_fields(session, before) == ()
    fields = fingerprint(CITY, new, {}).fields
    assert "api" not in fields.values()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("packs/a", None),
        ("//packs/a", None),
        ("https://h/o/r.git//sub/dir#v1", Remote("https://h/o/r.git", "sub/dir", "v1")),
        ("git@h:o/r.git//sub", Remote("git@h:o/r.git", "sub", "")),
        ("ssh://git@h/o/r.git#main", Remote("ssh://git@h/o/r.git", "", "main")),
        ("file:///x/y", Remote("file:///x/y", "", "")),
    ],
)
def test_references_into_repositories(given: str, wanted: Remote | None) -> None:
    assert remote(given) == wanted


def test_paths_become_relative_to_the_city() -> None:
    assert resolved("p.md", ROOT / "env", ROOT) == "env/p.md"
    assert resolved("../p.md", ROOT / "env", ROOT) == "p.md"
    assert resolved("//p.md", ROOT / "env", ROOT) == "p.md"
    assert resolved("/abs/p.md", ROOT / "env", ROOT) == "/abs/p.md"
    assert resolved("p.md", Path("/other"), ROOT) == "/other/p.md"
    assert inside("a/../b")
    assert not inside("a/../../b")
    assert not inside("/x")


def test_every_plain_key_has_a_variable() -> None:
    known = variables()
    assert known["LAMP_SESSION_K8S_IMAGE"] == ("session", "k8s", "image")
    assert known["LAMP_DAEMON_PATROL_INTERVAL"] == ("daemon", "patrol_interval")
    assert known["GC_BEADS"] == ("beads", "provider")
    assert not any(path[0] in {"patches", "agents", "include"} for path in known.values())
