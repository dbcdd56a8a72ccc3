"""A city on PostgreSQL with several directories, as several machines have it; and real workers in them."""

import shutil
import sys
from pathlib import Path

from lamplighter.testing.processes import Child, Children

LIT = "The lamps are lit"
AT_WORK = "A worker is at work"


def on_postgres(city: Path, url: str, more: str = "") -> None:
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[store]\nurl = "{url}"\n\n[api]\nport = 0\n{more}')


def checkout(city: Path, to: Path) -> Path:
    """What another machine needs of the city: its files, its id, its key; nothing of its state."""
    to.mkdir()
    for path in city.iterdir():
        if path.name != ".gc" and path.is_file():
            shutil.copy2(path, to / path.name)
    (to / ".gc").mkdir(mode=0o700)
    for name in ("city-id", "run.key"):
        if (city / ".gc" / name).exists():
            shutil.copy2(city / ".gc" / name, to / ".gc" / name)
    if (city / ".gc" / "formulas").is_dir():
        shutil.copytree(city / ".gc" / "formulas", to / ".gc" / "formulas")
    return to


def start(processes: Children, environment: dict[str, str], city: Path, *arguments: str, crash_at: str = "") -> Child:
    """`lamp worker` or `lamp up`; returns when it says that it works, or is gone."""
    env = environment | ({"LAMP_CRASH_AT": crash_at} if crash_at else {})
    child = processes.start(sys.executable, "-m", "lamplighter", *arguments, "--city", str(city), env=env)
    line = child.line()
    while line and not line.startswith((LIT, AT_WORK)):
        line = child.line()
    return child
