import codecs
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from city_files import ENV, MakeCity

from lamplighter.adapters.files.layers import load_city
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.tree import ConfigInvalid
from lamplighter.kit.errors import NotFound

Load = Callable[..., LoadedCity]
Problems = Callable[..., list[str]]

PACK = '[topology]\nname = "pack"\nschema = 1\n'


def agents(loaded: LoadedCity) -> list[str]:
    return [agent.qualified_name for agent in loaded.city.agents]


def test_no_city_is_told_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"There is no city\.toml") as raised:
        load_city(tmp_path, env={})
    assert "lamp init" in raised.value.hint


def test_a_broken_file_is_one_sentence_with_its_line(problems: Problems) -> None:
    assert problems({"city.toml": '[workspace]\nname = "x"\nbad\n'}) == [
        "city.toml: is not valid TOML: expected '=' after a key in a key/value pair at column 4 (line 3)"
    ]


@pytest.mark.parametrize("text", ["a = 1\n[", "x = " + "[" * 5000, "x = 1" + "0" * 9000, "d = 2026-99-01"])
def test_every_kind_of_broken_file_is_one_problem(problems: Problems, text: str) -> None:
    assert len(problems({"city.toml": text})) == 1


def test_a_file_that_is_not_text_is_a_problem(make_city: MakeCity) -> None:
    root = make_city({"city.toml": ""})
    (root / "city.toml").write_bytes(b"name = '\xff'\n")
    with pytest.raises(ConfigInvalid, match="is not UTF-8 text"):
        load_city(root, env=ENV)


@pytest.mark.parametrize("name", ["city.toml", "a.toml"])
def test_a_byte_order_mark_is_passed_over(make_city: MakeCity, name: str) -> None:
    root = make_city({"city.toml": 'include = ["a.toml"]\n', "a.toml": "[daemon]\nmax_restarts = 3\n"})
    (root / name).write_bytes(codecs.BOM_UTF8 + (root / name).read_bytes())
    assert load_city(root, env=ENV).city.daemon.max_restarts == 3


def test_wide_text_is_called_by_its_name(make_city: MakeCity) -> None:
    root = make_city({"city.toml": ""})
    (root / "city.toml").write_text("[daemon]\n", encoding="utf-16")
    with pytest.raises(ConfigInvalid, match="is UTF-16 text; save it as UTF-8"):
        load_city(root, env=ENV)


def test_problems_carry_the_file_and_line_they_stand_on(problems: Problems) -> None:
    found = problems(
        {
            "city.toml": 'include = ["a.toml", "gone.toml"]\n\n[daemon]\n# why\nwisp_tll = "1d"\n',
            "a.toml": '[[agents]]\nname = "x"\n\n[agents.pool]\nmin = 3\nmax = 2\n',
        }
    )
    assert found == [
        "city.toml: daemon.wisp_tll: is not a setting; did you mean `wisp_ttl`? (line 5)",
        "city.toml: include: there is no file `gone.toml` (line 1)",
        "a.toml: agents[0].pool.min: is 3, more than `max`, which is 2 (line 5)",
    ]


def test_fragments_cannot_include(problems: Problems) -> None:
    found = problems({"city.toml": 'include = ["a.toml"]\n', "a.toml": 'include = ["b.toml"]\n'})
    assert found == ["a.toml: include: a fragment cannot include others; list them in `city.toml` (line 1)"]


def test_a_file_included_twice_is_a_problem(problems: Problems) -> None:
    assert "included twice" in problems({"city.toml": 'include = ["a.toml", "a.toml"]\n', "a.toml": ""})[0]


def test_agents_of_a_fragment_find_their_files_beside_it(load: Load) -> None:
    loaded = load(
        {
            "city.toml": 'include = ["env/prod.toml"]\n',
            "env/prod.toml": '[[agents]]\nname = "x"\nprompt_template = "p.md"\noverlay_dir = "//over"\n'
            'session_setup_script = "../s.sh"\n',
            "env/p.md": "hi",
            "s.sh": "true",
        }
    )
    agent = loaded.city.agents[0]
    assert (agent.prompt_template, agent.overlay_dir, agent.session_setup_script) == ("env/p.md", "over", "s.sh")
    assert agent.config_dir == loaded.city.root / "env"
    assert loaded.warnings == ()


