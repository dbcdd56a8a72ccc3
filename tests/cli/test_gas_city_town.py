"""A city written from Gas City's documentation: topologies, prompts, formulas, rigs, pools, overlays, and maintenance
scripts that call `gc` and `bd`. It loads, starts, cooks, drains and collects."""

import json
from pathlib import Path
from typing import Any

from lamp_program import here, lamp, until

CITY = """
include = ["env/prod.toml"]

[workspace]
name = "bright-lights"
provider = "house-bot"
session_template = "gc-{{.City}}-{{.Agent}}"
install_agent_hooks = ["claude", "gemini"]
topologies = ["topologies/gastown", "topologies/maintenance"]

[beads]
provider = "file"
[session]
provider = "subprocess"
gc_fronts = "always"
[mail]
provider = ""
[events]
provider = ""

[daemon]
patrol_interval = "1s"
max_restarts = -1
restart_window = "1h"
shutdown_timeout = "2s"
wisp_gc_interval = "1s"
wisp_ttl = "1s"

[formulas]
dir = ".gc/formulas"

[automations]
skip = ["noisy-sweep"]
max_timeout = "5m"

[providers.house-bot]
command = "sh"
args = ["{{.CityRoot}}/bot.sh"]
prompt_mode = "arg"
process_names = ["sh"]
ready_delay_ms = 1
env = { HOUSE_MODE = "agent" }

[[agents]]
name = "mayor"
prompt_template = "prompts/mayor.md.tmpl"
nudge = "Check mail and your hook."
idle_timeout = "1h"

[[rigs]]
name = "storefront"
path = "rigs/storefront"
prefix = "sf"
topology = "topologies/coding"
formulas_dir = "formulas/storefront"
default_sling_target = "storefront/coder"
[[rigs.overrides]]
agent = "coder"
idle_timeout = "30m"
pool = { max = 2 }

[[patches.agents]]
dir = ""
name = "dog"
suspended = true
"""
GASTOWN = """
[topology]
name = "gastown"
version = "1.0.0"
schema = 1
city_agents = ["deacon", "dog"]
includes = ["../base"]

[[agents]]
name = "deacon"
prompt_template = "prompts/deacon.md.tmpl"
overlay_dir = "overlays/deacon"

[[agents]]
name = "dog"
start_command = "sleep 600"
"""
CODING = """
[topology]
name = "coding"
version = "1.0.0"
schema = 1

[[agents]]
name = "coder"
prompt_template = "prompts/coder.md.tmpl"
pre_start = ["echo {{.Agent}} {{.Rig}} >> {{.CityRoot}}/started"]
env = { TEAM = "web" }
default_sling_formula = "mol-code"
[agents.pool]
min = 0
max = 4
check = "bd list --label=pool:storefront/coder --json | grep -c issue_type || true"
drain_timeout = "10m"
"""
BOT = r"""
# A program that takes its prompt and works as Gas City's prompts tell: it asks for work by `bd` and `gc`.
printf '%s\n' "$1" > "$LAMP_CITY/prompt.$(basename "$LAMP_AGENT")"
case "$LAMP_AGENT" in
*coder*)
  while ! gc agent drain-check; do
    bead=$(bd ready --label=pool:storefront/coder --json | grep -o '"id": *"[^"]*"' | head -1 | cut -d'"' -f4)
    [ -n "$bead" ] || bead=$(bd ready --json | grep -o '"id": *"sf-[^"]*"' | head -1 | cut -d'"' -f4)
    if [ -n "$bead" ]; then
      bd update "$bead" --claim --actor="$LAMP_AGENT" > /dev/null && bd close "$bead" --reason=done > /dev/null
    fi
    sleep 0.2
  done
  gc agent drain-ack
  ;;
esac
exec sleep 600
"""
FORMULA = """
formula = "mol-code"
description = "Code it: docker ps --format '{{ID}}'"
[[steps]]
id = "write"
title = "Write it"
description = "See {{undeclared}}."
[[steps]]
id = "check"
title = "Check it"
needs = ["write"]
"""
SWEEP = """#!/bin/sh
set -e
cd "$GC_CITY"
gc mail send mayor -s SWEEP -m "from $AUTOMATION_DIR"
id=$(bd create "Swept" -t chore -l swept --json | grep -o '"id": *"[^"]*"' | head -1 | cut -d'"' -f4)
bd label add "$id" done
bd close "$id" --reason=swept
gc events --type bead.closed --since 1h > /dev/null
gc status > /dev/null
echo "swept $id"
"""
FILES = {
    "city.toml": CITY,
    "env/prod.toml": '[[agents]]\nname = "clerk"\nstart_command = "sleep 600"\n',
    "bot.sh": BOT,
    "prompts/mayor.md.tmpl": 'You are {{.AgentName}} of {{.CityRoot}}. {{template "rules" .}}\n',
    "prompts/shared/rules.md.tmpl": '{{define "rules"}}Run {{cmd}} hook, then {{.WorkQuery}}.{{end}}\n',
    "topologies/base/topology.toml": '[topology]\nname = "base"\nversion = "1"\nschema = 1\n',
    "topologies/gastown/topology.toml": GASTOWN,
    "topologies/gastown/prompts/deacon.md.tmpl": "Deacon: this {{is not a template\n",
    "topologies/gastown/overlays/deacon/NOTES.md": "overlaid\n",
    "topologies/maintenance/topology.toml": '[topology]\nname = "maintenance"\nversion = "1"\nschema = 1\n',
    "topologies/maintenance/formulas/automations/sweep/automation.toml": (
        '[automation]\nexec = "sh $AUTOMATION_DIR/sweep.sh"\ngate = "cooldown"\ninterval = "1h"\n'
    ),
    "topologies/maintenance/formulas/automations/sweep/sweep.sh": SWEEP,
    "topologies/maintenance/formulas/automations/noisy-sweep/automation.toml": (
        '[automation]\nexec = "exit 1"\ngate = "cooldown"\ninterval = "1s"\n'
    ),
    "topologies/coding/topology.toml": CODING,
    "topologies/coding/prompts/coder.md.tmpl": "You are {{.AgentName}} in {{.RigName}}, {{.TEAM}}.\n",
    "formulas/storefront/mol-code.formula.toml": FORMULA,
    "formulas/storefront/automations/build/automation.toml": (
        '[automation]\nformula = "mol-code"\npool = "coder"\ngate = "event"\non = "shop.wanted"\n'
    ),
    "rigs/storefront/README.md": "The shop.\n",
}


