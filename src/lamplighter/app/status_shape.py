"""The shape of `lamp status --json`: what is said of a controller that does not run, and the order of the parts."""

from typing import Any

DOWN: dict[str, Any] = {
    "running": False,
    "pid": None,
    "since": None,
    "last_tick_at": None,
    "api": None,
    "config_error": None,
    "descriptors": None,
    "problems": {},
    "died_at": None,
}
_ORDER = (
    "city", "root", "paused", "suspended", "controller", "agents", "nodes", "runs", "attention", "next", "under_way",
    "failures", "beads", "store", "last_event", "logins",
)  # fmt: skip


def in_order(parts: dict[str, Any]) -> dict[str, Any]:
    return {key: parts[key] for key in _ORDER}
