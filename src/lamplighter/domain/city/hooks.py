"""Hook files, which make agent programs call `lamp` at the start of a session, at each prompt and at each pause."""

import json
from pathlib import Path

from lamplighter.domain.city.model import Agent, City
from lamplighter.kit.records import record

PRIME = "lamp prime"
MAIL = "lamp mail check --inject"
WORK = "lamp hook --inject"
CLAUDE_SETTINGS = ".gc/settings.json"


@record
class HookFile:
    """Written only if no file exists at `path`; an existing file is never changed."""

    path: Path
    content: str


def hooks_of(city: City, agent: Agent, provider: str) -> tuple[str, ...]:
    """The programs whose hook files an agent needs; an agent that runs Claude Code always gets those of Claude Code."""
    named = city.workspace.install_agent_hooks if agent.install_agent_hooks is None else agent.install_agent_hooks
    return (*named, *(() if "claude" in named or provider != "claude" else ("claude",)))


def are_installed(city: City, agent: Agent, provider: str) -> bool:
    """Whether the program will call `lamp prime` by itself."""
    if agent.hooks_installed is not None:
        return agent.hooks_installed
    return provider in hooks_of(city, agent, provider)


def hook_files(names: tuple[str, ...], city_root: Path, work_dir: Path) -> tuple[HookFile, ...]:
    places = {
        "claude": (city_root / CLAUDE_SETTINGS, _claude),
        "gemini": (work_dir / ".gemini/settings.json", _gemini),
        "opencode": (work_dir / ".opencode/plugins/lamplighter.js", lambda: _OPENCODE),
        "copilot": (work_dir / ".github/copilot-instructions.md", lambda: _COPILOT),
    }
    chosen = [places[name] for name in dict.fromkeys(names) if name in places]
    return tuple(HookFile(path, content()) for path, content in chosen)


def _calls(*commands: str) -> list[dict[str, object]]:
    return [{"hooks": [{"type": "command", "command": command} for command in commands]}]


def _claude() -> str:
    hooks = {
        "SessionStart": _calls(PRIME),
        "PreCompact": _calls(PRIME),
        "UserPromptSubmit": _calls(MAIL),
        "Stop": _calls(WORK),
    }
    return json.dumps({"hooks": hooks}, indent=2) + "\n"


def _gemini() -> str:
    hooks = {
        "SessionStart": _calls(PRIME),
        "PreCompress": _calls(PRIME),
        "BeforeAgent": _calls(MAIL),
        "AfterAgent": _calls(WORK),
    }
    return json.dumps({"hooks": hooks}, indent=2) + "\n"


_OPENCODE = f"""\
// Tells this agent who it is when a session begins, and what waits for it when it pauses.
export const Lamplighter = async ({{ $, client }}) => {{
  const say = async (sessionID, command) => {{
    const text = await $`sh -c ${{command}}`.nothrow().text()
    if (text.trim()) {{
      const body = {{ noReply: true, parts: [{{ type: "text", text }}] }}
      await client.session.prompt({{ path: {{ id: sessionID }}, body }})
    }}
  }}
  return {{
    event: async ({{ event }}) => {{
      if (event.type === "session.created") await say(event.properties.info.id, "{PRIME}")
      if (event.type === "session.compacted") await say(event.properties.sessionID, "{PRIME}")
      if (event.type === "session.idle") await say(event.properties.sessionID, "{MAIL}; {WORK}")
    }},
  }}
}}
"""

_COPILOT = f"""\
# How to work here

You are one of the agents of a city that Lamplighter looks after.

- At the start of a session run `{PRIME}` and follow what it prints.
- Before you take up something new run `lamp mail check` and `lamp hook`: mail first, then the work on your hook.
- When your work is done run `lamp hook` again. If there is more, go on without asking.
"""
