"""The table of agents, which `lamp agent list` and `lamp status` show."""

from typing import Any

from lamplighter.cli import output, words
from lamplighter.cli.output import Col

COLUMNS = {
    "NAME": "name", "STATE": Col("state", "state"), "REASON": "reason", "SINCE": Col("since", "when"),
    "STARTS": Col("starts_in_window", "number", spare=1), "PID": Col("pid", "number", spare=2),
    "SESSION": Col("session_differs", spare=3),
}  # fmt: skip


def shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows for people: the end of a quarantine beside its reason; unchanged for JSON."""
    return rows if output.wants_json() else [_shown(row) for row in rows]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    until = words.moment(row.get("quarantined_until"))
    parts = [words.reason(row["reason"], row["state"]), f"until {words.clock(until)}" if until else ""]
    session = row.get("session") or ""
    return row | {
        "reason": "; ".join(part for part in parts if part),
        "starts_in_window": row.get("starts_in_window") or None,
        "session_differs": "" if session.endswith(row["name"].rpartition("/")[2]) else session,
    }
