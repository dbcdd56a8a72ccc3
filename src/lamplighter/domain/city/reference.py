"""Generates the reference page of the configuration from the model."""

from collections.abc import Iterator
from datetime import timedelta

from lamplighter.domain.city.environment import variables
from lamplighter.domain.city.keys import Key, Shape, keys_of
from lamplighter.domain.city.model import City, TopologyFile
from lamplighter.domain.city.presets import builtin_providers
from lamplighter.kit.durations import format_duration

_NESTED = frozenset({Shape.TABLE, Shape.ROWS, Shape.NAMED})

_HEAD = """# Configuration

<!-- Written by `python docs/write_configuration.py` from the model; a test compares the two. -->

A city is a directory with a `city.toml`. Other files join it: those named in `include`, and topologies. Unknown keys,
values of the wrong kind and names that lead nowhere are errors; all of them are told at once, each with its file, key
and line. `lamp config check` looks, `lamp config show` prints the whole, `lamp config explain KEY` names the layer,
file and line that set a value.

Durations are texts such as `90s`, `1h30m` or `7d` (units `ns us ms s m h d w`). Paths beginning with `//` start at the
city's directory; other relative paths of an agent start where its file is.

Every plain key outside a list can be set in the environment as `LAMP_<SECTION>_<KEY>`, which wins over every file:
`LAMP_API_PORT=0`. A variable that begins with `LAMP_` and is no name we know has no effect, and is told, with the
nearest one that we do know, by `lamp config check`, `lamp doctor` and at the start. Secrets come only from the
environment or the encrypted store, never from a file. The names of Gas City work too:

{aliases}.
"""

_FOOT = """
## How files join

The root file comes first, then each `include` in order, then files named on the command line. Agents, rigs,
configurations and patches gather; `workspace`, `providers`, `automations` and the other sections are joined key by
key; `beads`, `dolt`, `formulas`, `daemon`, `session`, `mail` and `events` are replaced whole. A value that loses is a
warning, and `--strict` makes warnings errors. Then come topologies of the city (before its own agents), patches, and
topologies of rigs with their overrides. An empty list in a patch or an override changes nothing.

Formulas and automations are looked up in layers, low to high: `.gc/system-formulas`, topologies of the city,
`formulas.dir`, topologies of the rig, the rig's `formulas_dir`. Automations are also read from `automations/` beside
`city.toml`, a layer just below `formulas.dir`.

## Retention

Records older than their span in `[retention]` are pruned in small batches, every tenth of the shortest span that is
set and at least hourly. What is under way or still to be read is kept. A run goes with its timeline, sessions,
transcripts and tracking bead; sessions and starts of agents follow `events`, the record of side effects follows
`runs`. Beads, automations and configurations are kept until somebody deletes them; closed wisps go after
`daemon.wisp_ttl`.

## Templates

`dir` knows {{.Agent}}, {{.Rig}}, {{.CityRoot}} and {{.CityName}}. `start_command`, `pre_start` and `session_setup` know
{{.Session}}, {{.Agent}}, {{.Rig}}, {{.CityRoot}}, {{.CityName}}, {{.WorkDir}} and {{.ConfigDir}}, the directory of the
file that declares the agent. A prompt knows {{.CityRoot}}, {{.AgentName}}, {{.TemplateName}}, {{.RigName}},
{{.WorkDir}}, {{.IssuePrefix}}, {{.Branch}}, {{.DefaultBranch}}, {{.WorkQuery}}, {{.SlingQuery}} and every variable of
the agent's `env`; the functions `cmd`, `session` and `basename`; and the templates defined beside it in
`shared/*.md.tmpl`. A prompt that cannot be rendered is a warning; the agent gets it as it is written.
"""


def reference() -> str:
    aliases = ", ".join(f"`{name}`" for name in variables() if name.startswith("GC_"))
    parts = [_HEAD.replace("{aliases}", aliases), *_sections(City, ()), *_presets(), _FOOT]
    parts += ["\n## topology.toml\n", *_sections(TopologyFile, ())]
    return "".join(parts)


def _sections(section: type, path: tuple[str, ...]) -> Iterator[str]:
    keys = keys_of(section)
    plain = [key for key in keys.values() if key.shape not in _NESTED]
    if plain:
        yield "\n| key | kind | default | meaning |\n|---|---|---|---|\n"
        yield from (_row(key) for key in plain)
    for key in keys.values():
        if key.shape in _NESTED and key.holds is not None:
            here = (*path, key.name)
            yield f"\n{'#' * min(len(here) + 1, 5)} `{_header(key, here)}`\n\n{key.doc}\n"
            yield from _sections(key.holds, here)


def _header(key: Key, path: tuple[str, ...]) -> str:
    name = ".".join(path)
    match key.shape:
        case Shape.ROWS:
            return f"[[{name}]]"
        case Shape.NAMED:
            return f"[{name}.<name>]"
        case _:
            return f"[{name}]"


def _row(key: Key) -> str:
    return f"| `{key.name}` | {key.shape} | {_default(key)} | {key.doc.replace('|', '&#124;')} |\n"


def _default(key: Key) -> str:
    if key.required:
        return "required"
    match key.default:
        case None | "":
            return ""
        case bool():
            return f"`{str(key.default).lower()}`"
        case timedelta():
            return f"`{format_duration(key.default)}`"
        case tuple() | dict():
            return ", ".join(f"`{item}`" for item in key.default)
        case _:
            return f"`{key.default}`"


def _presets() -> Iterator[str]:
    yield "\n## Built-in providers\n\n| name | command | prompt |\n|---|---|---|\n"
    for name, provider in builtin_providers.items():
        yield f"| `{name}` | `{' '.join((provider.command, *provider.args))}` | {provider.prompt_mode} |\n"
