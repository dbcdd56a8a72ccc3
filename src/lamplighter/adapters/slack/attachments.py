"""Files that people send along in Slack: kept below `.gc/slack` for agents to read, and forgotten after a while."""

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Unavailable

KEPT_S = 14 * 24 * 3600
LONGEST_NAME = 100
_KEPT = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


@dataclass(frozen=True)
class Attachments:
    root: Path
    clock: Clock

    def keep(self, folder: str, name: str, data: bytes) -> str:
        """Where it is kept. A file that is there already is replaced. Raises Unavailable."""
        below = self.root / safe(folder)
        try:
            below.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = below / safe(name)
            path.write_bytes(data)
            path.chmod(0o600)
            self._forget_old()
        except OSError as error:
            told = f"A file from Slack cannot be kept in {below}: {error.strerror}."
            raise Unavailable(told, hint="Make room, or let the city write there.") from error
        return str(path)

    def _forget_old(self) -> None:
        now = self.clock.now().timestamp()
        for one in self.root.iterdir():
            with contextlib.suppress(OSError):  # another message's files were kept at once, and it was forgotten there
                if now - one.stat().st_mtime > KEPT_S:
                    shutil.rmtree(one, ignore_errors=True)


def safe(name: str) -> str:
    """A name that leads nowhere else. A long one keeps how it begins, which tells it apart, and its suffix."""
    found = "".join(sign if sign in _KEPT else "_" for sign in name).lstrip(".")
    return (found if len(found) <= LONGEST_NAME else found[:20] + found[20 - LONGEST_NAME :]) or "file"
