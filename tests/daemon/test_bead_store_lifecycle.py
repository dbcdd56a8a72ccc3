"""The bead store comes up before the city and goes down after it."""

import json
from pathlib import Path

from lamplighter.app.create import create_city
from lamplighter.app.open_beads import bead_store, close_beads, open_beads
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import open_city

SCRIPT = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
[ "$1" = shutdown ] && exit 2
exit 0
"""


def _settings(root: Path) -> Settings:
    return Settings(cwd=root, city=root, actor="test", run=None, env={"PATH": "/usr/bin:/bin"})


def test_a_script_is_readied_and_initialised_for_the_city_and_every_rig_and_shut_down(tmp_path: Path) -> None:
    root = tmp_path / "town"
    (root / "shop").mkdir(parents=True)
    script = tmp_path / "beads.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    (root / "city.toml").write_text(
        f'[workspace]\nname = "town"\n[beads]\nprovider = "exec:{script}"\n[[rigs]]\nname = "shop"\npath = "shop"\n'
    )
    create_city(root, _settings(root))
    city = open_city(_settings(root))
    open_beads(city)
    close_beads(city)
    city.close()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["ensure-ready", f"init {root} to", f"init {root}/shop sh", "shutdown"]


def test_a_bead_file_is_taken_over_once(tmp_path: Path) -> None:
    root = tmp_path / "town"
    root.mkdir()
    (root / "city.toml").write_text('[workspace]\nname = "town"\n[beads]\nprovider = "file"\n')
    create_city(root, _settings(root))
    bead = {"id": "gc-1", "title": "Old work", "status": "open", "type": "task", "created_at": "2026-01-01T00:00:00Z"}
    (root / ".gc" / "beads.json").write_text(json.dumps({"seq": 1, "beads": [bead]}))
    city = open_city(_settings(root))
    open_beads(city)
    open_beads(city)
    assert [entry.title for entry in bead_store(city).ready()] == ["Old work"]
    city.close()
