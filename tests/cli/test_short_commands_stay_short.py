"""Surfaces are heavy; a command that needs none of them loads none of them."""

import subprocess
import sys
from pathlib import Path

import pytest
from lamp_program import ENVIRONMENT, lamp

HEAVY = ("opentelemetry", "mcp", "mcp_types", "starlette", "uvicorn", "httpx2", "pydantic", "obstore", "asyncio")
# What a command about a running city, or about its records alone, does without: each costs as much as a bare python.
HEAVIER = (*HEAVY, "tomlkit", "structlog", "psycopg", "zoneinfo", "cronsim", "uvloop", "ssl", "logging", "difflib")
CONFIGURATION = ("lamplighter.domain.city", "lamplighter.domain.automations", "lamplighter.domain.sessions")


def loaded(arguments: list[str], names: tuple[str, ...]) -> list[str]:
    """Which of these modules a fresh process has loaded after it ran that command."""
    program = (
        "import sys; from lamplighter.cli.main import run\n"
        f"code = run({arguments!r})\n"
        f"print('loaded', code, *[name for name in {names!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=180, env=ENVIRONMENT
    )
    _, code, *found = done.stdout.splitlines()[-1].split()
    assert code == "0", done
    return found


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("town")
    assert lamp("init", str(root), "--name", "town", cwd=root).code == 0
    (root / "city.toml").write_text('[workspace]\nname = "town"\n[api]\nport = 0\n')
    return root


@pytest.mark.parametrize("arguments", [["--help"], ["event", "list"], ["bead", "ready"]])
def test_a_short_command_loads_no_surface(town: Path, arguments: list[str]) -> None:
    assert loaded(["--city", str(town), *arguments], HEAVY) == []


@pytest.mark.parametrize("arguments", [["run", "list"], ["version"], ["completion", "bash"]])
def test_a_command_about_records_alone_loads_no_configuration(town: Path, arguments: list[str]) -> None:
    assert loaded(["--city", str(town), *arguments], HEAVIER + CONFIGURATION) == []


def test_what_a_running_city_s_process_is_asked_loads_no_configuration_and_its_status_no_store_either(
    town: Path,
) -> None:
    assert lamp("daemon", "start", cwd=town).code == 0
    try:
        here = loaded(["--city", str(town), "status"], (*HEAVIER, *CONFIGURATION, "sqlite3", "tomllib"))
        running = lamp("status", "--json", cwd=town).json
        asked = [
            loaded(["--city", str(town), *words], (*HEAVIER, "lamplighter.domain.city"))
            for words in (["agent", "list"], ["rig", "list"], ["config", "show"])
        ]
    finally:
        assert lamp("stop", cwd=town).code == 0
    assert here == []
    assert asked == [[], [], []]
    stopped = lamp("status", "--json", cwd=town).json
    assert list(running) == list(stopped)
    assert (running["controller"]["running"], stopped["controller"]["running"]) == (True, False)


def test_the_status_of_a_stopped_city_loads_no_configuration_once_it_was_loaded(town: Path) -> None:
    assert lamp("status", cwd=town).code == 0
    assert loaded(["--city", str(town), "status"], (*HEAVIER, *CONFIGURATION, "tomllib", "socket", "hashlib")) == []
