"""The environment of a session: variables passed on from its parent, declared variables, and its identity."""

from collections.abc import Mapping
from pathlib import Path

from lamplighter.domain.city.model import Agent, City
from lamplighter.domain.city.variables import rig_of

# A session gets the variables that programs need to work and to reach their models. Nothing else is passed on: the
# parent may itself be an agent, with GC_DRAIN and GC_AGENT, or the daemon, with GC_SESSION, LAMP_STORE_URL and keys.
PASSED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "TMPDIR",
     "SSH_AUTH_SOCK", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
     "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "GC_OTEL_METRICS_URL", "GC_OTEL_LOGS_URL",
     "GC_DOCKER_IMAGE"}
)  # fmt: skip
PASSED_PREFIXES = (
    "LC_", "XDG_", "OTEL_", "ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_", "CURSOR_", "COPILOT_",
    "AMP_", "OPENCODE_", "AWS_", "AZURE_", "VERTEX_", "GIT_AUTHOR_", "GIT_COMMITTER_", "GH_", "GITHUB_TOKEN",
)  # fmt: skip


def session_environment(
    city: City, agent: Agent, instance: str, *, parent: Mapping[str, str], preset: Mapping[str, str], work_dir: Path
) -> dict[str, str]:
    """Later wins: variables passed on from `parent`, the provider's, the agent's, the identity (as GC_ and LAMP_)."""
    return {**passed_on(parent), **preset, **agent.env, **identity(city, agent, instance, work_dir)}


def passed_on(parent: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in parent.items() if value and _passes(name)}


def identity(city: City, agent: Agent, instance: str, work_dir: Path) -> dict[str, str]:
    rig = rig_of(city, agent)
    own = {"AGENT": instance, "CITY": str(city.root), "DIR": str(work_dir)}
    if rig is not None:
        own["RIG"] = rig.name
    return {f"{family}_{name}": value for family in ("GC", "LAMP") for name, value in own.items()}


def _passes(name: str) -> bool:
    return name in PASSED or name.startswith(PASSED_PREFIXES)
