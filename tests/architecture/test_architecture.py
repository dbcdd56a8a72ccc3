"""What holds for the whole of the source: layers, where the clock and the environment are read, where SQL lives."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lamplighter

SOURCE = Path(lamplighter.__file__).parent
REPOSITORY = Path(__file__).resolve().parents[2]

CLOCKS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time", "time.time_ns"}
CLOCK_HOMES = {
    "kit/clock.py",
    "store/engine/datagrams.py",  # compares with the file system's times, which come from this clock and no other
}
ENVIRONMENT = {"os.environ", "os.getenv", "os.environb", "os.putenv"}
ENVIRONMENT_HOMES = {"app/settings.py"}
SQL = re.compile(r"^\s*(SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+TABLE)\b", re.DOTALL)
CHANCE = {"random.random", "random.choice", "random.randint", "uuid.uuid4", "random.shuffle", "random.uniform"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith("testing/"):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def test_every_variable_in_our_name_is_a_known_one() -> None:
    """Else whoever sets it is told that it has no effect."""
    from lamplighter.domain.city.environment import known_names

    found = {name for path in SOURCE.rglob("*.py") for name in re.findall(r"\bLAMP_[A-Z0-9_]+\b", path.read_text())}
    assert found - known_names() == set()


def attributes(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node), node.lineno


def uses(names: set[str], homes: set[str]) -> list[str]:
    return [
        f"{module}:{line} {found}"
        for module, tree in modules()
        if module not in homes
        for found, line in attributes(tree)
        if found in names or any(found.endswith("." + name) for name in names)
    ]


def test_every_event_that_the_product_emits_is_of_a_family_that_nobody_else_can_emit() -> None:
    from lamplighter.domain.events import PRODUCT_FAMILIES
    from lamplighter.services.table import TABLE

    other = {"lamplighter.app", "runs.taken", "runs.told", *TABLE}  # a module, wake-ups, operations
    files = (".json", ".target", ".sock", ".pid", ".db", ".md")
    found = {
        f"{module}:{node.lineno} {node.value}"
        for module, tree in modules()
        if module.startswith(("services/", "daemon/", "app/"))
        for logged in [logged_names(tree)]
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in logged
        if re.fullmatch(r"[a-z]+\.[a-z_]+", node.value) and node.value not in other and not node.value.endswith(files)
        if node.value.partition(".")[0] not in PRODUCT_FAMILIES
    }
    assert found == set()


def logged_names(tree: ast.Module) -> set[int]:
    """The first arguments of calls that log: they look like event types, and are none."""
    levels = {"debug", "info", "warning", "error"}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args)
    return {id(call.args[0]) for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in levels}


def test_the_layers_hold() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_only_the_clock_reads_the_clock() -> None:
    assert uses(CLOCKS, CLOCK_HOMES) == []


def test_only_the_settings_read_the_environment() -> None:
    assert uses(ENVIRONMENT, ENVIRONMENT_HOMES) == []


def test_chance_is_injected() -> None:
    assert uses(CHANCE, set()) == []


def test_sql_lives_in_the_store_only() -> None:
    found = [
        f"{module}:{node.lineno}"
        for module, tree in modules()
        if not module.startswith(("store/", "domain/sessions/presets/"))  # how other programs' own files are asked
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    ]
    assert found == []


def test_no_other_endless_loop_waits_outside_its_home() -> None:
    """`while True` around an await is the loop's and the supervisor's alone; followers end with their reader."""
    homes = {"kit/loop.py", "kit/supervise.py", "services/event_tail.py"}
    found = [
        f"{module}:{node.lineno}"
        for module, tree in modules()
        if module not in homes
        for node in ast.walk(tree)
        if isinstance(node, ast.While)
        and isinstance(node.test, ast.Constant)
        and any(isinstance(inner, ast.Await) for inner in ast.walk(node))
    ]
    assert found == []


def calls_of(name: str) -> set[str]:
    """The modules that call a function or method of that name."""
    return {
        module
        for module, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(name)
    }


def test_a_run_becomes_running_in_one_place_and_ends_in_one_place() -> None:
    running = {
        module
        for module, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "move" and "RunState.RUNNING" in ast.unparse(node)
    }
    assert running == {"services/runs/workers.py"}
    assert calls_of("tx.runs.end") == {"services/runs/ending.py"}
    stages = {"services/runs/workers.py", "services/runs/ending.py", "services/runs/enriching.py"}
    movers = stages | {"services/runs/people.py"}  # who resolves a run that has ended
    assert {module for module in calls_of("move") if module.startswith("services/runs/")} == movers


def test_no_circle_of_imports_runs_through_the_services() -> None:
    """Imports inside functions count: a circle that is opened only at run time is one all the same."""
    tool = REPOSITORY / "tools" / "import_measures.py"
    done = subprocess.run([sys.executable, tool, REPOSITORY], capture_output=True, text=True, check=True)
    circles = [circle for circle in json.loads(done.stdout)["cycles"] if any(".services." in name for name in circle)]
    assert circles == []


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("lamplighter.cli.main", {"asyncio", "structlog", "sqlite3", "psycopg", "tomlkit"}),
        ("lamplighter.cli.event", {"asyncio", "structlog", "psycopg", "tomlkit"}),
        ("lamplighter.app.stop_city", {"asyncio", "structlog", "psycopg", "tomlkit"}),
    ],
)
def test_short_commands_load_little(module: str, banned: set[str]) -> None:
    code = f"import sys, {module}; print(*[name for name in {sorted(banned)} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
