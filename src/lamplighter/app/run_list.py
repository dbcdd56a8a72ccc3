"""What `lamp run list` shows; separate from the other commands about runs, so that it loads little."""

from typing import Any

from lamplighter.app.wiring import OpenCity
from lamplighter.domain.runs.model import RunState
from lamplighter.services.runs.shapes import as_json, page


def listed(
    city: OpenCity, *, automation: str | None, state: str | None, before: str | None, limit: int
) -> list[dict[str, Any]]:
    """Raises AutomationUnknown if no run matches and the automation does not exist."""
    wanted = None if state is None else RunState(state)
    found = city.store.read(page, automation=automation, state=wanted, before=before, limit=limit)
    if not found and automation is not None:
        from lamplighter.services.automations import editing

        city.store.read(editing.get, automation)
    return [as_json(row) for row in found]