def test_extra_files_come_last_and_may_lie_elsewhere(make_city: MakeCity, tmp_path: Path) -> None:
    extra = tmp_path / "extra.toml"
    extra.write_text('[api]\nport = 1\n[[agents]]\nname = "x"\nprompt_template = "p.md"\n')
    (tmp_path / "p.md").write_text("hi")
    loaded = load_city(make_city({"city.toml": "[api]\nport = 2\n"}), env=ENV, extra=[extra])
    assert loaded.city.api.port == 1
    assert loaded.city.agents[0].prompt_template == str(tmp_path / "p.md")


def test_values_that_lose_are_warnings_and_strict_makes_them_problems(make_city: MakeCity) -> None:
    files = {
        "city.toml": 'include = ["a.toml"]\n[workspace]\nprovider = "claude"\n[daemon]\nmax_restarts = 3\n',
        "a.toml": '[workspace]\nprovider = "codex"\n[daemon]\nwisp_ttl = "1d"\n',
    }
    loaded = load_city(make_city(files), env=ENV)
    assert loaded.city.workspace.provider == "codex"
    assert loaded.city.daemon.max_restarts == 5
    assert [str(note) for note in loaded.warnings] == [
        "a.toml: workspace.provider: is also set in city.toml; the value here wins (line 2)",
        (
            "a.toml: daemon: replaces the whole `[daemon]` of city.toml; "
            "`max_restarts` set there no longer counts (line 3)"
        ),
    ]
    with pytest.raises(ConfigInvalid, match="the value here wins"):
        load_city(make_city(files), env=ENV, strict=True)


def test_what_is_accepted_and_not_used_is_no_problem_even_when_strict(make_city: MakeCity) -> None:
    loaded = load_city(make_city({"city.toml": "[dolt]\nport = 1\n"}), env=ENV, strict=True)
    assert [str(note) for note in loaded.warnings] == ["city.toml: dolt: is accepted and not used (line 1)"]


def test_providers_of_fragments_merge_field_by_field_and_topologies_by_name(load: Load) -> None:
    loaded = load(
        {
            "city.toml": 'include = ["a.toml"]\n[providers.bot]\ncommand = "bot"\nargs = ["x"]\n',
            "a.toml": '[providers.bot]\nready_delay_ms = 4\n[providers.two]\ncommand = "two"\n',
        }
    )
    assert (loaded.city.providers["bot"].command, loaded.city.providers["bot"].ready_delay_ms) == ("bot", 4)
    assert set(loaded.city.providers) == {"bot", "two"}


def test_bug_automations_and_suspension_and_topology_of_a_fragment_count(load: Load) -> None:
    loaded = load(
        {
            "city.toml": 'include = ["a.toml"]\n[automations]\nskip = ["x"]\n',
            "a.toml": '[workspace]\nsuspended = true\ntopology = "pack"\n[automations]\nskip = ["y"]\n'
            'max_timeout = "2m"\n[[automations.overrides]]\nname = "z"\nenabled = false\n',
            "pack/topology.toml": PACK + '[[agents]]\nname = "dog"\n',
        }
    )
    assert loaded.city.workspace.suspended
    assert agents(loaded) == ["dog"]
    assert loaded.city.automations.skip == ("x", "y")
    assert loaded.city.automations.max_timeout == timedelta(minutes=2)
    assert loaded.city.automations.overrides[0].enabled is False


def test_bug_a_wisp_ttl_in_days_is_a_duration(load: Load) -> None:
    assert load({"city.toml": '[daemon]\nwisp_ttl = "7d"\n'}).city.daemon.wisp_ttl == timedelta(days=7)


