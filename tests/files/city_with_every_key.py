"""A city, its fragment and its topology, in which every key there is stands once."""

CITY = """
include = ["more.toml"]

[workspace]
name = "everything"
provider = "claude"
start_command = "run-it"
suspended = false
session_template = "gc-{{.City}}-{{.Agent}}-{{.Dir}}-{{.Name}}"
install_agent_hooks = ["claude", "gemini", "opencode", "copilot"]
topology = "packs/first"
topologies = ["packs/second"]
timezone = "Europe/Berlin"
isolation = "none"

[store]
url = "postgresql://db.example.org/lamp"
[api]
host = "127.0.0.1"
port = 0
public_url = "https://lamp.example.org"
[workers]
enrich = 1
execute = 2
notify = 3
lost_after = "10m"
[runs]
deadline = "1h"
idle = "10m"
idle_timeout = "20m"
provider = "exec:scripts/run.sh"
isolation = "none"
[artifacts]
url = "s3://bucket/prefix"
[notifications]
slack_channel = "#lamps"
on = ["failed", "skipped"]
[retention]
runs = "12w"
artifacts = "30d"
trigger_events = "2w"
events = "0"
outbox = "1d"

[beads]
provider = "exec:beads.sh"
[session]
provider = "tmux"
[session.k8s]
namespace = "lamps"
image = "example/agent:1"
context = "c"
cpu_request = "1"
mem_request = "2Gi"
cpu_limit = "3"
mem_limit = "4Gi"
prebaked = true
[mail]
provider = "fake"
[events]
provider = "fail"
export = true
[dolt]
port = 3308
host = "db"
[formulas]
dir = "formulas"
[daemon]
patrol_interval = "15s"
max_restarts = 0
restart_window = "2h"
shutdown_timeout = "0s"
wisp_gc_interval = "5m"
wisp_ttl = "7d"
startup_grace = "1m"
strategy = "rest_for_one"
keep_quarantine = false

[automations]
skip = ["a"]
max_timeout = "5m"
[[automations.overrides]]
name = "db-health"
rig = "shop"
enabled = true
gate = "cron"
interval = "1m"
schedule = "0 3 * * *"
check = "true"
on = "bead.closed"
pool = "coder"
timeout = "1m"

[topologies.far]
source = "FAR"
ref = "main"
path = "pack"

[providers.bot]
display_name = "Bot"
command = "bot"
args = ["--auto"]
prompt_mode = "flag"
prompt_flag = "--prompt"
ready_delay_ms = 10
ready_prompt_prefix = "> "
process_names = ["bot"]
emits_permission_warning = true
env = { MODE = "x" }

[[agents]]
name = "mayor"
dir = ""
suspended = false
provider = "bot"
start_command = "bot --city {{.CityRoot}} {{.CityName}} {{.Session}} {{.Rig}}"
args = ["a"]
prompt_template = "prompts/mayor.md"
prompt_mode = "none"
prompt_flag = "-p"
nudge = "go"
env = { A = "b" }
ready_delay_ms = 1
ready_prompt_prefix = "$"
process_names = ["x"]
emits_permission_warning = false
work_query = "true"
sling_query = "true {}"
idle_timeout = "1h"
install_agent_hooks = []
hooks_installed = true
pre_start = ["true"]
session_setup = ["true"]
session_setup_script = "setup.sh"
overlay_dir = "overlay"
default_sling_formula = "f"
depends_on = ["coder"]
[agents.pool]
min = 1
max = 2
check = "echo 1"
drain_timeout = "0s"

[[rigs]]
name = "shop"
path = "rigs/shop"
prefix = "sh"
suspended = true
topology = "far"
topologies = ["packs/first"]
formulas_dir = "rig-formulas"
default_sling_target = "shop/reviewer"
[[rigs.overrides]]
agent = "reviewer"
dir = "shop"
suspended = true
pool = { min = 0, max = 1, check = "echo 0", drain_timeout = "1s" }
env = { X = "y" }
env_remove = ["Z"]
pre_start = ["a"]
prompt_template = "//prompts/mayor.md"
provider = "codex"
start_command = "x"
nudge = "n"
idle_timeout = "1s"
install_agent_hooks = ["claude"]
hooks_installed = false
session_setup = ["s"]
session_setup_script = "setup.sh"
overlay_dir = "o"
default_sling_formula = "g"

[[configurations]]
name = "web"
description = "The shop's front end."
rig = "shop"
preset = "claude"
model = "m"
mode = "plan"
env = { C = "d" }
[[configurations]]
name = "elsewhere"
path = "projects/x"
"""

MORE = """
[[patches.agents]]
name = "mayor"
dir = ""
suspended = true
pool = { min = 0, max = 1, check = "echo 0", drain_timeout = "1s" }
env = { X = "y" }
env_remove = ["A"]
pre_start = ["a"]
prompt_template = "prompts/mayor.md"
provider = "codex"
start_command = "x"
nudge = "n"
idle_timeout = "1s"
install_agent_hooks = ["claude"]
hooks_installed = false
session_setup = ["s"]
session_setup_script = "setup.sh"
overlay_dir = "o"
default_sling_formula = "g"
[[patches.rigs]]
name = "shop"
path = "rigs/other"
prefix = "so"
suspended = false
[[patches.providers]]
name = "bot"
command = "bot2"
args = ["x"]
prompt_mode = "arg"
prompt_flag = "-x"
ready_delay_ms = 2
env = { M = "n" }
env_remove = ["MODE"]
_replace = true
"""

FIRST = """
[topology]
name = "first"
schema = 1
version = "1"
requires_gc = ">=0"
city_agents = ["coder"]
includes = ["../base"]

[formulas]
dir = "formulas"

[providers.other]
command = "other"

[[agents]]
name = "coder"
"""

FILES = {
    "city.toml": CITY,
    "more.toml": MORE,
    "packs/first/topology.toml": FIRST,
    "packs/base/topology.toml": '[topology]\nname = "base"\nschema = 1\n',
    "packs/second/topology.toml": '[topology]\nname = "second"\nschema = 1\n',
    "prompts/mayor.md": "hello\n",
    "setup.sh": "true\n",
}

FAR = {"pack/topology.toml": '[topology]\nname = "far"\nschema = 1\n[[agents]]\nname = "reviewer"\n'}
