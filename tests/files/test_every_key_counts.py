"""Each key of city.toml and topology.toml has an effect, is refused with its reason, or is named as without effect.

That a decoder reads a key is no effect: for each key two cities are loaded, with and without it, and what follows from
them must differ (`key_effects.py`). A new key needs its case here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from city_files import ENV, MakeCity
from key_effects import effects

from lamplighter.adapters.files.layers import load_city
from lamplighter.domain.city.keys import Shape, keys_of
from lamplighter.domain.city.model import City, TopologyFile

TESTS = Path(__file__).parent.parent


@dataclass(frozen=True)
class Case:
    """Two texts of `file`, the rest of the city being the same."""

    without: str
    given: str
    file: str = "city.toml"
    city: str = ""
    """The city.toml, where another file is changed."""


@dataclass(frozen=True)
class ShownBy:
    """The effect is that of a running process; the named test shows it."""

    test: str
    """File and name below `tests`; its text names the key."""


BOT = '[providers.bot]\ncommand = "bot"\n'
A = f'{BOT}prompt_mode = "flag"\nprompt_flag = "-p"\n[[agents]]\nname = "a"\nprovider = "bot"\n'
TEXT = 'prompt_template = "p.md"\n'
POOL = '[[agents]]\nname = "a"\nstart_command = "x"\n[agents.pool]\nmax = 2\n'
RIG = '[[rigs]]\nname = "shop"\npath = "shop"\n'
RUN = f'{BOT}[workspace]\nprovider = "bot"\n'


DESK = '[[notifications.destinations]]\nname = "desk"\nkind = "command"\ncommand = "cat"\n'


def after(context: str, line: str) -> Case:
    """The line at the end of the context, and the context alone."""
    return Case(context, f"{context}{line}\n")


def section(name: str, line: str, context: str = "") -> Case:
    return Case(context, f"{context}[{name}]\n{line}\n")


def override(line: str) -> Case:
    base = '[[automations.overrides]]\nname = "job"\n'
    return Case(f'{base}timeout = "7s"\n', f'{base}timeout = "7s"\n{line}\n')


def configured(line: str, context: str = RUN) -> Case:
    base = f'{context}[[configurations]]\nname = "c"\n'
    return Case(base, f"{base}{line}\n")


AGENT_LINES = {
    "suspended": "suspended = true",
    "env": 'env = { X = "1" }',
    "pre_start": 'pre_start = ["true"]',
    "prompt_template": 'prompt_template = "p.md"',
    "provider": 'provider = "codex"',
    "start_command": 'start_command = "other"',
    "nudge": 'nudge = "go"',
    "resume": 'resume = "never"',
    "idle_timeout": 'idle_timeout = "9s"',
    "install_agent_hooks": 'install_agent_hooks = ["gemini"]',
    "hooks_installed": "hooks_installed = true",
    "session_setup": 'session_setup = ["true"]',
    "session_setup_script": 'session_setup_script = "setup.sh"',
    "overlay_dir": 'overlay_dir = "overlay"',
}
CHANGED = f'{BOT}[[agents]]\nname = "a"\nprovider = "claude"\nenv = {{ GONE = "1" }}\n'
IN_RIG = f'{BOT}[[agents]]\nname = "a"\ndir = "shop"\nprovider = "claude"\nenv = {{ GONE = "1" }}\n'
PATCH = f'{CHANGED}[[patches.agents]]\nname = "a"\n'
OVERRIDE = f'{IN_RIG}{RIG}[[rigs.overrides]]\nagent = "a"\n'
POOLED = POOL + '[[patches.agents]]\nname = "a"\n[patches.agents.pool]\n'
PROVIDER = f'{BOT}env = {{ GONE = "1" }}\n[[agents]]\nname = "a"\nprovider = "bot"\nprompt_template = "p.md"\n'
PROVIDER_PATCH = f'{PROVIDER}[[patches.providers]]\nname = "bot"\n'
TOPOLOGY = '[workspace]\ntopology = "pack"\n'
PACK = '[topology]\nname = "pack"\nschema = 1\n'
TWO = '[[agents]]\nname = "x"\nstart_command = "x"\n[[agents]]\nname = "y"\nstart_command = "y"\n'

CASES: dict[tuple[str, str], Case | ShownBy] = {
    ("City", "include"): Case("", 'include = ["more.toml"]\n'),
    ("Workspace", "name"): section("workspace", 'name = "other"'),
    ("Workspace", "provider"): section("workspace", 'provider = "codex"', '[[agents]]\nname = "a"\n'),
    ("Workspace", "start_command"): section("workspace", 'start_command = "other"', '[[agents]]\nname = "a"\n'),
    ("Workspace", "suspended"): section("workspace", "suspended = true"),
    ("Workspace", "session_template"): section("workspace", 'session_template = "x-{{.Agent}}"', A),
    ("Workspace", "install_agent_hooks"): section("workspace", 'install_agent_hooks = ["gemini"]', A),
    ("Workspace", "topology"): section("workspace", 'topology = "pack"'),
    ("Workspace", "topologies"): section("workspace", 'topologies = ["pack"]'),
    ("Workspace", "timezone"): section("workspace", 'timezone = "Asia/Tokyo"'),
    ("Store", "url"): section("store", 'url = "postgresql://db.example.org/lamp"'),
    ("Api", "host"): ShownBy("unit/web/test_hosts.py"),
    ("Api", "port"): ShownBy("cli/test_told_where_people_look.py"),
    ("Api", "public_url"): ShownBy("web/test_port_bounds.py"),
    ("Oidc", "issuer"): ShownBy("web/test_sign_in_at_a_provider.py"),
    ("Oidc", "client_id"): ShownBy("web/test_sign_in_at_a_provider.py"),
    ("Oidc", "client_secret"): ShownBy("web/test_sign_in_at_a_provider.py"),
    ("Oidc", "domains"): ShownBy("web/test_sign_in_at_a_provider.py"),
    ("Daemon", "patrol_interval"): section("daemon", 'patrol_interval = "9s"'),
    ("Daemon", "max_restarts"): section("daemon", "max_restarts = 9", A),
    ("Daemon", "restart_window"): section("daemon", 'restart_window = "9s"', A),
    ("Daemon", "shutdown_timeout"): section("daemon", 'shutdown_timeout = "1ms"'),
    ("Daemon", "wisp_gc_interval"): after('[daemon]\nwisp_ttl = "1h"\n', 'wisp_gc_interval = "9s"'),
    ("Daemon", "wisp_ttl"): after('[daemon]\nwisp_gc_interval = "9s"\n', 'wisp_ttl = "1h"'),
    ("Daemon", "startup_grace"): section("daemon", 'startup_grace = "9s"', A),
    ("Daemon", "drift_timeout"): section("daemon", 'drift_timeout = "9s"', A),
    ("Daemon", "strategy"): section("daemon", 'strategy = "one_for_all"', A),
    ("Daemon", "keep_quarantine"): ShownBy("daemon/test_patrol_cases.py"),
    ("Session", "provider"): section("session", 'provider = "fake"'),
    ("Session", "gc_fronts"): ShownBy("cli/test_fronts.py"),
    ("Session", "permission_wait"): ShownBy("daemon/test_permission_prompts.py"),
    ("Runs", "deadline"): section("runs", 'deadline = "9s"'),
    ("Runs", "idle"): section("runs", 'idle = "9s"'),
    ("Runs", "idle_timeout"): section("runs", 'idle_timeout = "9s"'),
    ("Runs", "provider"): section("runs", 'provider = "fake"'),
    ("Runs", "isolation"): section("runs", 'isolation = "none"', RUN),
    ("Runs", "stuck_after"): section("runs", "stuck_after = 3"),
    **{
        ("Limits", key): ShownBy("daemon/test_bounds.py")
        for key in ("runs", "per_rig", "per_preset", "per_login", "rigs", "presets", "memory")
    },
    ("Budget", "day_cost"): section("budget", "day_cost = 2.5"),
    ("Budget", "day_tokens"): section("budget", "day_tokens = 9"),
    ("Budget", "day_time"): section("budget", 'day_time = "9s"'),
    ("Workers", "enrich"): section("workers", "enrich = 3"),
    ("Workers", "execute"): section("workers", "execute = 3"),
    ("Workers", "notify"): section("workers", "notify = 3"),
    ("Workers", "lost_after"): ShownBy("crash/test_workers.py"),
    ("Automations", "skip"): section("automations", 'skip = ["job"]'),
    ("Automations", "max_timeout"): section("automations", 'max_timeout = "9s"'),
    ("AutomationOverride", "name"): Case("", '[[automations.overrides]]\nname = "job"\ntimeout = "9s"\n'),
    ("AutomationOverride", "rig"): Case(
        f'{RIG}[[automations.overrides]]\nname = "job"\ntimeout = "9s"\n',
        f'{RIG}[[automations.overrides]]\nname = "job"\ntimeout = "9s"\nrig = "shop"\n',
    ),
    ("AutomationOverride", "enabled"): override("enabled = false"),
    ("AutomationOverride", "gate"): override('gate = "manual"'),
    ("AutomationOverride", "interval"): override('interval = "9s"'),
    ("AutomationOverride", "schedule"): override('gate = "cron"\nschedule = "0 3 * * *"'),
    ("AutomationOverride", "check"): override('gate = "condition"\ncheck = "true"'),
    ("AutomationOverride", "on"): override('gate = "event"\non = "bead.*"'),
    ("AutomationOverride", "pool"): Case(
        '[[automations.overrides]]\nname = "cook"\n', '[[automations.overrides]]\nname = "cook"\npool = "other"\n'
    ),
    ("AutomationOverride", "timeout"): Case(
        '[[automations.overrides]]\nname = "job"\n', '[[automations.overrides]]\nname = "job"\ntimeout = "9s"\n'
    ),
    ("Formulas", "dir"): section("formulas", 'dir = "others"'),
    ("Beads", "provider"): section("beads", 'provider = "exec:beads.sh"'),
    ("Mail", "provider"): section("mail", 'provider = "fake"'),
    ("Events", "export"): section("events", "export = true"),
    ("Artifacts", "url"): section("artifacts", 'url = "elsewhere"'),
    ("Retention", "runs"): section("retention", 'runs = "9d"'),
    ("Retention", "artifacts"): section("retention", 'artifacts = "9d"'),
    ("Retention", "trigger_events"): section("retention", 'trigger_events = "9d"'),
    ("Retention", "events"): section("retention", 'events = "9d"'),
    ("Retention", "outbox"): section("retention", 'outbox = "9d"'),
    ("Retention", "inbox"): section("retention", 'inbox = "9d"'),
    ("Retention", "deliveries"): section("retention", 'deliveries = "9d"'),
    ("Retention", "bulk_actions"): section("retention", 'bulk_actions = "9d"'),
    ("Retention", "notices"): section("retention", 'notices = "9d"'),
    ("Notifications", "to"): Case(DESK, f'[notifications]\nto = ["none"]\n{DESK}'),
    ("Notifications", "on"): section("notifications", 'on = ["failed"]'),
    ("Notifications", "after"): section("notifications", "after = 3"),
    ("Notifications", "recovery"): section("notifications", "recovery = false"),
    ("Notifications", "quiet_hours"): section("notifications", 'quiet_hours = "22:00-07:00"'),
    ("Notifications", "quiet_zone"): ShownBy("services/test_notices.py"),
    ("Destination", "after"): after(DESK, "after = 3"),
    ("Destination", "name"): ShownBy("daemon/test_notices_sent.py"),
    ("Destination", "kind"): ShownBy("daemon/test_notices_sent.py"),
    ("Destination", "url"): ShownBy("daemon/test_notices_sent.py"),
    ("Destination", "signing_env"): ShownBy("daemon/test_notices_sent.py"),
    ("Destination", "command"): ShownBy("daemon/test_notices_sent.py"),
    **{
        ("Destination", key): ShownBy("daemon/test_notice_kinds.py")
        for key in (
            "signing", "allow_private", "host", "port", "security", "user", "password", "sender", "recipients", "topic",
            "token", "priority", "service",
        )
    },
    ("Destination", "channel"): ShownBy("daemon/test_slack_notices.py"),
    ("Destination", "team"): ShownBy("daemon/test_slack_notices.py"),
    ("Notifications", "slack_channel"): ShownBy("daemon/test_slack_notices.py"),
    ("Provider", "command"): Case(PROVIDER, PROVIDER.replace('command = "bot"', 'command = "other"')),
    ("Provider", "display_name"): ShownBy("cli/test_doctor.py"),
    **{
        ("Provider", line.partition(" ")[0]): Case(PROVIDER, PROVIDER.replace("env =", f"{line}\nenv =", 1))
        for line in (
            'args = ["--x"]', 'prompt_mode = "none"', "ready_delay_ms = 9", 'ready_prompt_prefix = "> "',
            'process_names = ["x"]', "emits_permission_warning = true",
        )
    },
    ("Provider", "prompt_flag"): Case(
        PROVIDER.replace("env =", 'prompt_mode = "flag"\nprompt_flag = "-a"\nenv =', 1),
        PROVIDER.replace("env =", 'prompt_mode = "flag"\nprompt_flag = "-b"\nenv =', 1),
    ),
    ("Provider", "env"): Case(PROVIDER, PROVIDER.replace('GONE = "1"', 'X = "2"')),
    ("TopologySource", "source"): ShownBy("files/test_git_topologies.py"),
    ("TopologySource", "ref"): ShownBy("files/test_git_topologies.py"),
    ("TopologySource", "path"): ShownBy("files/test_git_topologies.py"),
    ("Agent", "name"): Case(A, A.replace('"a"', '"b"')),
    ("Agent", "dir"): after(A, 'dir = "there"'),
    **{("Agent", key): after(A if key != "resume" else CHANGED, line) for key, line in AGENT_LINES.items()},
    ("Agent", "provider"): Case(A, A.replace('provider = "bot"', 'provider = "codex"')),
    ("Agent", "args"): after(A, 'args = ["--x"]'),
    ("Agent", "prompt_mode"): after(f"{A}{TEXT}", 'prompt_mode = "none"'),
    ("Agent", "prompt_flag"): after(f"{A}{TEXT}", 'prompt_flag = "--other"'),
    ("Agent", "ready_delay_ms"): after('[[agents]]\nname = "a"\nstart_command = "x"\n', "ready_delay_ms = 9"),
    ("Agent", "ready_prompt_prefix"): after(
        '[[agents]]\nname = "a"\nstart_command = "x"\n', 'ready_prompt_prefix = "> "'
    ),
    ("Agent", "process_names"): after(A, 'process_names = ["x"]'),
    ("Agent", "emits_permission_warning"): after(A, "emits_permission_warning = true"),
    ("Agent", "work_query"): after(f"{A}{TEXT}", 'work_query = "other"'),
    ("Agent", "sling_query"): after(f"{A}{TEXT}", 'sling_query = "other {}"'),
    ("Agent", "depends_on"): after(f'[[agents]]\nname = "b"\nstart_command = "x"\n{A}', 'depends_on = ["b"]'),
    ("Pool", "min"): after(POOL, "min = 2"),
    ("Pool", "max"): Case(POOL, POOL.replace("max = 2", "max = 3")),
    ("Pool", "check"): after(POOL, 'check = "echo 1"'),
    ("Pool", "drain_timeout"): after(POOL, 'drain_timeout = "9s"'),
    ("Rig", "name"): Case(RIG, RIG.replace('"shop"', '"other"', 1)),
    ("Rig", "path"): Case(f"{IN_RIG}{RIG}", f"{IN_RIG}{RIG}".replace('path = "shop"', 'path = "other"')),
    ("Rig", "prefix"): after(RIG, 'prefix = "zz"'),
    ("Rig", "suspended"): after(RIG, "suspended = true"),
    ("Rig", "topology"): after(RIG, 'topology = "pack"'),
    ("Rig", "topologies"): after(RIG, 'topologies = ["pack"]'),
    ("Rig", "formulas_dir"): after(RIG, 'formulas_dir = "others"'),
    ("AgentOverride", "agent"): Case(f"{IN_RIG}{RIG}", f"{OVERRIDE}suspended = true\n"),
    ("AgentOverride", "dir"): after(OVERRIDE, 'dir = "there"'),
    **{("AgentOverride", key): after(OVERRIDE, line) for key, line in AGENT_LINES.items()},
    ("AgentOverride", "env_remove"): after(OVERRIDE, 'env_remove = ["GONE"]'),
    ("AgentPatch", "name"): Case(CHANGED, f"{PATCH}suspended = true\n"),
    ("AgentPatch", "dir"): Case(
        f"{IN_RIG}{RIG}", f'{IN_RIG}{RIG}[[patches.agents]]\nname = "a"\ndir = "shop"\nnudge = "x"\n'
    ),
    **{("AgentPatch", key): after(PATCH, line) for key, line in AGENT_LINES.items()},
    ("AgentPatch", "env_remove"): after(PATCH, 'env_remove = ["GONE"]'),
    ("PoolChange", "min"): after(POOLED, "min = 2"),
    ("PoolChange", "max"): after(POOLED, "max = 3"),
    ("PoolChange", "check"): after(POOLED, 'check = "echo 1"'),
    ("PoolChange", "drain_timeout"): after(POOLED, 'drain_timeout = "9s"'),
    ("RigPatch", "name"): Case(RIG, f'{RIG}[[patches.rigs]]\nname = "shop"\nprefix = "zz"\n'),
    ("RigPatch", "path"): Case(f"{IN_RIG}{RIG}", f'{IN_RIG}{RIG}[[patches.rigs]]\nname = "shop"\npath = "other"\n'),
    ("RigPatch", "prefix"): Case(RIG, f'{RIG}[[patches.rigs]]\nname = "shop"\nprefix = "zy"\n'),
    ("RigPatch", "suspended"): Case(RIG, f'{RIG}[[patches.rigs]]\nname = "shop"\nsuspended = true\n'),
    ("ProviderPatch", "name"): Case(PROVIDER, f'{PROVIDER_PATCH}command = "other"\n'),
    **{
        ("ProviderPatch", line.partition(" ")[0]): after(PROVIDER_PATCH, line)
        for line in (
            'command = "other"', 'args = ["--x"]', 'prompt_mode = "none"', "ready_delay_ms = 9", 'env = { Y = "1" }',
            'env_remove = ["GONE"]',
        )
    },
    ("ProviderPatch", "prompt_flag"): Case(
        f'{PROVIDER_PATCH}prompt_mode = "flag"\n', f'{PROVIDER_PATCH}prompt_mode = "flag"\nprompt_flag = "-x"\n'
    ),
    ("ProviderPatch", "_replace"): Case(
        f'{PROVIDER_PATCH}command = "bot"\n', f'{PROVIDER_PATCH}command = "bot"\n_replace = true\n'
    ),
    ("Configuration", "name"): Case(RUN, f'{RUN}[[configurations]]\nname = "c"\n'),
    ("Configuration", "description"): configured('description = "For the shop."'),
    ("Configuration", "rig"): configured('rig = "shop"', f"{RUN}{RIG}"),
    ("Configuration", "path"): configured('path = "there"'),
    ("Configuration", "preset"): configured('preset = "codex"'),
    ("Configuration", "model"): configured('model = "m"\npreset = "codex"'),
    ("Configuration", "mode"): configured('mode = "plan"'),
    ("Configuration", "env"): configured('env = { X = "1" }'),
    ("TopologyMeta", "name"): ShownBy("files/test_layers_rough.py"),
    ("TopologyMeta", "schema"): ShownBy("files/test_layers_rough.py"),
    ("TopologyMeta", "city_agents"): Case(
        f"{PACK}{TWO}", f'{PACK}city_agents = ["x"]\n{TWO}', "pack/topology.toml", TOPOLOGY
    ),
    ("TopologyMeta", "includes"): Case(PACK, f'{PACK}includes = ["../base"]\n', "pack/topology.toml", TOPOLOGY),
    ("TopologyFile", "agents"): Case(
        PACK, f'{PACK}[[agents]]\nname = "x"\nstart_command = "x"\n', "pack/topology.toml", TOPOLOGY
    ),
    ("TopologyFile", "providers"): Case(
        f'{PACK}{BOT}[[agents]]\nname = "x"\nprovider = "bot"\n',
        f'{PACK}{BOT}args = ["--x"]\n[[agents]]\nname = "x"\nprovider = "bot"\n', "pack/topology.toml", TOPOLOGY,
    ),
    ("TopologyFormulas", "dir"): Case(PACK, f'{PACK}[formulas]\ndir = "f"\n', "pack/topology.toml", TOPOLOGY),
    ("Retention", "rollups"): section("retention", 'rollups = "9d"'),
    **{
        ("Configuration", key): ShownBy("daemon/test_logins.py")
        for key in ("effort", "fallback_model", "fallback_preset", "home")
    },
    **{
        ("RigWorkspace", key): ShownBy("daemon/test_workspaces.py")
        for key in (
            "setup", "teardown", "copy", "cache", "ports", "setup_timeout", "teardown_timeout", "from_repository",
        )
    },
    ("Retention", "worktrees_mb"): ShownBy("daemon/test_workspaces.py"),
}  # fmt: skip

REFUSED: set[tuple[str, str]] = set()
"""Refused whatever it says."""

FILES = {
    "more.toml": '[[agents]]\nname = "included"\nstart_command = "x"\n',
    "p.md": "Hello. {{.WorkQuery}} {{.SlingQuery}}\n",
    "setup.sh": "true\n",
    "overlay/x": "x",
    "shop/x": "x",
    "other/x": "x",
    "others/x.formula.toml": "x",
    "pack/topology.toml": f'{PACK}city_agents = ["packed"]\n[[agents]]\nname = "packed"\nstart_command = "x"\n'
    '[[agents]]\nname = "rigged"\nstart_command = "x"\n',
    "pack/f/x": "x",
    "base/topology.toml": '[topology]\nname = "base"\nschema = 1\n[[agents]]\nname = "based"\nstart_command = "x"\n',
    ".gc/city-id": "cty_0000000000\n",
    ".gc/formulas/automations/job/automation.toml": '[automation]\nexec = "x"\ngate = "cooldown"\ninterval = "1h"\n',
    ".gc/formulas/automations/cook/automation.toml": '[automation]\nformula = "f"\ngate = "manual"\n',
}


def known(section_: type, *, unused: bool = False) -> dict[tuple[str, str], bool]:
    """Every plain key below a section, and whether it is accepted without effect."""
    found: dict[tuple[str, str], bool] = {}
    for key in keys_of(section_).values():
        if key.holds is None or (key.shape is Shape.ROWS and section_ is TopologyFile):
            found[section_.__name__, key.name] = unused or key.unused
        if key.holds is not None:
            found |= known(key.holds, unused=unused or key.unused)
    return found


KEYS = known(City) | known(TopologyFile)
UNUSED = {key for key, unused in KEYS.items() if unused}


def test_every_key_has_its_case() -> None:
    assert set(KEYS) - set(CASES) - UNUSED - REFUSED == set()


@pytest.mark.parametrize("key", sorted(key for key, case in CASES.items() if isinstance(case, Case)), ids=".".join)
def test_a_key_makes_a_difference(key: tuple[str, str], make_city: MakeCity) -> None:
    case = CASES[key]
    assert isinstance(case, Case)
    found = []
    for text in (case.without, case.given):
        root = make_city({**FILES, "city.toml": case.city, case.file: text})
        found.append(effects(load_city(root, env=ENV)))
    changed = {name for name in found[0] if found[0][name] != found[1][name]}
    assert changed, f"{'.'.join(key)} makes no difference"


@pytest.mark.parametrize("key", sorted(UNUSED), ids=".".join)
def test_a_key_without_effect_is_named_where_it_is_given(key: tuple[str, str], load: Callable[..., object]) -> None:
    text = WITHOUT_EFFECT[key[0]]
    loaded = load({**FILES, "city.toml": text.get("city.toml", ""), **text})
    told = [str(one) for one in loaded.warnings]  # type: ignore[attr-defined]  # a LoadedCity
    assert any("is accepted and not used" in one for one in told), told


WITHOUT_EFFECT: dict[str, dict[str, str]] = {
    "Workspace": {"city.toml": '[workspace]\nisolation = "none"\n'},
    "K8s": {"city.toml": '[session.k8s]\nimage = "x"\n'},
    "Dolt": {"city.toml": "[dolt]\nport = 1\n"},
    "Events": {"city.toml": '[events]\nprovider = "fail"\n'},
    "Agent": {"city.toml": '[[agents]]\nname = "a"\nstart_command = "x"\ndefault_sling_formula = "f"\n'},
    "AgentPatch": {"city.toml": f'{PATCH}default_sling_formula = "f"\n'},
    "AgentOverride": {"city.toml": f'{OVERRIDE}default_sling_formula = "f"\n'},
    "Rig": {"city.toml": f'{RIG}default_sling_target = "a"\n'},
    "TopologyMeta": {"city.toml": TOPOLOGY, "pack/topology.toml": f'{PACK}version = "1"\nrequires_gc = ">=0"\n'},
}


@pytest.mark.parametrize("key", sorted(key for key, case in CASES.items() if isinstance(case, ShownBy)), ids=".".join)
def test_what_only_a_process_shows_has_its_test(key: tuple[str, str]) -> None:
    case = CASES[key]
    assert isinstance(case, ShownBy)
    text = (TESTS / case.test).read_text()
    assert key[1] in text, f"{case.test} says nothing of {'.'.join(key)}"
