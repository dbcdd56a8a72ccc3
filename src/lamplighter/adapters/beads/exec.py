"""The bead store `exec:<script>`: a script keeps the beads, with one call per operation, JSON in and out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamplighter.adapters.beads.decode import BeadUnreadable, decode_bead, decode_beads
from lamplighter.adapters.processes.program import Answer, Program
from lamplighter.domain.beads.formulas import Plan
from lamplighter.domain.beads.model import Bead, BeadChange, BeadFilter, BeadNotFound, NewBead
from lamplighter.kit import json_text
from lamplighter.kit.errors import LampError, NotFound

UNKNOWN_OPERATION = 2
DOCUMENT = "docs/reference/bead-stores.md"


class ScriptFailed(LampError):
    def __init__(self, call: str, answer: Answer) -> None:
        said = answer.complaint or "nothing on standard error"
        super().__init__(
            f"`{call}` failed with exit code {answer.exit_code}: {said}",
            hint="Run it by hand with the same arguments to see why.",
        )


class OperationUnknown(LampError):
    def __init__(self, call: str, operation: str) -> None:
        super().__init__(
            f"`{call}` answered that it does not know `{operation}` (exit code 2), and no answer can be made up.",
            hint=f"Teach the script `{operation}`; {DOCUMENT} says what it gets and gives.",
        )


@dataclass(frozen=True)
class ExecBackend:
    """Exit code 0 is success; 2 an operation the script does not know; any other an error, explained on stderr."""

    program: Program

    @property
    def name(self) -> str:
        return self.program.path

    def create(self, new: NewBead, rig: str | None) -> Bead:
        return self._bead(["create"], _new(new), env=_rig(rig))

    def get(self, bead: str) -> Bead:
        return self._bead(["get", bead])

    def update(self, bead: str, wanted: BeadChange) -> None:
        fields = _change(wanted)
        if fields:
            self._needed(["update", bead], fields)
        for key, value in wanted.metadata.items():
            if value is not None:
                self._known(["set-metadata", bead, key], self._call(["set-metadata", bead, key], value.encode()))

    def claim(self, bead: str, assignee: str) -> None:
        self._needed(["claim", bead], {"assignee": assignee})

    def close(self, bead: str) -> None:
        self._needed(["close", bead])

    def all(self, wanted: BeadFilter) -> Sequence[Bead]:
        """Uses the narrowest operation the script knows; beads created at the same instant keep the script's order."""
        if wanted.parent is not None:
            narrow = self._optional_list(["children", wanted.parent])
        elif wanted.label is not None:
            narrow = self._optional_list(["list-by-label", wanted.label, "0"])
        else:
            narrow = None
        return self._beads(["list"]) if narrow is None else narrow

    def ready(self, label: str | None, assignee: str | None) -> Sequence[Bead]:  # noqa: ARG002  scripts take no filter
        found = self._optional_list(["ready"])
        return self._beads(["list"]) if found is None else found

    def cook(self, plan: Plan, rig: str | None) -> str | None:
        """`root` and `steps` of the request hold the plan with its variables filled in, to be created in one call."""
        parent = plan.root.parent
        args = ["mol-cook"] if parent is None else ["mol-cook-on"]
        body = {
            "formula": plan.root.ref or plan.root.title,
            "title": plan.root.title,
            "vars": [f"{name}={value}" for name, value in plan.values.items()],
            "root": _new(plan.root),
            "steps": [_new(step) for step in plan.steps],
        } | ({} if parent is None else {"on": parent})
        answer = self._call(args, _json(body), env=_rig(rig))
        if answer.exit_code == UNKNOWN_OPERATION:
            return None
        self._succeeded(args, answer)
        root = answer.output.decode(errors="replace").strip()
        if not root or len(root.split()) != 1:
            raise BeadUnreadable(self._told(args), ["the id of the root was expected on standard output"])
        return root

    def lifecycle(self, operation: str, *args: str) -> bool:
        """Run `init`, `ensure-ready`, `shutdown`, `config-set` or `purge`; False when the script does not know it."""
        answer = self._call([operation, *args])
        if answer.exit_code == UNKNOWN_OPERATION:
            return False
        self._succeeded([operation, *args], answer)
        return True

    def _bead(self, args: Sequence[str], body: Any = None, *, env: Mapping[str, str] | None = None) -> Bead:
        return decode_bead(self._parsed(args, self._needed(args, body, env=env)), self._told(args))

    def _beads(self, args: Sequence[str]) -> list[Bead]:
        return decode_beads(self._parsed(args, self._needed(args)), self._told(args))

    def _optional_list(self, args: Sequence[str]) -> list[Bead] | None:
        """None when the script does not know the operation; an empty list when it does not know the bead."""
        answer = self._call(args)
        if answer.exit_code == UNKNOWN_OPERATION:
            return None
        try:
            self._succeeded(args, answer)
        except NotFound:
            return []
        return decode_beads(self._parsed(args, answer), self._told(args))

    def _needed(self, args: Sequence[str], body: Any = None, *, env: Mapping[str, str] | None = None) -> Answer:
        return self._known(args, self._call(args, b"" if body is None else _json(body), env=env))

    def _known(self, args: Sequence[str], answer: Answer) -> Answer:
        if answer.exit_code == UNKNOWN_OPERATION:
            raise OperationUnknown(self._told(args), args[0])
        return self._succeeded(args, answer)

    def _succeeded(self, args: Sequence[str], answer: Answer) -> Answer:
        if answer.exit_code == 0:
            return answer
        if len(args) > 1 and "not found" in answer.complaint.lower():
            raise BeadNotFound(args[1])
        raise ScriptFailed(self._told(args), answer)

    def _parsed(self, args: Sequence[str], answer: Answer) -> Any:
        try:
            return json_text.parse(answer.output)
        except ValueError as error:
            start = answer.output[:80].decode(errors="replace").strip() or "nothing"
            raise BeadUnreadable(
                self._told(args), [f"JSON was expected on standard output, which holds {start!r} ({error})"]
            ) from error

    def _call(self, args: Sequence[str], stdin: bytes = b"", *, env: Mapping[str, str] | None = None) -> Answer:
        return self.program.call(args, stdin, env=env)

    def _told(self, args: Sequence[str]) -> str:
        return " ".join([self.program.path, *args[:2]])


def _new(new: NewBead) -> dict[str, Any]:
    return {
        "title": new.title,
        "type": new.type,
        "labels": list(new.labels),
        "parent_id": new.parent or "",
        "ref": new.ref or "",
        "needs": list(new.needs),
        "description": new.description,
        "assignee": new.assignee or "",
        "from": new.sender or "",
        "metadata": dict(new.metadata),
        "ephemeral": new.ephemeral,
    }


def _change(wanted: BeadChange) -> dict[str, Any]:
    """Only the fields that are to change; `labels` are added to the existing ones."""
    plain = {
        "title": wanted.title,
        "type": wanted.type,
        "status": None if wanted.status is None else wanted.status.value,
        "description": wanted.description,
        "assignee": wanted.assignee,
        "parent_id": wanted.parent,
    }
    lists = {
        "labels": wanted.add_labels,
        "remove_labels": wanted.remove_labels,
        "add_needs": wanted.add_needs,
        "remove_needs": wanted.remove_needs,
        "remove_metadata": tuple(key for key, value in wanted.metadata.items() if value is None),
    }
    return {key: value for key, value in plain.items() if value is not None} | {
        key: list(values) for key, values in lists.items() if values
    }


def _rig(rig: str | None) -> dict[str, str]:
    return {} if rig is None else {"LAMP_RIG": rig, "GC_RIG": rig}


def _json(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
