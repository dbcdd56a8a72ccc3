"""A bead store for `exec:`: every operation of the protocol over a locked `beads.json` in the working directory."""

import fcntl
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FILE = Path("beads.json")
LISTS = {"labels": "labels", "add_needs": "needs"}
REMOVALS = {"remove_labels": "labels", "remove_needs": "needs"}


class Refused(Exception):
    """An error told on standard error."""


def main(operation: str, *args: str) -> int:
    handler = OPERATIONS.get(operation)
    if handler is None:
        return 2
    with Path("beads.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        beads = json.loads(FILE.read_text()) if FILE.exists() else {}
        try:
            answer = handler(beads, *args)
        except Refused as refusal:
            print(refusal, file=sys.stderr)
            return 1
        FILE.with_suffix(".new").write_text(json.dumps(beads))
        FILE.with_suffix(".new").rename(FILE)
    if answer is not None:
        print(answer if isinstance(answer, str) else json.dumps(answer))
    return 0


def create(beads: Json) -> Any:
    return _add(beads, json.load(sys.stdin))


def get(beads: Json, bead: str) -> Any:
    if bead not in beads:
        raise Refused(f"bead {bead} not found")
    return beads[bead]


def update(beads: Json, bead: str) -> None:
    kept = get(beads, bead)
    for key, value in json.load(sys.stdin).items():
        if key in LISTS:
            kept[LISTS[key]] = sorted({*kept[LISTS[key]], *value})
        elif key in REMOVALS:
            kept[REMOVALS[key]] = [entry for entry in kept[REMOVALS[key]] if entry not in value]
        elif key == "remove_metadata":
            kept["metadata"] = {name: entry for name, entry in kept["metadata"].items() if name not in value}
        else:
            kept[key] = value
    if kept["status"] != "closed":
        kept["closed_at"] = None
    kept["updated_at"] = _now()


def claim(beads: Json, bead: str) -> Any:
    assignee = json.load(sys.stdin)["assignee"]
    kept = get(beads, bead)
    if kept["status"] != "open" or kept["assignee"] not in ("", assignee):
        raise Refused(f"bead {bead} is already claimed by {kept['assignee']}")
    kept.update(status="in_progress", assignee=assignee, updated_at=_now())
    return kept


def close(beads: Json, bead: str) -> None:
    kept = get(beads, bead)
    if kept["status"] != "closed":
        kept.update(status="closed", closed_at=_now(), updated_at=_now())


def everything(beads: Json) -> Any:
    return list(beads.values())


def ready(beads: Json) -> Any:
    """As the protocol's oldest stores do it: every open bead, needs or not."""
    return [bead for bead in beads.values() if bead["status"] == "open"]


def children(beads: Json, parent: str) -> Any:
    return [bead for bead in beads.values() if bead["parent_id"] == parent]


def list_by_label(beads: Json, label: str, limit: str) -> Any:
    found = [bead for bead in reversed(beads.values()) if label in bead["labels"]]
    return found[: int(limit) or None]


def set_metadata(beads: Json, bead: str, key: str) -> None:
    get(beads, bead)["metadata"][key] = sys.stdin.read()


def cook(beads: Json) -> Any:
    plan = json.load(sys.stdin)
    root = _add(beads, plan["root"])
    made = {step["ref"]: _add(beads, step | {"parent_id": root["id"]})["id"] for step in plan["steps"]}
    for step in plan["steps"]:
        beads[made[step["ref"]]]["needs"] = [made[need] for need in step["needs"]]
    return root["id"]


def _add(beads: Json, new: Json) -> Any:
    bead = {**new, "id": f"ex-{len(beads) + 1}", "status": "open", "created_at": _now(), "updated_at": _now()}
    beads[bead["id"]] = bead
    return bead


def _now() -> str:
    return datetime.now(UTC).isoformat()


OPERATIONS = {
    "create": create,
    "get": get,
    "update": update,
    "claim": claim,
    "close": close,
    "list": everything,
    "ready": ready,
    "children": children,
    "list-by-label": list_by_label,
    "set-metadata": set_metadata,
    "mol-cook": cook,
    "mol-cook-on": cook,
}

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