def test_bug_a_duration_that_cannot_be_read_is_a_problem_not_a_default(problems: Problems) -> None:
    assert "is not a duration" in problems({"city.toml": '[daemon]\npatrol_interval = "soon"\n'})[0]


def test_bug_the_k8s_table_counts_and_its_variables_win(load: Load) -> None:
    files = {"city.toml": '[session.k8s]\nimage = "a"\nnamespace = "n"\n'}
    k8s = load(files, GC_K8S_IMAGE="b", GC_K8S_PREBAKED="1").city.session.k8s
    assert (k8s.image, k8s.namespace, k8s.prebaked) == ("b", "n", True)


def test_bug_formulas_of_the_city_are_a_layer_though_nothing_is_set(load: Load) -> None:
    loaded = load({"city.toml": '[[rigs]]\nname = "shop"\npath = "r"\nformulas_dir = "f"\n'})
    root = loaded.city.root
    assert loaded.city.layers.city == (root / ".gc/system-formulas", root / ".gc/formulas")
    assert loaded.city.layers.rigs == {"shop": (root / "f",)}
    assert loaded.city.layers.of("shop") == (root / ".gc/system-formulas", root / ".gc/formulas", root / "f")


def test_formula_layers_go_from_system_to_rig(load: Load) -> None:
    loaded = load(
        {
            "city.toml": '[workspace]\ntopology = "pack"\n[formulas]\ndir = "own"\n'
            '[[rigs]]\nname = "shop"\npath = "r"\ntopologies = ["rigpack", "pack"]\nformulas_dir = "f"\n',
            "pack/topology.toml": PACK + 'includes = ["../base"]\n',
            "base/topology.toml": PACK + '[formulas]\ndir = "flows"\n',
            "rigpack/topology.toml": PACK,
        }
    )
    root = loaded.city.root
    assert loaded.city.layers.city == (
        root / ".gc/system-formulas", root / "base/flows", root / "pack/formulas", root / "own",
    )  # fmt: skip
    assert loaded.city.layers.rigs["shop"] == (root / "rigpack/formulas", root / "f")


def test_bug_one_bad_rig_stops_the_whole_configuration(problems: Problems) -> None:
    found = problems(
        {"city.toml": '[[rigs]]\nname = "shop"\npath = "a"\n[[rigs]]\nname = "shop"\npath = "b"\nprefix = "zz"\n'}
    )
    assert found == ["city.toml: rigs[1].name: rig `shop` is defined twice, first in city.toml, line 2 (line 5)"]


