"""Opens a pane for a session: writes its files first, then makes one call to the server."""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from lamplighter.adapters.sessions.records import Record, Records
from lamplighter.adapters.sessions.tmux.client import TmuxAbsent, TmuxClient
from lamplighter.adapters.sessions.tmux.control import LineLost
from lamplighter.adapters.sessions.tmux.panes import FORMAT, LAUNCH, Pane, write_launch
from lamplighter.adapters.sessions.tmux.words import THEN, session_word
from lamplighter.domain.sessions.model import SessionSpec
from lamplighter.kit.clock import Clock

_SIZE = ("-x", "200", "-y", "50")


@dataclass(frozen=True)
class Opening:
    tmux: TmuxClient
    records: Records
    clock: Clock
    city: str

    def record(self, spec: SessionSpec, session_id: str) -> Record:
        def furnish(home: Path) -> None:
            env = dict(spec.env) | record_env
            write_launch(home, spec, env, self.tmux.env)

        now = self.clock.now()
        record_env = Record(spec.name, self.city, session_id, now, "", takes_input=True, process_names=()).env()
        return self.records.create(spec, session_id, now, furnish)

    async def open(
        self, spec: SessionSpec, record: Record, dead: Pane | None, vanished: Callable[[], Awaitable[None]]
    ) -> str:
        """Open it in its dead pane or, if there is none, in a new session; returns the pane's fields.

        `vanished` is awaited before the new session if the dead pane is no longer there.
        """
        if dead is not None:
            with contextlib.suppress(TmuxAbsent):
                return await self._once(spec, record, dead)
            await vanished()
        return await self._once(spec, record, None)

    async def _once(self, spec: SessionSpec, record: Record, dead: Pane | None) -> str:
        """Opens it once even if the answer is lost: a pane that was opened shows the session id of this start."""
        try:
            return await self._open(spec, record, dead)
        except LineLost:
            shown = ("list-panes", "-t", f"={session_word(spec.name)}:", "-F", FORMAT)
            with contextlib.suppress(TmuxAbsent):
                said = await self.tmux.call(*shown)
                if record.session_id in said:
                    return said
            return await self._open(spec, record, dead)

    async def _open(self, spec: SessionSpec, record: Record, dead: Pane | None) -> str:
        """Respawns a dead pane in place, so that a person attached to it stays attached."""
        word = session_word(spec.name)
        script = ("/bin/sh", str(self.records.home(spec.name) / LAUNCH))
        session_id = (THEN, "set-option", "-t", f"={word}:", "@lamp_id", record.session_id)
        if dead is not None:
            pane = f"={word}:.{dead.id}"  # a new server gives the same id to another session's pane
            return await self.tmux.call_once(
                "respawn-pane", "-k", "-t", pane, "-c", spec.work_dir, *script,
                THEN, "clear-history", "-t", pane, *session_id,
                THEN, "list-panes", "-t", f"={word}:", "-F", FORMAT,
            )  # fmt: skip
        return await self.tmux.new_session(
            word, *_SIZE, "-c", spec.work_dir, *script, *session_id,
            THEN, "set-option", "-t", f"={word}:", "@lamp_name", spec.name,
            THEN, "set-option", "-t", f"={word}:", "@lamp_city", self.city,
            THEN, "set-option", "-F", "-t", f"={word}:", "@lamp_pane", "#{pane_id}",
            THEN, "list-panes", "-t", f"={word}:", "-F", FORMAT,
        )  # fmt: skip
