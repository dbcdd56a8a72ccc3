"""Keeps who is signed in with a browser, as files that only the city's user can read.

Files, because whichever process makes a link, any process of the city can redeem it, once: whoever removes the file
has it. Only the digest of a secret is kept.
"""

import contextlib
import json
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from lamplighter.domain.access import Actor, Role
from lamplighter.kit.clock import Clock, from_rfc3339, rfc3339

FOLDER = "console"
LINK_LASTS = timedelta(minutes=10)
SESSION_LASTS = timedelta(days=30)
MOST_SESSIONS = 200
"""When there are more, those that end first are forgotten."""
_LONGEST = 200


@dataclass(frozen=True)
class BrowserSessions:
    """`owner_token` is bound into every session: when it is replaced, every browser is signed out."""

    runtime: Path
    clock: Clock
    owner_token: str = field(repr=False)

    def link(self, actor: Actor) -> str:
        """The secret of a link that signs a browser in as `actor`, once, within LINK_LASTS."""
        return self._keep("link", actor, LINK_LASTS)

    def redeem(self, secret: str) -> Actor | None:
        """The actor whose link it is; None for one that was used, is too old, or never was."""
        path = self._path("link", secret)
        found = self._read(path)
        try:
            path.unlink()
        except OSError:
            return None  # somebody else was faster, or there is none
        return found

    def begin(self, actor: Actor) -> str:
        """The secret of a new session."""
        self._forget_old()
        return self._keep("session", actor, SESSION_LASTS)

    def actor(self, secret: str) -> Actor | None:
        return self._read(self._path("session", secret))

    def end(self, secret: str) -> None:
        self._path("session", secret).unlink(missing_ok=True)

    @property
    def _folder(self) -> Path:
        return self.runtime / FOLDER

    @property
    def _bound(self) -> str:
        return sha256(f"lamplighter console\0{self.owner_token}".encode()).hexdigest()

    def _path(self, kind: str, secret: str) -> Path:
        digest = sha256(secret[:_LONGEST].encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / f"{kind}-{digest}.json"

    def _keep(self, kind: str, actor: Actor, lasts: timedelta) -> str:
        secret = secrets.token_urlsafe(32)
        until = rfc3339(self.clock.now() + lasts)
        said = {
            "name": actor.name,
            "role": actor.role.value,
            "token": actor.token,
            "until": until,
            "bound": self._bound,
        }
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".new-", dir=self._folder)  # made with mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(said, file)
            Path(name).replace(self._path(kind, secret))
        finally:
            Path(name).unlink(missing_ok=True)
        return secret

    def _read(self, path: Path) -> Actor | None:
        said = _json(path)
        until = _until(said)
        if until is None or until <= self.clock.now() or said.get("bound") != self._bound:
            return None
        try:
            return Actor(str(said["name"]), Role(said["role"]), token=said.get("token"))
        except (KeyError, ValueError):
            return None

    def _forget_old(self) -> None:
        """Remove what has ended, and of the rest what is too much."""
        now = self.clock.now()
        left: list[tuple[datetime, Path]] = []
        for path in self._folder.glob("*.json"):
            until = _until(_json(path))
            if until is None or until <= now:
                path.unlink(missing_ok=True)
            elif path.name.startswith("session-"):
                left.append((until, path))
        for _until_then, path in sorted(left)[: max(0, len(left) - MOST_SESSIONS + 1)]:
            path.unlink(missing_ok=True)


def _json(path: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}


def _until(said: dict[str, Any]) -> datetime | None:
    try:
        return from_rfc3339(str(said["until"]))
    except (KeyError, ValueError):
        return None
