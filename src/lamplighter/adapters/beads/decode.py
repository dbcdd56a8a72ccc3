"""Decodes beads from other programs' JSON, accepting their spellings, and reports all problems at once."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lamplighter.domain.beads.model import Bead, BeadStatus
from lamplighter.kit.clock import from_rfc3339
from lamplighter.kit.errors import LampError

_STATUS = {"closed": BeadStatus.CLOSED, "in_progress": BeadStatus.IN_PROGRESS, "hooked": BeadStatus.IN_PROGRESS}
"""Any other status is open: beads that are blocked, deferred and the like are still to be done."""


class BeadUnreadable(LampError):
    def __init__(self, source: str, problems: Sequence[str]) -> None:
        super().__init__(
            "\n".join(f"{source}: {problem}" for problem in problems),
            hint="docs/reference/bead-stores.md shows what a bead looks like.",
        )
        self.problems = tuple(problems)


def decode_bead(tree: Any, source: str) -> Bead:
    """Raises BeadUnreadable with all problems."""
    problems: list[str] = []
    bead = read_bead(tree, "", problems)
    if bead is None or problems:
        raise BeadUnreadable(source, problems)
    return bead


def decode_beads(tree: Any, source: str) -> list[Bead]:
    """A list of beads; null is an empty list. Raises BeadUnreadable with all problems."""
    if tree is None:
        return []
    if not isinstance(tree, list):
        raise BeadUnreadable(source, [f"a list of beads was expected, not {_kind(tree)}"])
    problems: list[str] = []
    beads = [read_bead(entry, f"[{number}].", problems) for number, entry in enumerate(tree)]
    if problems:
        raise BeadUnreadable(source, problems)
    return [bead for bead in beads if bead is not None]


def read_bead(tree: Any, where: str, problems: list[str]) -> Bead | None:
    """The bead, or None when no bead can be made of `tree`; adds what is wrong to `problems`."""
    if not isinstance(tree, Mapping):
        problems.append(f"{where.rstrip('.') or 'answer'}: a bead was expected, not {_kind(tree)}")
        return None
    fields = _Fields(tree, where, problems)
    created = fields.time("created_at", required=True)
    if created is None:
        return None
    bead_id = fields.text("id", required=True) or ""
    parent = fields.text("parent_id", "parent") or None
    status = _STATUS.get(fields.text("status") or "open", BeadStatus.OPEN)
    closed = fields.time("closed_at")
    updated = fields.time("updated_at") or closed or created
    return Bead(
        id=bead_id,
        title=fields.text("title", required=True) or "",
        type=fields.text("type", "issue_type") or "task",
        status=status,
        labels=fields.texts("labels"),
        assignee=fields.text("assignee") or None,
        sender=fields.text("from", "sender") or None,
        parent=parent,
        root=parent or bead_id,  # one answer does not tell the root above the parent
        needs=fields.texts("needs"),
        ref=fields.text("ref") or None,
        description=fields.text("description") or "",
        metadata=fields.metadata(),
        ephemeral=tree.get("ephemeral") is True,
        run=fields.text("run") or None,
        created_at=created,
        updated_at=updated,
        closed_at=(closed or updated) if status is BeadStatus.CLOSED else None,
    )


class _Fields:
    def __init__(self, tree: Mapping[str, Any], where: str, problems: list[str]) -> None:
        self._tree = tree
        self._where = where
        self._problems = problems

    def text(self, *keys: str, required: bool = False) -> str | None:
        key = next((key for key in keys if self._tree.get(key) is not None), keys[0])
        value = self._tree.get(key)
        if value is None or value == "":
            if required:
                self._problems.append(f"{self._where}{key}: is missing")
            return None
        if not isinstance(value, str):
            self._wrong(key, "is a text", value)
            return None
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._tree.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            self._wrong(key, "is a list of texts", value)
            return ()
        return tuple(sorted(set(value)))

    def time(self, key: str, *, required: bool = False) -> datetime | None:
        value = self.text(key, required=required)
        try:
            return None if value is None else from_rfc3339(value)
        except ValueError:
            self._wrong(key, "is a time such as 2026-03-01T09:30:00Z", value)
            return None

    def metadata(self) -> dict[str, str]:
        value = self._tree.get("metadata")
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self._wrong("metadata", "is a table of texts", value)
            return {}
        return {str(key): entry if isinstance(entry, str) else json.dumps(entry) for key, entry in value.items()}

    def _wrong(self, key: str, wanted: str, value: Any) -> None:
        self._problems.append(f"{self._where}{key}: {wanted}, not {_kind(value)}")


def _kind(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
