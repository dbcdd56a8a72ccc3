"""Artifacts of runs: what an outbox item has to write, and the record that it was written."""

import json
from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.runs.artifacts import Artifact, key_of, written
from lamplighter.services import outbox
from lamplighter.services.context import Context
from lamplighter.store.artifacts import ArtifactRow
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx

AT_ONCE = 200


@dataclass(frozen=True)
class ToWrite:
    run: str
    artifact: Artifact
    content: bytes

    @property
    def key(self) -> str:
        return key_of(self.run, self.artifact)


def to_write(tx: Tx, item: Item) -> ToWrite | None:
    """What to write; None when the run or the artifact's content is gone. Raises ValueError for an unknown artifact."""
    run, artifact = item.payload["run"], Artifact(item.payload["artifact"])
    papers = tx.runs.papers(run)
    body = papers.enrichment if artifact is Artifact.ENRICHMENT else papers.completion
    if body is None:
        return None
    if artifact is Artifact.PLAN:
        return ToWrite(run, artifact, (str(json.loads(body)["summary_markdown"]) + "\n").encode())
    return ToWrite(run, artifact, written(json.loads(body)))


def was_written(tx: Tx, item: Item, what: ToWrite, ctx: Context) -> None:
    """Record the artifact, add it to the run's timeline and settle the item. Raises NotClaimed."""
    held = tx.runs.lock(what.run)
    row = ArtifactRow(what.run, what.artifact.value, what.key, len(what.content), what.artifact.content_type, ctx.now)
    tx.artifacts.put(row)
    data = {"artifact": what.artifact.value, "key": what.key, "size": len(what.content)}
    if held is not None:  # retention may delete a run before its artifacts
        tx.runs.add_event(NewRunEvent(what.run, ctx.now, "artifact_written", ctx.actor.name, data=data))
    outbox.done(tx, item, ctx.now)


def old(tx: Tx, *, before: datetime) -> list[ArtifactRow]:
    return tx.artifacts.old(before=before, limit=AT_ONCE)


def forget(tx: Tx, row: ArtifactRow) -> None:
    tx.artifacts.forget(row)
