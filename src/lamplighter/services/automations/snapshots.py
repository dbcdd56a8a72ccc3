"""Converting definitions to stored text and back; decoding is cached, because many firings share one definition."""

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
    """Raises ValueError for a definition that this version of the program cannot read."""
    return decode_snapshot(json.loads(text))


def shape_of(row: AutomationRow) -> Mapping[str, Any]:
    """The definition as a run keeps it; the object is shared and must not be changed."""
    return json_text.read(row.definition or "{}")


def side_by_side(row: AutomationRow) -> bool:
    """Whether runs are independent: none waits for another (overlap allowed), and none moves a `quiet_after` alarm."""
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