def test_prefixes_are_unique_with_the_city_s_own(problems: Problems) -> None:
    found = problems(
        {
            "city.toml": '[[rigs]]\nname = "big-lamp"\npath = "a"\n'
            '[[rigs]]\nname = "one"\npath = "b"\n[[rigs]]\nname = "two"\npath = "c"\nprefix = "ONE"\n'
        }
    )
    assert "prefix `bl` (derived from `big-lamp`) belongs to the city itself, `bright-lights`" in found[0]
    assert "prefix `one` belongs to rig `one`; set another `prefix`" in found[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[workspace]\nprovider = "cluade"\n', "`cluade` is not a provider; did you mean `claude`?"),
        ('[[agents]]\nname = "a"\nprovider = "nope"\n', "`nope` is not a provider"),
        ('[[agents]]\nname = "a"\n[[agents]]\nname = "a"\n', "agent `a` is defined twice, first in city.toml, line 2"),
        ('[[agents]]\nname = "a"\nwork_query = "x"\n[agents.pool]\nmax = 1\n', "`sling_query` is missing"),
        ('[[agents]]\nname = "a"\nsling_query = "x"\n[agents.pool]\nmax = 1\n', "`work_query` is missing"),
        ('[[agents]]\nname = "a"\ndepends_on = ["b"]\n', "`b` is not an agent"),
        ('[[agents]]\nname = "a"\ndepends_on = ["b"]\n[[agents]]\nname = "b"\ndepends_on = ["a"]\n', "in a circle"),
        ('[[agents]]\nname = "a"\npre_start = ["{{.Sesion}}"]\n', "there is no `.Sesion`; did you mean `Session`?"),
        ('[[agents]]\nname = "a"\ndir = "{{.WorkDir}}"\n', "there is no `.WorkDir`"),
        ('[[agents]]\nname = "a"\nstart_command = "{{if}}"\n', "`if` needs a value"),
        ('[workspace]\nsession_template = "{{.Cty}}"\n[[agents]]\nname = "a"\n', "did you mean `City`?"),
        (
            '[workspace]\nsession_template = "x"\n[[agents]]\nname = "a"\n[[agents]]\nname = "b"\n',
            "the same session, `x`",
        ),
        (
            '[[rigs]]\nname = "r"\npath = "x"\n[rigs.workspace]\ncopy = ["a/b"]\ncache = ["./a"]\n',
            "`./a` and `a/b` of `copy` are in each other's way",
        ),
        ('[[rigs]]\nname = "r"\npath = "x"\n[rigs.workspace]\ncache = [".git/lfs"]\n', "is git's own"),
        ('[[rigs]]\nname = "r"\npath = "x"\n[rigs.workspace]\nports = 10001\n', "it goes from 0 to 10000"),
        ('[[agents]]\nname = "' + "n" * 140 + '"\n', "use up to 128 letters, digits and the signs"),
        ('[workspace]\nsession_template = "-{{.Agent}}"\n[[agents]]\nname = "a"\n', "gives it the session `-a`"),
        ('[workspace]\ntimezone = "Europe/Berlim"\n', "did you mean `Europe/Berlin`?"),
        ('[workspace]\ntimezone = "../etc"\n', "`../etc` is not a time zone"),
        ('[workspace]\ntopology = "gone"\n', "`gone` is not a topology: there is no gone/topology.toml"),
        ('[[rigs]]\nname = "r"\npath = "x"\n[[rigs.overrides]]\nagent = "z"\n', "`z` is not an agent of rig `r`"),
        ('[[configurations]]\nname = "c"\nrig = "r"\n', "`r` is not a rig"),
        ('[[configurations]]\nname = "c"\npreset = "r"\n', "`r` is not a provider"),
        ('[providers.p]\ncommand = "x"\nargs = ["{{.CityRot}}/x.sh"]\n', "CityRot"),
        ('[[configurations]]\nname = "c"\n[[configurations]]\nname = "c"\n', "configuration `c` is defined twice"),
        ('[[automations.overrides]]\nname = "c"\nrig = "r"\n', "`r` is not a rig"),
        ('[[agents]]\nname = "a"\n[agents.pool]\nmax = 3\n[[agents]]\nname = "a-2"\n', "an instance of the pool `a`"),
        ('[[agents]]\nname = "a"\n[agents.pool]\nmax = 1000000000\n', "it goes from 0 to 10000"),
        ('[[patches.agents]]\nname = "c"\n', "`c` is not an agent"),
        ('[[patches.rigs]]\nname = "c"\n', "`c` is not a rig"),
        ('[[patches.providers]]\nname = "c"\n', "`c` is not a provider"),
    ],
)
def test_names_that_lead_nowhere_and_rules_between_values_are_problems(
    problems: Problems, text: str, said: str
) -> None:
    found = problems({"city.toml": text})
    assert said in "\n".join(found)
    assert all(line.startswith("city.toml: ") for line in found)


def test_a_configuration_works_in_a_rig_or_a_path(problems: Problems) -> None:
    text = '[[rigs]]\nname = "r"\npath = "x"\n[[configurations]]\nname = "c"\nrig = "r"\npath = "y"\n'
    assert "not in both" in problems({"city.toml": text})[0]


