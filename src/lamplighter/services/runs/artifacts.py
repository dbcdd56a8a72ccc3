"""Artifacts of runs: what an outbox item has to write, and the record that it was written."""

from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.acts import Act
from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.runs.artifacts import JSON_TYPE, Artifact, key_of, written
from lamplighter.services import outbox
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
    import json

    run, artifact = item.payload["run"], Artifact(item.payload["artifact"])
    papers = tx.runs.papers(run)
    body = papers.enrichment if artifact is Artifact.ENRICHMENT else papers.completion
    return None if body is None else ToWrite(run, artifact, written(json.loads(body)))


def was_written(tx: Tx, item: Item, what: ToWrite, act: Act) -> None:
    """Record the artifact, add it to the run's timeline and settle the item. Raises NotClaimed."""
    held = tx.runs.lock(what.run)
    row = ArtifactRow(what.run, what.artifact.value, what.key, len(what.content), JSON_TYPE, act.at)
    tx.artifacts.put(row)
    data = {"artifact": what.artifact.value, "key": what.key, "size": len(what.content)}
    if held is not None:  # retention may delete a run before its artifacts
        tx.runs.add_event(NewRunEvent(what.run, act.at, "artifact_written", act.actor, data=data))
    outbox.done(tx, item, act.at)


def old(tx: Tx, *, before: datetime) -> list[ArtifactRow]:
    return tx.artifacts.old(before=before, limit=AT_ONCE)


def forget(tx: Tx, row: ArtifactRow) -> None:
    tx.artifacts.forget(row)
