"""The common verbs of `bd`, each as calls of `lamp bead` and `lamp formula`."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lamplighter.cli.front_calls import MOST, Parser, Run, Unknown, Words, answer, flag_of, say

_DONE = "closed"


def bd_parser() -> Parser:
    parser = Parser(prog="bd")
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=Parser)
    _verb(verbs, "show", _show).add_argument("ids", nargs="+")
    for name, do in (("list", _list), ("ready", _list)):
        lister = _verb(verbs, name, do)
        lister.add_argument("--label", "-l")
        lister.add_argument("--assignee", "-a")
        lister.add_argument("--limit", "-n")
        lister.add_argument("--unassigned", action="store_true")
        if name == "list":
            for option in (("--status", "-s"), ("--type", "-t"), ("--parent",)):
                lister.add_argument(*option)
            lister.add_argument("--all", action="store_true")
    _create(_verb(verbs, "create", _make))
    _update(_verb(verbs, "update", _change))
    close = _verb(verbs, "close", _close)
    close.add_argument("ids", nargs="+")
    close.add_argument("--reason", "-r")
    _verb(verbs, "reopen", _reopen).add_argument("ids", nargs="+")
    _labels(verbs.add_parser("label"))
    _deps(verbs.add_parser("dep"))
    _cook(_verb(verbs, "cook", _cooked))
    mol = verbs.add_parser("mol").add_subparsers(dest="sub", required=True, parser_class=Parser)
    _cook(_verb(mol, "cook", _cooked))
    return parser


def _verb(verbs: Any, name: str, do: Callable[[argparse.Namespace, Run], int]) -> Parser:
    parser: Parser = verbs.add_parser(name)
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(do=do)
    return parser


def _create(parser: Parser) -> None:
    parser.add_argument("words", nargs="*")
    for option in (("--title",), ("--type", "-t"), ("--parent",), ("--assignee", "-a"), ("--description", "-d"),
                   ("--body-file",), ("--metadata",), ("--priority", "-p")):  # fmt: skip
        parser.add_argument(*option)
    parser.add_argument("--label", "--labels", "-l", action="append", default=[])
    parser.add_argument("--deps", action="append", default=[])
    parser.add_argument("--silent", action="store_true")


def _make(asked: argparse.Namespace, run: Run) -> int:
    title = asked.title or " ".join(asked.words)
    if not title:
        raise Unknown("a title is missing")
    if asked.body_file not in (None, "-"):
        raise Unknown("--body-file takes only `-`, standard input")
    text = sys.stdin.read() if asked.body_file else asked.description
    metadata = _metadata(asked.metadata) | ({"priority": asked.priority} if asked.priority else {})
    call = ["bead", "create", *flag_of("type", asked.type), *flag_of("parent", asked.parent),
            *flag_of("assignee", asked.assignee), *flag_of("description", text),
            *(f"--label={label}" for label in _split(asked.label)),
            *(f"--needs={need.rpartition(':')[2]}" for need in _split(asked.deps)),
            *(f"--meta={key}={value}" for key, value in metadata.items()), "--", title]  # fmt: skip
    code, bead = answer(run, call)
    return _shown(asked, code, bead, [str(bead.get("id", ""))] if asked.silent else None)


def _update(parser: Parser) -> None:
    parser.add_argument("ids", nargs="+")
    for option in (("--status", "-s"), ("--title",), ("--type", "-t"), ("--parent",), ("--assignee", "-a"),
                   ("--description", "-d"), ("--actor",), ("--notes",), ("--metadata",)):  # fmt: skip
        parser.add_argument(*option)
    parser.add_argument("--claim", action="store_true")
    for repeated in ("--set-metadata", "--unset-metadata", "--add-label", "--remove-label"):
        parser.add_argument(repeated, action="append", default=[])


def _change(asked: argparse.Namespace, run: Run) -> int:
    return _each(asked.ids, run, lambda bead: _changes(asked, bead)) or _show(asked, run)


def _changes(asked: argparse.Namespace, bead: str) -> Iterable[Words]:
    """The calls that make up one `bd update`; the claim first, because it may be refused."""
    if asked.claim:
        yield ["bead", "claim", *flag_of("assignee", asked.actor), "--", bead]
    metadata = _metadata(asked.metadata) | dict(_pair(text) for text in asked.set_metadata)
    metadata |= dict.fromkeys(asked.unset_metadata, "") | ({"notes": asked.notes} if asked.notes else {})
    status = None if asked.status == _DONE else asked.status
    values = {"title": asked.title, "type": asked.type, "parent": asked.parent, "assignee": asked.assignee,
              "description": asked.description, "status": status}  # fmt: skip
    flags = [flag for name, value in values.items() for flag in flag_of(name, value)]
    flags += [f"--meta={key}={value}" for key, value in metadata.items()]
    if flags:
        yield ["bead", "update", *flags, "--", bead]
    labels = [*(f"--add={label}" for label in asked.add_label), *(f"--remove={label}" for label in asked.remove_label)]
    if labels:
        yield ["bead", "label", *labels, "--", bead]
    if asked.status == _DONE:
        yield ["bead", "close", "--", bead]


def _close(asked: argparse.Namespace, run: Run) -> int:
    return _each(asked.ids, run, lambda bead: _closing(asked.reason, bead)) or _show(asked, run)


def _closing(reason: str | None, bead: str) -> Iterable[Words]:
    if reason:
        yield ["bead", "update", f"--meta=close_reason={reason}", "--", bead]
    yield ["bead", "close", "--", bead]


def _reopen(asked: argparse.Namespace, run: Run) -> int:
    return _each(asked.ids, run, lambda bead: [["bead", "update", "--status=open", "--", bead]]) or _show(asked, run)


def _labels(parser: Parser) -> None:
    verbs = parser.add_subparsers(dest="sub", required=True, parser_class=Parser)
    for name in ("add", "remove"):
        _verb(verbs, name, _relabel).add_argument("ids", nargs="+", metavar="ID… LABEL")
    _verb(verbs, "list", _list_labels).add_argument("ids", nargs=1)


def _relabel(asked: argparse.Namespace, run: Run) -> int:
    *beads, label = asked.ids
    if not beads:
        raise Unknown("a bead and a label are needed")
    return _each(beads, run, lambda bead: [["bead", "label", f"--{asked.sub}={label}", "--", bead]])


def _list_labels(asked: argparse.Namespace, run: Run) -> int:
    code, bead = answer(run, ["bead", "show", "--", asked.ids[0]])
    say([json.dumps(bead["labels"])] if asked.json and not code else bead.get("labels", []), code)
    return code


def _deps(parser: Parser) -> None:
    verbs = parser.add_subparsers(dest="sub", required=True, parser_class=Parser)
    for name in ("add", "remove"):
        verb = _verb(verbs, name, _rewire)
        verb.add_argument("bead")
        verb.add_argument("need")
        verb.add_argument("--type", "-t", choices=["blocks"], default="blocks")


def _rewire(asked: argparse.Namespace, run: Run) -> int:
    flag = "--needs" if asked.sub == "add" else "--drop-needs"
    return _each([asked.bead], run, lambda bead: [["bead", "update", f"{flag}={asked.need}", "--", bead]])


def _cook(parser: Parser) -> None:
    parser.add_argument("name", nargs="?")
    for option in ("--formula", "--title", "--on"):
        parser.add_argument(option)
    parser.add_argument("--var", action="append", default=[])


def _cooked(asked: argparse.Namespace, run: Run) -> int:
    """Prints the id of the root alone, for `$(bd mol cook …)`."""
    name = asked.formula or asked.name
    if not name:
        raise Unknown("a formula is missing")
    flags = [*flag_of("title", asked.title), *flag_of("on", asked.on), *(f"--var={one}" for one in asked.var)]
    code, bead = answer(run, ["formula", "cook", *flags, "--", name])
    return _shown(asked, code, bead, [str(bead.get("id", ""))])


def _show(asked: argparse.Namespace, run: Run) -> int:
    found = []
    for bead in asked.ids:
        code, one = answer(run, ["bead", "show", "--", bead])
        if code:
            return code
        found.append(one)
    return _shown(asked, 0, found[0] if len(found) == 1 else found)


def _list(asked: argparse.Namespace, run: Run) -> int:
    """Closed beads, and those that record runs, are listed only when they are asked for, as `bd` does."""
    call = ["bead", asked.verb, *flag_of("label", asked.label), *flag_of("assignee", asked.assignee), f"--limit={MOST}"]
    if asked.verb == "list":
        call += [*flag_of("status", asked.status), *flag_of("type", asked.type), *flag_of("parent", asked.parent)]
        everything = asked.all or bool(asked.status)
    else:
        everything = True
    code, found = answer(run, call)
    if code:
        return code
    kept = [bead for bead in found if everything or (bead["status"] != _DONE and bead["type"] != "run")]
    kept = [bead for bead in kept if not (asked.unassigned and bead["assignee"])]
    limit = int(asked.limit or 0)
    return _shown(asked, 0, kept[:limit] if limit else kept)


def _each(beads: Iterable[str], run: Run, calls: Callable[[str], Iterable[Words]]) -> int:
    """Run the calls for each bead, silently; the code of the first that fails."""
    for bead in beads:
        for call in calls(bead):
            code, _ = answer(run, call)
            if code:
                return code
    return 0


def _shown(asked: argparse.Namespace, code: int, found: Any, lines: Sequence[str] | None = None) -> int:
    if code:
        return code
    if asked.json:
        told = [_as_issue(bead) for bead in found] if isinstance(found, list) else _as_issue(found)
        say([json.dumps(told)], code)
    else:
        beads = found if isinstance(found, list) else [found]
        say(lines or [f"{bead['id']}  {bead['status']:<11}  {bead['title']}" for bead in beads], code)
    return code


def _as_issue(bead: dict[str, Any]) -> dict[str, Any]:
    """A bead under the names that `bd` uses, beside our own."""
    links = [{"depends_on_id": need, "type": "blocks"} for need in bead.get("needs", ())]
    return bead | {"issue_type": bead.get("type"), "dependencies": links}


def _split(values: Iterable[str]) -> Words:
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign:
        raise Unknown(f"`{text}` is not KEY=VALUE")
    return key, value


def _metadata(text: str | None) -> dict[str, str]:
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise Unknown(f"--metadata is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Unknown("--metadata is a JSON object")
    return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}
