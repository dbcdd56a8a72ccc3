# ruff: noqa: E501, RUF001, INP001  tables and dashes of the page; a script, not a package
"""Writes the reference page of the presets from the presets and from what runs of the real programs were seen to do."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lamplighter.domain.sessions.presets.catalogue import DETECTED, PRESETS
from lamplighter.domain.sessions.presets.model import Counts, Mode, Preset

HERE = Path(__file__).parent
SEEN = HERE.parent / "tests" / "agents" / "seen.json"

BEGINNING = """# Presets

A preset knows one agent program: its command lines, its questions, the signs that it is ready, how a session goes on, and
how to read its output. `provider = "NAME"` on an agent or in `[workspace]` picks one. Without it the first program found
on `PATH` is used, in this order: {order}. `shell` is used only when named, and a run never picks aider.

## What was seen

Each program was run against a model that follows a script: in every mode twice in the same home directory, and two runs
at once in one home and two cities on it; with a login that is refused, which works again, and with a limit that is
reached. As agents on tmux they were killed and started again. The table tells what these runs did. Programs without a version
were not run; their command lines are from their documentation and help.
"""

MIDDLE = """
- **modes** are those in which a run can complete without a person. Any other is refused before the run starts, as
  `failed(mode_not_offered)`, with the reason below.
- **tells** is what the program reports of its use. A budget by something it does not tell is refused before the run
  starts, as `failed(budget_not_counted)`; `budget.time` always works. Most programs tell it only when
  their turn ends, so that a turn may use more than the budget of its run before that is noticed; opencode tells it after
  each step.
- **goes on with its conversation** is about agents: when the program is started again, after a crash, a restart, or a
  restart of the daemon or the machine, it has the conversation that it had
  ([Health patrol](../explanation/health-patrol.md)). The others begin anew.
- **effort**: `effort` is mapped to the program's own words; for the others it is refused, as `failed(effort_not_offered)`.
- **login refused**: `seen` where a run was seen to end as `failed(login)`; for the others only words that all programs have in common are recognised; `asked before`: the program is asked for its login before its first run.
- **limit told**: a run was seen to end as `failed(provider_limit)` with the time at which the limit is lifted
  ([Logins and limits](../explanation/logins-and-limits.md)).
- Exit status 0 says nothing about a run's success with any of them; only the completion counts.

## Modes that are not offered
"""

END = """
## How they are started

| preset | headless | full access | plan | tools of a run | goes on by |
|---|---|---|---|---|---|
| claude | `claude -p` | `--dangerously-skip-permissions` | `--permission-mode plan` | `--mcp-config` file | `--resume ID` |
| codex | `codex exec --json` | `--dangerously-bypass-approvals-and-sandbox` | `--sandbox read-only` | `-c mcp_servers…`, token by variable | `exec resume ID` |
| gemini | `gemini --prompt=` | `--approval-mode yolo` | `--approval-mode plan` | a settings folder of the run's own, `--policy` file | `--resume ID` |
| qwen | `qwen --prompt=` | `--approval-mode yolo` | `--approval-mode plan` | `--mcp-config` file | `--resume ID` |
| opencode | `opencode run --format json` | `--auto` | `--agent plan` | settings by variable | `--session ID` |
| goose | `goose run --recipe` | `GOOSE_MODE=auto` | – | in the recipe, token by variable | `--resume --name NAME` |
| copilot | `copilot --prompt=` | `--allow-all` | `--plan` | `--additional-mcp-config` file | `--resume=ID` |
| cline | `cline --json` | `--auto-approve true` | `--plan` | `CLINE_MCP_SETTINGS_PATH` file | – |
| openhands | `openhands --headless --json` | always | – | a settings folder of the run's own | `--resume ID` |
| cursor-agent | `cursor-agent --print` | `--force` | `--mode=plan` | `.cursor/mcp.json` | `--resume=ID` |
| amp | `amp --execute=` | a setting | – | `--mcp-config` file | `threads continue ID` |
| aider | no runs | `--yes-always` | `--chat-mode ask` | – | – |
| shell | `sh -c` | always | – | – | – |

The token of a run is never on a command line: it is in a file of mode 0600 in the run's own folder, which is removed when
the run has ended, or in a variable. Only cursor-agent reads its tools from a file of the project; the entry is put over an
old one and taken out when the run has ended.

