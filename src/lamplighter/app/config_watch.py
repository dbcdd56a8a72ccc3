"""Tells the reloader of a controller or worker that the city's files changed."""

from dataclasses import dataclass

from lamplighter.adapters.files.watch import Watch
from lamplighter.daemon.reload import Reloader
from lamplighter.daemon.ticks import Phase, Ticks
from lamplighter.kit.tasks import spawn

PHASE = "reload"


@dataclass
class ConfigWatch:
    watch: Watch
    reloader: Reloader
    ticks: Ticks

    def phase(self) -> Phase:
        return Phase(PHASE, self.reloader.tick)

    async def run(self) -> None:
        early = spawn(self._look_when_ready(), name="watch is ready")
        try:
            async for _ in self.watch.changes():
                self._look()
        finally:
            early.cancel()

    async def stop(self) -> None:
        self.watch.close()

    async def _look_when_ready(self) -> None:
        """Look once when the watch is ready: it misses changes made between loading the files and its start."""
        await self.watch.ready.wait()
        self._look()

    def _look(self) -> None:
        self.reloader.touch()
        self.ticks.wake_phase(PHASE)
