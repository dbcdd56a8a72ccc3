"""The page on presets tells what is so: it is made from the presets and from what real runs were seen to do."""

import json
import runpy
from pathlib import Path

from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.sessions.presets.model import Mode

ROOT = Path(__file__).parents[2]
SEEN = json.loads((ROOT / "tests/agents/seen.json").read_text())


def test_the_page_is_the_one_that_its_script_writes() -> None:
    page = runpy.run_path(str(ROOT / "docs/write_presets.py"))["page"]
    assert (ROOT / "docs/reference/presets.md").read_text() == page(), "python docs/write_presets.py writes it"


def test_every_mode_that_a_preset_offers_was_seen_to_complete() -> None:
    for name, saw in SEEN.items():
        assert saw["modes"] == [mode.value for mode in Mode if mode not in PRESETS[name].refuses], name


def test_every_preset_that_counts_as_tried_was_seen() -> None:
    tried = {name for name, preset in PRESETS.items() if preset.tried and not preset.no_runs and name != "shell"}
    assert set(SEEN) == tried


def test_what_was_seen_was_seen_of_the_versions_that_the_tests_install() -> None:
    packages = json.loads((ROOT / "tests/agents/package.json").read_text())["dependencies"]
    hands = (ROOT / "tests/agents/openhands.txt").read_text().strip().partition("==")[2]
    assert {saw["version"] for saw in SEEN.values()} <= {*packages.values(), hands}
