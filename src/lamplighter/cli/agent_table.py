"""The table of agents, which `lamp agent list` and `lamp status` show."""

from typing import Any

from lamplighter.cli import output

COLUMNS = {
    "NAME": "name", "STATE": "state", "REASON": "reason", "PID": "pid", "SINCE": "since_local",
    "STARTS": "starts_in_window", "SESSION": "session",
}  # fmt: skip


def shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows for people: times in the local zone, the end of a quarantine beside its reason; unchanged for JSON."""
    if output.wants_json():
        return rows
    found = []
    for row in rows:
        until = f"; until {output.local(row['quarantined_until'])}" if row.get("quarantined_until") else ""
        found.append(row | {"since_local": output.local(row["since"]), "reason": f"{row['reason']}{until}"})
    return found
