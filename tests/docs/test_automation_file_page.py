"""The page about `automation.toml` knows every key, and its examples load."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from lamplighter.domain.automations.decode import Origin, decode_file
from lamplighter.domain.automations.decode_triggers import TRIGGER_KEYS, Cadence
from lamplighter.domain.automations.layers import OVERRIDABLE
from lamplighter.domain.automations.model import AgentAction, Automation, Mode, Strategy, TriggerKind
from lamplighter.domain.automations.policies import Budget, CatchUp, CatchUpMode, Notify, Overlap, Policies, Retry
from lamplighter.kit.cron import MACROS

PAGE = (Path(__file__).parents[2] / "docs/reference/automation-file.md").read_text()
KEYS = {
    *TRIGGER_KEYS, *OVERRIDABLE, *TriggerKind, *Cadence, *Mode, *Strategy, *CatchUpMode, *Overlap, *MACROS,
    *(one.name for kind in (AgentAction, Policies, CatchUp, Retry, Budget, Notify) for one in fields(kind)),
    "description", "exec", "formula", "agent", "pool", "vars", "id",
}  # fmt: skip


@pytest.mark.parametrize("key", sorted(KEYS))
def test_every_key_and_value_is_on_the_page(key: str) -> None:
    assert re.search(rf"(?<![\w@]){re.escape(key)}(?!\w)", PAGE)


@pytest.mark.parametrize("example", re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
def test_every_example_on_the_page_loads(example: str) -> None:
    assert isinstance(decode_file(tomllib.loads(example), Origin("file", "example")), Automation)