def test_patches_reach_agents_of_city_topologies_and_not_those_of_rigs(problems: Problems, load: Load) -> None:
    files = {
        "city.toml": '[workspace]\ntopology = "pack"\n[[rigs]]\nname = "shop"\npath = "r"\ntopology = "pack"\n'
        '[[patches.agents]]\nname = "dog"\nenv = { B = "2" }\nenv_remove = ["A"]\npre_start = []\npool = { max = 2 }\n',
        "pack/topology.toml": PACK + '[[agents]]\nname = "dog"\nenv = { A = "1", C = "3" }\npre_start = ["x"]\n',
    }
    dog = load(files).city.agents[0]
    assert dict(dog.env) == {"B": "2", "C": "3"}
    assert dog.pre_start == ("x",)
    assert dog.pool is not None
    assert (dog.pool.min, dog.pool.max) == (0, 2)
    found = problems({"city.toml": files["city.toml"] + '[[patches.agents]]\ndir = "shop"\nname = "dog"\n'})
    assert "use `[[rigs.overrides]]`" in found[0]


def test_a_patched_built_in_provider_keeps_the_rest_of_itself(load: Load) -> None:
    text = '[[patches.providers]]\nname = "claude"\nready_delay_ms = 1\n'
    claude = load({"city.toml": text}).city.providers["claude"]
    assert (claude.command, claude.ready_delay_ms, claude.process_names) == ("claude", 1, ("node", "claude"))


def test_overrides_reach_the_rig_s_own_agents_too(load: Load) -> None:
    text = (
        '[[agents]]\nname = "a"\ndir = "shop"\n'
        '[[rigs]]\nname = "shop"\npath = "r"\n[[rigs.overrides]]\nagent = "a"\nnudge = "hi"\n'
    )
    assert load({"city.toml": text}).city.agents[0].nudge == "hi"


def test_city_agents_divide_a_topology_between_city_and_rigs(load: Load) -> None:
    loaded = load(
        {
            "city.toml": '[workspace]\ntopology = "pack"\n[[agents]]\nname = "own"\n'
            '[[rigs]]\nname = "shop"\npath = "r"\ntopology = "pack"\n',
            "pack/topology.toml": PACK
            + 'city_agents = ["mayor"]\n[[agents]]\nname = "mayor"\n[[agents]]\nname = "coder"\n',
        }
    )
    assert agents(loaded) == ["mayor", "own", "shop/coder"]


def test_city_agents_that_are_not_there_are_a_problem(problems: Problems) -> None:
    found = problems(
        {
            "city.toml": '[workspace]\ntopology = "pack"\n',
            "pack/topology.toml": PACK + 'city_agents = ["maior"]\n[[agents]]\nname = "mayor"\n',
        }
    )
    assert found == [
        (
            "pack/topology.toml: topology.city_agents: `maior` is not an agent of this topology; "
            "did you mean `mayor`? (line 4)"
        )
    ]


def test_a_topology_needs_a_name_and_a_schema_that_is_known(problems: Problems) -> None:
    city = {"city.toml": '[workspace]\ntopology = "pack"\n'}
    assert problems({**city, "pack/topology.toml": "[topology]\n"}) == [
        "pack/topology.toml: topology.name: is missing; it must be set (line 1)",
        "pack/topology.toml: topology.schema: is missing; it must be set (line 1)",
    ]
    assert (
        "this program reads schema 1"
        in problems({**city, "pack/topology.toml": '[topology]\nname = "x"\nschema = 2\n'})[0]
    )
    assert "topology.toml: topology: is missing" in problems({**city, "pack/topology.toml": ""})[0]


def test_included_topologies_come_first_and_the_including_one_s_providers_win(load: Load) -> None:
    loaded = load(
        {
            "city.toml": '[workspace]\ntopology = "pack"\n',
            "pack/topology.toml": PACK
            + 'includes = ["../base"]\n[providers.bot]\ncommand = "two"\n[[agents]]\nname = "b"\n',
            "base/topology.toml": PACK + '[providers.bot]\ncommand = "one"\n[[agents]]\nname = "a"\n',
        }
    )
    assert agents(loaded) == ["a", "b"]
    assert loaded.city.providers["bot"].command == "two"


