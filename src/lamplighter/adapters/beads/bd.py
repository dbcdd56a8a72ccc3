"""The bead store `bd`: the bd program keeps the beads in the city's `.beads`, called by its command line.

bd has no field for a bead's ref and sender, so both are kept in its metadata. It deletes its own old wisps, so our
wisps are ordinary issues to it. Types beyond its own (molecule, convoy, message, …) must be listed in its setting
`types.custom`.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamplighter.adapters.beads.decode import BeadUnreadable, decode_bead
from lamplighter.adapters.processes.program import Answer, Program
from lamplighter.domain.beads.formulas import Plan
from lamplighter.domain.beads.model import Bead, BeadChange, BeadFilter, BeadNotFound, NeedsCycle, NewBead
from lamplighter.kit import json_text
from lamplighter.kit.errors import LampError

ENVIRONMENT = {"BD_JSON_ENVELOPE": "0", "NO_COLOR": "1"}
_REF, _SENDER = "ref", "from"
_NOT_FOUND = re.compile(r"not[ _]found|no issues? (found )?matching|no issue found", re.IGNORECASE)
_WAITS = frozenset({"blocks", "depends-on", "blocked-by"})
"""Kinds of dependency that block a bead; the other kinds only relate two beads."""


class BdFailed(LampError):
    def __init__(self, call: str, code: int, said: str) -> None:
        hint = "Run it by hand in the city's directory; `bd doctor` finds what is wrong with its store."
        if "type" in said.lower() and "invalid" in said.lower():
            hint = "Name the type in bd's own setting: bd config set types.custom molecule,wisp,convoy,message"
        super().__init__(f"`{call}` failed with exit code {code}: {said or 'it said nothing'}", hint=hint)
        self.said = said


@dataclass(frozen=True)
class BdBackend:
    program: Program

    @property
    def name(self) -> str:
        return self.program.path

    def create(self, new: NewBead, rig: str | None) -> Bead:
        metadata = dict(new.metadata) | _named({_REF: new.ref, _SENDER: new.sender})
        flags = _flags(
            title=new.title,
            type=new.type,
            labels=_csv(new.labels),
            assignee=new.assignee,
            parent=new.parent,
            deps=_csv(new.needs),
            metadata=json.dumps(metadata) if metadata else None,
        )
        if new.description:
            flags.append("--body-file=-")
        args = ["create", *flags, "--no-inherit-labels"]
        return self._one(args, new.description, env={} if rig is None else {"LAMP_RIG": rig, "GC_RIG": rig})

    def get(self, bead: str) -> Bead:
        answers = self._asked(["show", bead], about=bead)
        if not answers:
            raise BeadNotFound(bead)
        return self._bead(answers[0], ["show", bead])

    def update(self, bead: str, wanted: BeadChange) -> None:
        flags = _changes(wanted)
        if flags:
            self._asked(["update", bead, *flags], wanted.description or "", about=bead)
        for need in wanted.remove_needs:
            self._asked(["dep", "remove", bead, need], about=bead)
        for need in wanted.add_needs:
            self._add_need(bead, need)

    def claim(self, bead: str, assignee: str) -> None:
        self._asked(["update", bead, "--claim", f"--actor={assignee}"], about=bead)

    def close(self, bead: str) -> None:
        self._asked(["close", bead], about=bead)

    def all(self, wanted: BeadFilter) -> Sequence[Bead]:
        flags = _flags(
            status=None if wanted.status is None else wanted.status.value,
            type=wanted.type,
            label=None if wanted.label is None else _csv([wanted.label]),
            assignee=wanted.assignee,
            parent=wanted.parent,
        )
        args = ["list", "--all", "--include-infra", "--limit=0", "--sort=created", *flags]
        try:
            found = self._asked(args, about=wanted.parent)
        except BeadNotFound:
            return []
        return [self._bead(tree, args, parent=wanted.parent) for tree in found]

    def ready(self, label: str | None, assignee: str | None) -> Sequence[Bead]:
        flags = _flags(label=None if label is None else _csv([label]), assignee=assignee)
        args = ["ready", "--limit=0", "--sort=oldest", *flags]
        return [self._bead(tree, args) for tree in self._asked(args)]

    def cook(self, plan: Plan, rig: str | None) -> str | None:  # noqa: ARG002  steps are created one by one
        """Always None: bd cooks by its own rules from its own files, so the caller creates the steps from the plan."""
        return None

    def _add_need(self, bead: str, need: str) -> None:
        try:
            self._asked(["dep", "add", bead, need], about=need)
        except BdFailed as error:
            if "cycle" in error.said.lower():
                raise NeedsCycle(bead, need) from error
            raise

    def _one(self, args: Sequence[str], stdin: str, env: Mapping[str, str]) -> Bead:
        answers = self._asked(args, stdin, env=env)
        if len(answers) != 1:
            raise BeadUnreadable(self._told(args), [f"one bead was expected, not {len(answers)}"])
        return self._bead(answers[0], args)

    def _bead(self, tree: Any, args: Sequence[str], *, parent: str | None = None) -> Bead:
        """Decode a bead as bd shows it; `parent` is the parent asked for, which bd's lists do not repeat."""
        return decode_bead(_as_bead(tree, parent) if isinstance(tree, Mapping) else tree, self._told(args))

    def _asked(
        self, args: Sequence[str], stdin: str = "", *, about: str | None = None, env: Mapping[str, str] | None = None
    ) -> list[Any]:
        """The issues in bd's answer. Raises BeadNotFound, BdFailed with what bd said, or BeadUnreadable."""
        answer = self.program.call([*args, "--json"], stdin.encode(), env={**ENVIRONMENT, **(env or {})})
        if answer.exit_code != 0:
            said = _complaint(answer)
            if about is not None and _NOT_FOUND.search(said):
                raise BeadNotFound(about)
            raise BdFailed(self._told(args), answer.exit_code, said)
        if not answer.output.strip():
            return []
        try:
            return _issues(json_text.parse(answer.output))
        except ValueError as error:
            start = answer.output[:80].decode(errors="replace").strip()
            raise BeadUnreadable(self._told(args), [f"JSON was expected, not {start!r} ({error})"]) from error

    def _told(self, args: Sequence[str]) -> str:
        return " ".join([self.program.path, *args[:2]])


