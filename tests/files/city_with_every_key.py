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
stuck_after = 5
[limits]
runs = 9
per_rig = 4
per_preset = 5
per_login = 2
memory = 512
rigs = { shop = 2 }
presets = { claude = 3 }
[oidc]
issuer = "https://accounts.example.org"
client_id = "town"
client_secret = "secret:OIDC"
domains = ["example.org"]
[budget]
day_cost = 2.5
day_tokens = 100000
day_time = "5h"
[artifacts]
url = "s3://bucket/prefix"
[notifications]
to = ["team", "none"]
on = ["failed"]
after = 3
recovery = false
quiet_hours = "22:00-07:00"
quiet_zone = "Europe/Berlin"
slack_channel = "C0123456789"
[[notifications.destinations]]
name = "team"
kind = "webhook"
url = "https://hooks.example.org/lamp"
signing_env = "TEAM_SECRET"
after = 2
[[notifications.destinations]]
name = "both"
kind = "webhook"
url = "https://hooks.example.org/both"
signing = ["secret:NEW", "secret:OLD"]
allow_private = true
[[notifications.destinations]]
name = "post"
kind = "email"
host = "mail.example.org"
port = 2525
security = "tls"
user = "lamp"
password = "secret:MAIL"
sender = "lamp@example.org"
recipients = ["ada@example.org"]
[[notifications.destinations]]
name = "phone"
kind = "ntfy"
url = "https://ntfy.example.org"
topic = "town"
token = "secret:PHONE"
priority = 5
[[notifications.destinations]]
name = "chat"
kind = "apprise"
service = "secret:CHAT"
[[notifications.destinations]]
name = "desk"
kind = "command"
command = "cat"
[[notifications.destinations]]
name = "ops"
kind = "slack_channel"
channel = "C0123456780"
team = "T0123456789"
[[notifications.destinations]]
name = "ann"
kind = "slack_dm_user"
user = "U0123456789"
[retention]
deliveries = "14d"
bulk_actions = "30d"
runs = "12w"
artifacts = "30d"
trigger_events = "2w"
events = "0"
outbox = "1d"
inbox = "30d"
worktrees_mb = 5000
notices = "7d"
rollups = "52w"

[beads]
provider = "exec:beads.sh"
[session]
provider = "tmux"
gc_fronts = "always"
permission_wait = "9s"
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
drift_timeout = "2m"
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
resume = "always"
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
[rigs.workspace]
setup = "make deps"
setup_timeout = "5m"
teardown = "make clean"
teardown_timeout = "1m"
copy = [".env"]
cache = ["node_modules"]
ports = 4
from_repository = true
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
resume = "never"
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
effort = "high"
home = "homes/night"
fallback_preset = "codex"
fallback_model = "small"
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
resume = "never"
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