- **claude** on a fresh home asks three questions with No preselected; their answers are merged into `~/.claude.json`.
  As root, full access needs `IS_SANDBOX=1`, which is set then.
- **codex** is told to wait for its tools (`required`), and not to leave an app server behind.
- **gemini** and **openhands** read all their settings from one folder. A run gets a folder of its own in which everything
  is a link to yours (`~/.gemini`, `~/.openhands`, or the one that `GEMINI_CLI_HOME` or `OPENHANDS_PERSISTENCE_DIR` names),
  so that logins and conversations are shared; only the file with the servers is the run's own, made from yours.
- **opencode**: settings of yours in `OPENCODE_CONFIG_CONTENT` are kept; those of the run are put over them. It makes its
  database at its first start: two first runs at once in a home that it was never started in can fail with
  `database is locked`; start it there once before.
- **cline**: servers of yours in the file that `CLINE_MCP_SETTINGS_PATH` names are kept in runs; without it, runs have the
  tools of the run only.
- **goose** names no session id, so sessions are named by Lamplighter. `GOOSE_MODE` in a configuration's `env` is refused
  for runs, because `mode` decides. Braces in a prompt are parted (`{ {`), for recipes are templates. Only its log says that it
  waits for its model, so a run has a state home of its own (`XDG_STATE_HOME`), in which all but that log is a link to yours.
- **aider** is told `--no-git` outside a repository, where it would make one.

## Transcript

Output becomes events: `text`, `tool_started`, `tool_ended`, `turn_ended`, `error`, `usage`. Pieces of an answer are joined
into one `text`. Lines that are not the program's own JSON are passed over; programs whose output is text have it kept line
by line, without colours and other codes of the terminal. Usage is told in parts, to be summed.

## A program of your own

`[providers.NAME]` declares one: `command args prompt_mode (arg, flag, none) prompt_flag ready_delay_ms ready_prompt_prefix
process_names emits_permission_warning env`. It stands alone, also where it has the name of a preset. Its output is text.
[A program of your own](../how-to/a-program-of-your-own.md) tells what reaches it and how it completes a run.
"""


def page() -> str:
    seen: dict[str, dict[str, Any]] = json.loads(SEEN.read_text())
    named = {name: preset for name, preset in PRESETS.items() if name == preset.name}
    rows = [
        "| preset | program | version | modes | tells | two at once | goes on with its conversation | effort | login refused | limit told |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    rows += [_row(preset, seen.get(name, {})) for name, preset in named.items() if not preset.no_runs]
    refused = [
        f"- **{name}**, `{mode}`: {reason}."
        for name, preset in named.items()
        for mode, reason in preset.refuses.items()
    ]
    refused += [
        f"- **{name}** does no runs at all: {preset.no_runs}." for name, preset in named.items() if preset.no_runs
    ]
    order = ", ".join(preset.name for preset in DETECTED)
    signs = [f"- **{name}**: {preset.login.sign_in}" for name, preset in named.items() if preset.login]
    signing = ["", "## How to sign in", "", *signs]
    return "\n".join([BEGINNING.format(order=order), *rows, MIDDLE, *refused, *signing, END])


def _row(preset: Preset, saw: Mapping[str, Any]) -> str:
    offered = [mode.value for mode in Mode if mode not in preset.refuses]
    modes = ", ".join(f"`{mode}`" for mode in (saw["modes"] if saw else offered))
    counted = Counts(saw.get("tells", preset.counts.value))
    tells = {Counts.NOTHING: "nothing", Counts.TOKENS: "tokens", Counts.COST: "tokens and cost"}[counted]
    twice = "yes" if saw.get("two_at_once") else "–"
    relit = "yes" if saw.get("relit") else "–"
    effort = "yes" if saw.get("effort") else "–"
    refused = "seen" if saw.get("login") else "–"
    refused += ", asked before" if preset.login and preset.login.ask else ""
    limit = "seen" if saw.get("limit") else "–"
    row = [preset.name, preset.title, saw.get("version", "–"), modes, tells, twice, relit, effort, refused, limit]
    return f"| {' | '.join(row)} |"


if __name__ == "__main__":
    (HERE / "reference" / "presets.md").write_text(page())
