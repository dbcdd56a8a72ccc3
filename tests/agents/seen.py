"""What runs of the real programs were seen to do: kept in `seen.json`, from which the page on presets is made.

A test that sees something else than is kept there fails; with WRITE_SEEN=1 it writes what it saw.
"""

import json
import os
from pathlib import Path
from typing import Any

from lamplighter.domain.sessions.presets.model import Mode

FILE = Path(__file__).with_name("seen.json")
PACKAGES = {
    "claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "goose": "@aaif/goose-binary-linux-x64",
    "opencode": "opencode-ai", "gemini": "@google/gemini-cli", "qwen": "@qwen-code/qwen-code",
    "copilot": "@github/copilot", "cline": "cline",
}  # fmt: skip


def kept() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found


def version(name: str) -> str:
    """The version that is installed for the tests."""
    if name == "openhands":
        return FILE.with_name("openhands.txt").read_text().strip().partition("==")[2]
    packages = json.loads(FILE.with_name("package.json").read_text())["dependencies"]
    return str(packages[PACKAGES[name]])


def check_mode(name: str, mode: str) -> None:
    """That a run in this mode completed."""
    known = kept().get(name, {}).get("modes", [])
    check(name, modes=[one for one in Mode if one in {*known, mode}] if os.environ.get("WRITE_SEEN") else known)
    assert mode in kept()[name]["modes"], "WRITE_SEEN=1 keeps what was seen"


def check(name: str, **saw: Any) -> None:
    """Compare what a test saw of a program with what is kept, or keep it."""
    now = {"version": version(name), **saw}
    known = kept()
    if os.environ.get("WRITE_SEEN"):
        known[name] = known.get(name, {}) | now
        FILE.write_text(json.dumps(dict(sorted(known.items())), indent=2) + "\n")
    else:
        assert {key: known.get(name, {}).get(key) for key in now} == now, "WRITE_SEEN=1 keeps what was seen"