def test_topologies_that_include_each_other_are_a_problem(problems: Problems) -> None:
    found = problems(
        {
            "city.toml": '[workspace]\ntopology = "a"\n',
            "a/topology.toml": PACK + 'includes = ["../b"]\n',
            "b/topology.toml": PACK + 'includes = ["../a"]\n',
        }
    )
    assert found == [
        "b/topology.toml: topology.includes: topologies include each other in a circle: a → b → a (line 4)"
    ]


def test_two_topologies_of_one_scope_may_not_define_the_same_agent(problems: Problems) -> None:
    pack = PACK + '[[agents]]\nname = "dog"\n'
    files = {"a/topology.toml": pack, "b/topology.toml": pack}
    found = problems({"city.toml": '[workspace]\ntopologies = ["a", "b"]\n', **files})
    assert found == [("b/topology.toml: agents[0].name: agent `dog` is also defined in a/topology.toml; "
                     "a scope takes it from one (line 5)")]  # fmt: skip


def test_one_topology_named_twice_counts_once(load: Load) -> None:
    files = {"pack/topology.toml": PACK + '[[agents]]\nname = "dog"\n'}
    loaded = load({"city.toml": '[workspace]\ntopology = "pack"\ntopologies = ["pack"]\n', **files})
    assert agents(loaded) == ["dog"]


def test_prompts_are_read_with_their_partials_and_errors_name_their_line(load: Load, make_city: MakeCity) -> None:
    files = {
        "city.toml": '[[agents]]\nname = "a"\nprompt_template = "p/a.md"\nenv = { TEAM = "web" }\n'
        '[[rigs]]\nname = "x"\npath = "x"\n',
        "p/a.md": '{{template "hello" .}} {{cmd}} {{session "x/y"}} {{basename "x/y"}} {{.IssuePrefix}}{{.Unknown}}',
        "p/shared/h.md.tmpl": '{{define "hello"}}I am {{.AgentName}} of {{.TEAM}}{{end}}',
    }
    loaded = load(files)
    rendered = loaded.prompt(loaded.city.agents[0], "a", env={"TEAM": "web"})
    assert rendered == "I am a of web lamp gc-bright-lights-x--y y bl"
    files["p/shared/h.md.tmpl"] = "ok\n{{if}}"
    warned = load(files).warnings
    assert [str(warning) for warning in warned] == [
        "p/shared/h.md.tmpl: `if` needs a value; it is left out (line 2)",
        "p/a.md: there is no template `hello`; the prompt p/a.md is used as it is written (line 1)",
    ]
    with pytest.raises(ConfigInvalid) as refused:
        load_city(make_city(files), env={}, strict=True)
    assert refused.value.message.splitlines() == [str(warning) for warning in warned]


@pytest.mark.parametrize(
    "text", ["Hello {{if}}", "Hello {{range .AgentName}}x{{end}}", "{{ nobody .X }}", "Use `{{.ID` so"]
)
def test_a_prompt_that_cannot_be_rendered_is_a_warning_and_used_as_it_is_written(load: Load, text: str) -> None:
    loaded = load({"city.toml": '[[agents]]\nname = "a"\nprompt_template = "a.md"\n', "a.md": text})
    assert [warning.file for warning in loaded.warnings] == ["a.md"]
    assert "used as it is written" in loaded.warnings[0].message
    assert loaded.prompt(loaded.city.agents[0], "a", env={}) == text


def test_a_prompt_that_is_not_utf_8_is_a_warning(load: Load, tmp_path: Path) -> None:
    files = {"city.toml": '[[agents]]\nname = "a"\nprompt_template = "a.md"\n', "a.md": "x"}
    load(files)
    for path in tmp_path.rglob("a.md"):
        path.write_bytes(b"caf\xe9 {{.AgentName}}")
    loaded = load({"city.toml": files["city.toml"]})
    assert "is not UTF-8 text" in loaded.warnings[0].message
    assert loaded.prompt(loaded.city.agents[0], "a", env={}) == "caf\N{REPLACEMENT CHARACTER} a"