def _changes(wanted: BeadChange) -> list[str]:
    flags = _flags(
        title=wanted.title,
        type=wanted.type,
        status=None if wanted.status is None else wanted.status.value,
        assignee=wanted.assignee,
        parent=wanted.parent,
    )
    if wanted.description is not None:
        flags += ["--body-file=-", *([] if wanted.description else ["--allow-empty-description"])]
    flags += [f"--add-label={_csv([label])}" for label in wanted.add_labels]
    flags += [f"--remove-label={_csv([label])}" for label in wanted.remove_labels]
    flags += [
        f"--unset-metadata={key}" if value is None else f"--set-metadata={key}={value}"
        for key, value in wanted.metadata.items()
    ]
    return flags


def _flags(**values: str | None) -> list[str]:
    """`--name=value` as one argument, so that a value that begins with a dash is not taken for a flag."""
    return [f"--{name}={value}" for name, value in values.items() if value is not None]


def _csv(values: Iterable[str]) -> str | None:
    """The value of a list flag: bd splits it as CSV, so a comma in a label is quoted."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue() or None


def _named(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _issues(tree: Any) -> list[Any]:
    """The issues in an answer: bd gives a list, one issue, or either inside an envelope, by version and setting."""
    if isinstance(tree, Mapping):
        inner = tree.get("items", tree.get("data", tree.get("issues")))
        if inner is not None and "id" not in tree:
            return _issues(inner)
        return [tree]
    return [] if tree is None else list(tree) if isinstance(tree, list) else [tree]


def _as_bead(issue: Mapping[str, Any], parent: str | None) -> dict[str, Any]:
    links = [link for link in issue.get("dependencies") or () if isinstance(link, Mapping)]
    above = next((_other(link) for link in links if _link_kind(link) == "parent-child"), None)
    metadata = issue.get("metadata") or {}
    own = metadata if isinstance(metadata, Mapping) else {}
    return {
        **issue,
        "type": issue.get("issue_type") or issue.get("type"),
        "parent_id": issue.get("parent") or issue.get("parent_id") or above or parent,
        "needs": [_other(link) for link in links if _link_kind(link) in _WAITS and _other(link)],
        "ref": own.get(_REF),
        "from": issue.get("sender") or own.get(_SENDER),
        "metadata": {key: value for key, value in own.items() if key not in (_REF, _SENDER)} if own else metadata,
    }


def _link_kind(link: Mapping[str, Any]) -> str:
    """`show` gives the other issue with a `dependency_type`, `list` only the link with a `type`."""
    return str(link.get("dependency_type") or link.get("type") or "")


def _other(link: Mapping[str, Any]) -> Any:
    return link.get("depends_on_id") or link.get("id")


def _complaint(answer: Answer) -> str:
    """What went wrong: as JSON on either stream, or as text on standard error."""
    for text in (answer.complaint, answer.output.decode(errors="replace").strip()):
        try:
            tree = json_text.parse(text)
        except ValueError:
            continue
        if isinstance(tree, Mapping) and (tree.get("error") or tree.get("message")):
            return " ".join(str(tree[key]) for key in ("error", "message", "code") if tree.get(key))
    return answer.complaint
