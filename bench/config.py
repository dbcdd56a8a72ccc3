"""Loads a city of 500 agents in 50 rigs with topologies; prints one JSON line with the median time."""

import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from lamplighter.adapters.files.layers import load_city

RIGS, AGENTS_PER_TOPOLOGY, TOPOLOGIES, REPEATS = 50, 9, 5, 9

AGENT = """
[[agents]]
name = "{name}"
{dir}prompt_template = "prompts/{name}.md"
nudge = "Check your hook."
idle_timeout = "1h"
env = {{ TEAM = "web", LEVEL = "{name}" }}
pre_start = ["{{{{.ConfigDir}}}}/prepare.sh {{{{.WorkDir}}}} {{{{.Agent}}}}"]
[agents.pool]
min = 0
max = 4
drain_timeout = "10m"
"""


def build(root: Path) -> None:
    for number in range(TOPOLOGIES):
        pack = root / "packs" / f"pack{number}"
        (pack / "prompts").mkdir(parents=True)
        names = [f"worker{index}" for index in range(AGENTS_PER_TOPOLOGY)]
        for name in names:
            (pack / "prompts" / f"{name}.md").write_text("You are {{.AgentName}} in {{.RigName}}.\n")
        agents = "".join(AGENT.format(name=name, dir="") for name in names)
        (pack / "topology.toml").write_text(f'[topology]\nname = "pack{number}"\nschema = 1\n{agents}')
    (root / "prompts").mkdir()
    (root / "prompts" / "lead.md").write_text("Lead {{.RigName}}.\n")
    city = ['[workspace]\nname = "big"\nprovider = "claude"\n']
    for number in range(RIGS):
        city.append(
            f'[[rigs]]\nname = "rig{number}"\npath = "rigs/rig{number}"\nprefix = "r{number}"\n'
            f'topology = "packs/pack{number % TOPOLOGIES}"\n'
            f'[[rigs.overrides]]\nagent = "worker1"\nidle_timeout = "30m"\n'
        )
        city.append(AGENT.format(name="lead", dir=f'dir = "rig{number}"\n'))
    (root / "city.toml").write_text("\n".join(city))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        build(root)
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            loaded = load_city(root, env={"PATH": os.environ["PATH"]})
            times.append((time.perf_counter() - start) * 1000)
        print(
            json.dumps(
                {
                    "bench": "config",
                    "agents": len(loaded.city.agents),
                    "rigs": len(loaded.city.rigs),
                    "median_ms": round(statistics.median(times), 1),
                    "worst_ms": round(max(times), 1),
                    "goal_ms": 300,
                }
            )
        )


if __name__ == "__main__":
    main()