def test_a_prompt_that_is_not_there_is_a_warning(load: Load) -> None:
    loaded = load({"city.toml": '[[agents]]\nname = "a"\nprompt_template = "gone.md"\n'})
    assert "there is no prompt file `gone.md`" in loaded.warnings[0].message
    assert loaded.prompt(loaded.city.agents[0], "a", env={}) == ""


def test_a_misspelt_variable_is_told_with_the_nearest_known_one(load: Load) -> None:
    set_by_us = {
        "LAMP_RUN_ID": "run_1",
        "LAMP_CITY": "/x",
        "LAMP_SESSION_ID": "s",
        "LAMPSHADE": "x",
        "LAMP_API_PRT": "",
    }
    assert load({"city.toml": ""}, **set_by_us).warnings == ()
    loaded = load({"city.toml": ""}, LAMP_API_PROT="0", LAMP_ZZZ="1")
    assert loaded.city.api.port == 5267
    assert [str(note) for note in loaded.warnings] == [
        "environment: LAMP_API_PROT: is not a setting and has no effect; did you mean `LAMP_API_PORT`?",
        "environment: LAMP_ZZZ: is not a setting and has no effect",
    ]


def test_the_environment_wins_and_says_what_is_wrong_with_it(load: Load, problems: Problems) -> None:
    files = {"city.toml": '[beads]\nprovider = "bd"\n[api]\nport = 1\n'}
    city = load(
        files, GC_BEADS="file", LAMP_API_PORT="0", LAMP_DAEMON_PATROL_INTERVAL="5s", LAMP_API_HOST="",
        LAMP_STORE_URL="postgresql://u:secret@h/d", LAMP_AUTOMATIONS_SKIP="a, b",
    ).city  # fmt: skip
    assert (city.beads.provider, city.api.port, city.api.host) == ("file", 0, "127.0.0.1")
    assert city.daemon.patrol_interval == timedelta(seconds=5)
    assert city.store.url == "postgresql://u:secret@h/d"
    assert city.automations.skip == ("a", "b")
    assert problems(files, LAMP_API_PORT="many", LAMP_WORKSPACE_SUSPENDED="maybe", GC_SESSION="tmx") == [
        (
            "environment: GC_SESSION: `tmx` is not one of `tmux`, `subprocess`, `fake`, `fail` or "
            "`exec:<script>`; did you mean `tmux`?"
        ),
        'environment: LAMP_WORKSPACE_SUSPENDED: must be `true` or `false`, not the text "maybe"',
        'environment: LAMP_API_PORT: must be a whole number, not the text "many"',
    ]


def test_a_lamp_variable_wins_over_gas_city_s(load: Load) -> None:
    assert load({"city.toml": ""}, GC_BEADS="bd", LAMP_BEADS_PROVIDER="store").city.beads.provider == "store"


def test_bug_the_revision_covers_every_source_and_no_more(load: Load, make_city: MakeCity) -> None:
    files = {
        "city.toml": '[workspace]\ntopologies = ["pack"]\n[[agents]]\nname = "a"\nprompt_template = "p.md"\n',
        "pack/topology.toml": PACK,
        "p.md": "x",
    }
    first = load(files).revision
    make_city({"scratch.txt": "an agent was here"})
    assert load(files).revision == first
    changed = [
        load({**files, "p.md": "y"}).revision,
        load({**files, "pack/formulas/automations/a/automation.toml": "x"}).revision,
        load({**files, ".gc/formulas/b.formula.toml": "x"}).revision,
        load({**files, "pack/topology.toml": PACK + "\n"}).revision,
    ]
    assert len({first, *changed}) == 5


@pytest.mark.parametrize(
    ("preset", "told"), [('"cline"\nmode = "approval"', "no run can complete"), ('"aider"', "no run can use it")]
)
def test_a_configuration_that_no_run_can_complete_with_is_told(make_city: MakeCity, preset: str, told: str) -> None:
    root = make_city({"city.toml": f'[workspace]\nname = "t"\n[[configurations]]\nname = "c"\npreset = {preset}\n'})
    (warning,) = load_city(root, env=ENV).warnings
    assert told in warning.message
