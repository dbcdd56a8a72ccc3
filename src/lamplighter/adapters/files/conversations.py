"""Finds the conversations that agent programs keep, and keeps a note on the last one of each agent."""

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.domain.sessions.presets.model import ConversationStore
from lamplighter.domain.sessions.resuming import Conversed
from lamplighter.kit import json_text, log

NOTE = "conversation.json"
_NEWEST = 200
_READ = 256 * 1024
_BUSY_S = 2.0


def kept(files_dir: Path) -> Conversed | None:
    try:
        return Conversed.from_json(json_text.parse((files_dir / NOTE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.get().warning("conversation.unreadable", file=str(files_dir / NOTE), error=str(error))
        return None


def keep(files_dir: Path, conversed: Conversed) -> None:
    files_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(files_dir / NOTE, json.dumps(conversed.as_json()).encode(), mode=0o600)


def find(store: ConversationStore, conversed: Conversed, env: Mapping[str, str]) -> str:
    """The program's name for the conversation; empty if the program has not kept it."""
    root = Path(env.get(store.variable) or Path(env.get("HOME") or Path.home()) / store.root)
    try:
        return next(_found(store, conversed, root), "")
    except (OSError, sqlite3.Error) as error:
        log.get().warning("conversation.not_found", program=conversed.program, error=str(error))
        return ""


def _found(store: ConversationStore, conversed: Conversed, root: Path) -> Iterator[str]:
    if store.query:
        for path in root.glob(store.path):
            yield from _asked(path, store.query, conversed)
    elif store.chosen:
        if conversed.chosen and any(root.glob(store.path.replace("{id}", conversed.chosen))):
            yield conversed.chosen
    else:
        yield from _by_mark(store, conversed, root)


def _asked(path: Path, query: str, conversed: Conversed) -> Iterator[str]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_BUSY_S)) as database:
        row = database.execute(query, {"id": conversed.chosen, "text": f"%{conversed.mark}%"}).fetchone()
    if row is not None:
        yield str(row[0])


def _by_mark(store: ConversationStore, conversed: Conversed, root: Path) -> Iterator[str]:
    mark = conversed.mark.encode()
    newest = sorted(root.glob(store.path), key=lambda path: path.stat().st_mtime, reverse=True)[:_NEWEST]
    for path in newest:
        with path.open("rb") as file:
            if mark in file.read(_READ) and (named := re.search(store.name, path.name)):
                yield named[1]