def test_a_city_of_gas_city_runs(tmp_path: Path) -> None:
    town = tmp_path / "bright-lights"
    for name, text in FILES.items():
        (town / name).parent.mkdir(parents=True, exist_ok=True)
        (town / name).write_text(text)
    checked = here("--city", str(town), "config", "check")
    assert checked.code == 0, checked.err
    assert here("init", str(town)).code == 0
    try:
        started = lamp("daemon", "start", cwd=town, env={"LAMP_API_PORT": "0"})
        assert started.code == 0, started.err
        _starts(town)
        _sweeps(town)
        _cooks_and_drains(town)
    finally:
        lamp("stop", cwd=town)


def _starts(town: Path) -> None:
    """Agents of the city, its fragment and its topologies run; what a patch suspends does not; prompts are rendered."""
    until(lambda: {"mayor", "clerk", "deacon"} <= running(town), lambda: lamp("agent", "list", cwd=town).out)
    assert "dog" not in running(town)
    for prompt in (town / "prompt.mayor", town / "prompt.deacon"):  # each is one write, after the file was made
        until(lambda prompt=prompt: prompt.exists() and prompt.stat().st_size > 0, lambda: "no prompt")
    mayor, deacon = (town / "prompt.mayor").read_text(), (town / "prompt.deacon").read_text()
    assert f"You are mayor of {town}. Run " in mayor
    assert "Deacon: this {{is not a template" in deacon
    assert (town / "NOTES.md").read_text() == "overlaid\n"


def _sweeps(town: Path) -> None:
    """The maintenance script, which calls `gc` and `bd`, has run; the one that is skipped has not."""
    until(lambda: bool(ended(town, "sweep")), lambda: lamp("run", "list", cwd=town).out)
    (run,) = ended(town, "sweep")
    assert run["state"] == "succeeded", run
    assert "swept " in run["output_tail"]
    assert ended(town, "noisy-sweep") == []
    swept = [one for one in asked(town, "bead", "list", "--label", "swept") if one["title"] == "Swept"]
    assert [(one["status"], sorted(one["labels"])) for one in swept] == [("closed", ["done", "swept"])]
    assert "SWEEP" in lamp("mail", "inbox", "mayor", cwd=town).out


def _cooks_and_drains(town: Path) -> None:
    """An event cooks a wisp for the rig's pool; an instance starts, works it off by `bd`, drains; it is collected."""
    assert lamp("event", "emit", "shop.wanted", cwd=town).code == 0
    until(lambda: bool(ended(town, "build:rig:storefront")), lambda: lamp("status", cwd=town).out)
    (run,) = ended(town, "build:rig:storefront")
    assert (run["state"], run["reason"]) == ("succeeded", "wisp_closed")
    assert (town / "started").read_text().split()[1] == "storefront"
    assert "in storefront, web." in next(town.glob("prompt.coder*")).read_text()
    until(lambda: not any("coder" in name for name in running(town)), lambda: lamp("agent", "list", cwd=town).out)
    until(lambda: asked(town, "bead", "list", "--label", f"run:{run['id']}") == [], lambda: "not collected")


def running(town: Path) -> set[str]:
    return {one["name"] for one in asked(town, "agent", "list") if one["state"] == "running"}


def ended(town: Path, automation: str) -> list[dict[str, Any]]:
    runs = [one for one in asked(town, "run", "list") if one["automation"] == automation]
    return [one for one in runs if one["ended_at"] is not None]


def asked(town: Path, *words: str) -> Any:
    said = here("--city", str(town), *words, "--json")
    assert said.code == 0, said.err
    return json.loads(said.out)
