"""A stand-in for the program `bd`, which is not there in a test: its flags and JSON shapes, over a locked JSON file.

It stands for the parts of bd's command line that the adapter calls, as bd's own reference describes them: `create`,
`show`, `update` with `--claim`, `close`, `list`, `ready`, `dep add` and `dep remove`, each with `--json`. It shows that
the adapter speaks those flags and reads those shapes; that bd itself does, only bd can show. Unlike bd, it lets every
second of `created_at` pass faster, so that the order of creation is the order of time.
"""

import argparse
import csv
import fcntl
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FILE = Path("bd.json")
START = datetime(2026, 1, 1, tzinfo=UTC)


class Refused(Exception):
    """An error told on standard error."""


def main() -> int:
    asked = _parser().parse_args()
    with Path("bd.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = json.loads(FILE.read_text()) if FILE.exists() else {"ticks": 0, "issues": {}}
        state["ticks"] += 1
        try:
            answer = asked.run(state, asked)
        except Refused as refusal:
            print(json.dumps({"schema_version": 1, "error": str(refusal)}), file=sys.stderr)
            return 1
        FILE.with_suffix(".new").write_text(json.dumps(state))
        FILE.with_suffix(".new").rename(FILE)
    print(json.dumps(answer))
    return 0


def create(state: Json, asked: argparse.Namespace) -> Any:
    now = _now(state)
    issue = {
        "id": f"bd-{len(state['issues']) + 1}",
        "title": asked.title,
        "description": sys.stdin.read() if asked.body_file else "",
        "status": "open",
        "priority": 2,
        "issue_type": asked.type,
        "created_at": now,
        "updated_at": now,
        "labels": _split(asked.labels),
        "metadata": json.loads(asked.metadata or "{}"),
        "links": [],
    }
    if asked.assignee:
        issue["assignee"] = asked.assignee
    state["issues"][issue["id"]] = issue
    _set_parent(state, issue, asked.parent)
    for need in _split(asked.deps):
        _link(issue, _get(state, need)["id"], "blocks")
    return _shown(state, issue)


def show(state: Json, asked: argparse.Namespace) -> Any:
    return [_shown(state, _get(state, asked.id))]


def update(state: Json, asked: argparse.Namespace) -> Any:
    issue = _get(state, asked.id)
    if asked.claim:
        return [_claimed(state, issue, asked.actor)]
    for name, value in (("title", asked.title), ("issue_type", asked.type), ("status", asked.status)):
        if value is not None:
            issue[name] = value
    if asked.assignee is not None:
        issue["assignee"] = asked.assignee
    if asked.body_file:
        issue["description"] = _body(asked)
    if asked.parent is not None:
        _set_parent(state, issue, asked.parent)
    issue["labels"] = sorted({*issue["labels"], *_split(*asked.add_label)} - {*_split(*asked.remove_label)})
    issue["metadata"] |= dict(pair.split("=", 1) for pair in asked.set_metadata)
    for key in asked.unset_metadata:
        issue["metadata"].pop(key, None)
    if issue["status"] != "closed":
        issue.pop("closed_at", None)
    issue["updated_at"] = _now(state)
    return [_shown(state, issue)]


def close(state: Json, asked: argparse.Namespace) -> Any:
    issue = _get(state, asked.id)
    issue.update(status="closed", closed_at=_now(state), updated_at=_now(state))
    return [_shown(state, issue)]


def listed(state: Json, asked: argparse.Namespace) -> Any:
    wanted = {"status": asked.status, "issue_type": asked.type, "assignee": asked.assignee}
    return [
        _listed(issue)
        for issue in reversed(state["issues"].values())
        if all(value is None or issue.get(name) == value for name, value in wanted.items())
        and {*_split(asked.label)} <= {*issue["labels"]}
        and asked.parent in (None, _parent(issue))
    ]


def ready(state: Json, asked: argparse.Namespace) -> Any:
    return [
        _listed(issue)
        for issue in state["issues"].values()
        if issue["status"] == "open"
        and not any(_get(state, need)["status"] != "closed" for need in _needs(issue))
        and {*_split(asked.label)} <= {*issue["labels"]}
        and asked.assignee in (None, issue.get("assignee"))
    ]


def dep_add(state: Json, asked: argparse.Namespace) -> Any:
    issue, need = _get(state, asked.id), _get(state, asked.other)
    reached, waiting = set(), [need["id"]]
    while waiting:
        reached.add(waiting[0])
        waiting += [other for other in _needs(state["issues"][waiting.pop(0)]) if other not in reached]
    if issue["id"] in reached:
        raise Refused("adding dependency would create a cycle")
    _link(issue, need["id"], "blocks")
    return {"issue_id": issue["id"], "depends_on_id": need["id"], "type": "blocks", "status": "added"}


def dep_remove(state: Json, asked: argparse.Namespace) -> Any:
    issue = _get(state, asked.id)
    issue["links"] = [link for link in issue["links"] if link != [asked.other, "blocks"]]
    return {"issue_id": issue["id"], "depends_on_id": asked.other, "status": "removed"}


def _claimed(state: Json, issue: Json, actor: str) -> Any:
    holder = issue.get("assignee")
    if issue["status"] != "open" or holder not in (None, "", actor):
        raise Refused(f"issue already claimed by {holder}")
    issue.update(status="in_progress", assignee=actor, updated_at=_now(state))
    return _shown(state, issue)


def _get(state: Json, issue: str) -> Any:
    if issue not in state["issues"]:
        raise Refused(f'no issue found matching "{issue}"')
    return state["issues"][issue]


def _shown(state: Json, issue: Json) -> Any:
    """`show` gives each dependency as the other issue, and the parent by name."""
    links = [
        {key: state["issues"][other][key] for key in ("id", "title", "status")} | {"dependency_type": kind}
        for other, kind in issue["links"]
    ]
    return _bare(issue) | {"dependencies": links, "parent": _parent(issue)}


def _listed(issue: Json) -> Any:
    """`list` and `ready` give bare links."""
    links = [{"issue_id": issue["id"], "depends_on_id": other, "type": kind} for other, kind in issue["links"]]
    return _bare(issue) | {"dependencies": links}


def _bare(issue: Json) -> Any:
    return {key: value for key, value in issue.items() if key != "links" and value not in ("", [], {})}


def _set_parent(state: Json, issue: Json, parent: str | None) -> None:
    issue["links"] = [link for link in issue["links"] if link[1] != "parent-child"]
    if parent:
        _link(issue, _get(state, parent)["id"], "parent-child")


def _link(issue: Json, other: str, kind: str) -> None:
    if [other, kind] not in issue["links"]:
        issue["links"].append([other, kind])


def _parent(issue: Json) -> Any:
    return next((other for other, kind in issue["links"] if kind == "parent-child"), None)


def _needs(issue: Json) -> list[str]:
    return [other for other, kind in issue["links"] if kind == "blocks"]


def _body(asked: argparse.Namespace) -> str:
    body = sys.stdin.read()
    if not body and not asked.allow_empty_description:
        raise Refused("refusing to replace the description with nothing")
    return body


def _split(*texts: str | None) -> list[str]:
    return [value for text in texts if text for row in csv.reader([text]) for value in row]


def _now(state: Json) -> str:
    return (START + timedelta(seconds=state["ticks"])).strftime("%Y-%m-%dT%H:%M:%SZ")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bd", allow_abbrev=False)
    verbs = parser.add_subparsers(required=True)
    _verb(verbs, "create", create, "title type labels assignee parent deps metadata body-file", "no-inherit-labels")
    _verb(verbs, "show", show, ids=["id"])
    changed = _verb(
        verbs, "update", update, "title type status assignee parent body-file actor",
        "claim allow-empty-description", ids=["id"],
    )  # fmt: skip
    for name in ("add-label", "remove-label", "set-metadata", "unset-metadata"):
        changed.add_argument(f"--{name}", action="append", default=[])
    _verb(verbs, "close", close, ids=["id"])
    _verb(verbs, "list", listed, "status type label assignee parent limit sort", "all include-infra")
    _verb(verbs, "ready", ready, "label assignee limit sort")
    links = verbs.add_parser("dep", allow_abbrev=False).add_subparsers(required=True)
    _verb(links, "add", dep_add, ids=["id", "other"])
    _verb(links, "remove", dep_remove, ids=["id", "other"])
    return parser


def _verb(verbs: Any, name: str, run: Any, values: str = "", switches: str = "", ids: Sequence[str] = ()) -> Any:
    verb = verbs.add_parser(name, allow_abbrev=False)
    verb.set_defaults(run=run)
    for argument in ids:
        verb.add_argument(argument)
    for value in values.split():
        verb.add_argument(f"--{value}")
    for switch in (*switches.split(), "json"):
        verb.add_argument(f"--{switch}", action="store_true")
    return verb


if __name__ == "__main__":
    sys.exit(main())
