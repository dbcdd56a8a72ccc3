"""Definitions as text in the store and back; decoding is remembered, for many firings share one definition."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from lamplighter.domain.automations.decode import decode_snapshot
from lamplighter.domain.automations.model import Automation
from lamplighter.domain.automations.policies import Overlap
from lamplighter.domain.automations.shape import to_shape
from lamplighter.kit import json_text
from lamplighter.store.automations import AutomationRow


def written(automation: Automation) -> str:
    return json.dumps(to_shape(automation), sort_keys=True)


@lru_cache(maxsize=4096)
def read(text: str) -> Automation:
    """Raises ValueError for a definition that this program cannot read."""
    return decode_snapshot(json.loads(text))


def shape_of(row: AutomationRow) -> Mapping[str, Any]:
    """The definition as a run keeps it; shared, so nobody changes it."""
    return json_text.read(row.definition or "{}")


def side_by_side(row: AutomationRow) -> bool:
    """Whether its runs have nothing to do with each other: one neither waits for another nor moves its alarm."""
    try:
        policies = of_row(row).policies
    except ValueError:
        return False
    return policies.overlap is Overlap.ALLOW and policies.quiet_after is None


def of_row(row: AutomationRow) -> Automation:
    """Raises ValueError for a row without a readable definition."""
    if row.definition is None:
        raise ValueError("; ".join(row.problems) or "it has no definition")
    return read(row.definition)
