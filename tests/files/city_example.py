"""A city that uses most of what Gas City offers, as its users write it."""

CITY = """
include = ["env/prod.toml"]                 # fragments, merged in order

[workspace]
name = "bright-lights"
provider = "claude"
session_template = "gc-{{.City}}-{{.Agent}}"
install_agent_hooks = ["claude", "gemini"]
topologies = ["topologies/maintenance"]     # city-scoped agents + automations

[beads]
provider = "file"
[session]
provider = ""                               # tmux
[mail]
provider = ""
[events]
provider = ""

[daemon]
patrol_interval = "30s"
max_restarts = 5
restart_window = "1h"
shutdown_timeout = "10s"
wisp_gc_interval = "5m"
wisp_ttl = "24h"

[formulas]
dir = ".gc/formulas"

[automations]
skip = ["noisy-sweep"]
max_timeout = "5m"
[[automations.overrides]]
name = "db-health"
rig = "storefront"
interval = "15m"

[topologies.shared]
source = "SHARED"
ref = "v1.2.0"
path = "coding"

[providers.house-bot]
command = "house-bot"
args = ["--auto"]
prompt_mode = "arg"
process_names = ["house-bot"]
ready_delay_ms = 3000
env = { HOUSE_MODE = "agent" }

[[agents]]
name = "mayor"
prompt_template = "prompts/mayor.md.tmpl"
nudge = "Check mail and your hook."
idle_timeout = "1h"

[[agents]]
name = "coder"
dir = "storefront"                          # rig scope
provider = "house-bot"
pre_start = ["{{.ConfigDir}}/scripts/checkout.sh {{.WorkDir}} {{.Agent}}"]
session_setup = ["tmux set-option -t {{.Session}} status-right '{{.Agent}}'"]
overlay_dir = "overlays/coder"
env = { TEAM = "web" }
default_sling_formula = "mol-code"
[agents.pool]
min = 0
max = 4
check = "bd list --label=pool:storefront/coder --json | jq length"
drain_timeout = "10m"

[[rigs]]
name = "storefront"
path = "rigs/storefront"
prefix = "sf"
topology = "shared"
formulas_dir = "formulas/storefront"
default_sling_target = "storefront/coder"
[[rigs.overrides]]
agent = "reviewer"
idle_timeout = "30m"
pool = { max = 2 }

[[patches.agents]]
dir = ""
name = "dog"
suspended = true
[[patches.providers]]
name = "house-bot"
ready_delay_ms = 5000
"""

FILES = {
    "city.toml": CITY,
    "env/prod.toml": '[automations]\nskip = ["nightly"]\n\n[workspace]\nsuspended = true\n',
    "prompts/mayor.md.tmpl": "You are {{.AgentName}} in {{.CityRoot}}.\n",
    "topologies/maintenance/topology.toml": (
        '[topology]\nname = "maintenance"\nschema = 1\n\n[[agents]]\nname = "dog"\n'
    ),
    "overlays/coder/README.md": "hello\n",
}

SHARED = {
    "coding/topology.toml": (
        '[topology]\nname = "coding"\nschema = 1\n\n[[agents]]\nname = "reviewer"\n'
        'prompt_template = "prompts/reviewer.md"\n[agents.pool]\nmin = 1\nmax = 5\n'
    ),
    "coding/prompts/reviewer.md": "Review.\n",
}
