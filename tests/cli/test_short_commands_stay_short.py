"""Surfaces are heavy; a command that needs none of them loads none of them."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("mcp", "mcp_types", "starlette", "uvicorn", "httpx", "pydantic", "obstore", "asyncio")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["event", "list"], ["bead", "ready"]])
def test_a_short_command_loads_no_surface(tmp_path: Path, arguments: list[str]) -> None:
    program = (
        "import sys; from lamplighter.cli.main import run\n"
        f"run(['init', {str(tmp_path)!r}, '--name', 'town'])\n"
        f"for name in {HEAVY!r}: sys.modules.pop(name, None)\n"
        f"run(['--city', {str(tmp_path)!r}, *{arguments!r}])\n"
        f"print('loaded', *[name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "loaded"
