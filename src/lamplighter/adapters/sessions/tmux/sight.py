"""Asks the tmux server for a city's sessions, and derives the state of the programs in them."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lamplighter.adapters.processes.table import Process, identity_of
from lamplighter.adapters.processes.tree import Marks, ProcessTable, members
from lamplighter.adapters.sessions.records import Record, Records
from lamplighter.adapters.sessions.tmux.client import TmuxAbsent, TmuxClient
from lamplighter.adapters.sessions.tmux.panes import FORMAT, Pane, parse_panes
from lamplighter.adapters.sessions.tmux.words import THEN, session_word
from lamplighter.domain.sessions.idle import activity_since
from lamplighter.domain.sessions.model import NOTHING, Seen, SessionName
from lamplighter.kit.clock import Clock
from lamplighter.ports.sessions import ProviderUnavailable

# Pauses between looks at a pane whose program has ended, until the server has reaped it.
_STATUS_WAITS = tuple(timedelta(milliseconds=pause) for pause in (1, 2, 4, 8, 8, 8, 8, 8))
_NAMED_WITHIN = timedelta(seconds=30)


@dataclass
class TmuxSight:
    """`last` holds the panes as they were last seen; a session's pane stays the same for as long as it has one."""

    tmux: TmuxClient
    records: Records
    table: ProcessTable
    clock: Clock
    city: str
    living: Callable[[str], bool] = lambda _session_id: False
    """Whether the program of a start is known to live without looking at its process."""
    last: dict[SessionName, Pane] = field(default_factory=dict)
    occupied: set[SessionName] = field(default_factory=set)
    """Sessions at whose keyboard a person is without a tmux client."""
    _silent: set[str] = field(default_factory=set)  # session ids whose exit status the server will never report

    async def all_panes(self) -> list[Pane]:
        """All panes, listed in one call whatever their number, with the exit statuses of those that ended."""
        panes = await self._with_statuses(await self._panes("-a"), "-a")
        self.last = {pane.name: pane for pane in panes}
        self._silent &= {pane.session_id for pane in panes}
        return panes

    async def pane(self, name: SessionName) -> Pane | None:
        return next(iter(await self._panes(*_of(name))), None)

    async def settled_pane(self, name: SessionName) -> Pane | None:
        """The session's pane, with the exit status if the program ended."""
        found = await self._with_statuses(await self._panes(*_of(name)), *_of(name))
        return next(iter(found), None)

    async def is_dead(self, name: SessionName) -> bool:
        pane = await self.pane(name)
        return pane is None or pane.dead

    def known_dead(self, before: Record | None) -> Pane | None:
        """The pane of the previous start if its program is known to have ended; saves a call to the server."""
        pane = None if before is None else self.last.get(before.name)
        if before is None or pane is None or pane.session_id != before.session_id or pane.pid is None:
            return None
        return pane if identity_of(pane.pid) is None else None

    async def glance(self, name: SessionName, start: str) -> str | None:
        """The text of the pane it was last seen in, by one call; None when that is unknown or not its pane any more."""
        known = self.last.get(name)
        if known is None:
            return None
        try:
            said = await self.tmux.call(
                "display-message", "-p", "-t", known.id, "#{@lamp_city} #{@lamp_name}",
                THEN, "capture-pane", "-p", "-J", "-t", known.id, "-S", start,
            )  # fmt: skip
        except TmuxAbsent:
            return None
        owner, _, text = said.partition("\n")
        return text if owner == f"{self.city} {name}" else None

    async def text(self, pane: Pane, start: str) -> str:
        with contextlib.suppress(TmuxAbsent):
            return await self.tmux.call("capture-pane", "-p", "-J", "-t", pane.id, "-S", start)
        return ""

    # ── the state of programs ─────────────────────────────────────────────────────────────────────────────────────

    async def views(self, panes: Iterable[Pane]) -> list[Seen]:
        found = [(pane, self.records.read(pane.name)) for pane in panes]
        needed = any(_needs_table(pane, record) for pane, record in found)
        table = await self.table.look() if needed else {}
        return [self.view(pane, record, alive=self.alive(pane, record, table)) for pane, record in found]

    def view(self, pane: Pane, record: Record | None, *, alive: bool) -> Seen:
        ours = record is not None and record.session_id == pane.session_id
        started_at = record.started_at if record is not None and ours else pane.created
        return Seen(
            name=pane.name,
            alive=alive,
            session_id=pane.session_id,
            pid=pane.pid,
            exit_status=pane.exit_status,
            started_at=started_at,
            last_activity=activity_since(started_at, pane.activity),
            attached=pane.attached or pane.name in self.occupied,
            meta=self.records.meta(pane.name) if ours else NOTHING,
        )

    def alive(self, pane: Pane, record: Record | None, table: Mapping[int, Process]) -> bool:
        if pane.dead or pane.pid is None:
            return False
        simple = record is None or not _needs_table(pane, record)
        if simple and self.living(pane.session_id):
            return True
        root = identity_of(pane.pid)
        if root is None or record is None or simple:
            return root is not None
        if self.clock.now() - record.started_at < _NAMED_WITHIN:
            return True  # the launching shell may not have reached the agent yet
        names = {process.name for process in members(table, (root,), Marks("", "", ""))}
        return bool(names & set(record.process_names))

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _panes(self, *which: str) -> list[Pane]:
        try:
            return list(parse_panes(await self.tmux.call("list-panes", *which, "-F", FORMAT), self.city))
        except TmuxAbsent:
            return []

    async def _with_statuses(self, panes: list[Pane], *which: str) -> list[Pane]:
        """List the panes again until the server has reaped every program that has ended, or all pauses are used."""
        for count, pause in enumerate(_STATUS_WAITS):
            if not {pane.session_id for pane in panes if self._lacks_status(pane)} - self._silent:
                return panes
            waited = self.clock.wait(asyncio.Event(), at_most=pause)
            await (asyncio.gather(waited, self._stir()) if count else waited)
            panes = await self._panes(*which)
        self._silent |= {pane.session_id for pane in panes if self._lacks_status(pane)}
        return panes

    def _lacks_status(self, pane: Pane) -> bool:
        if pane.exit_status is not None:
            return False
        if pane.dead or pane.pid is None:
            return True
        return not self.living(pane.session_id) and identity_of(pane.pid) is None

    async def _stir(self) -> None:
        """Run a trivial child: the server may miss the end of one that dies early, and reaps both at the next end."""
        with contextlib.suppress(TmuxAbsent, ProviderUnavailable):
            await self.tmux.call("run-shell", "-b", "exit 0")


def _of(name: SessionName) -> tuple[str, ...]:
    return ("-s", "-t", f"={session_word(name)}")


def _needs_table(pane: Pane, record: Record | None) -> bool:
    """Whether the pane's command is none of the agent's process names: a wrapper, or a shell left behind."""
    return record is not None and bool(record.process_names) and pane.command not in record.process_names
