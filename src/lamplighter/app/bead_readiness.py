"""Makes the bead store ready at the start, and tries again for as long as it is not; agents do not wait for it."""

import asyncio
from datetime import timedelta

from lamplighter.adapters.files.formula_links import link_formulas
from lamplighter.app.beads import bead_provider
from lamplighter.app.open_beads import open_beads
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.ticks import Phase
from lamplighter.kit import log
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.tasks import spawn

PATIENCE_SECONDS = 5.0
AGAIN = timedelta(seconds=30)


class BeadReadiness:
    """`city` is an open city of its own, which is closed after each try."""

    def __init__(self, city: OpenCity) -> None:
        self._city = city
        self._ready = False
        self._trying: asyncio.Task[LampError | None] | None = None

    async def begin(self) -> None:
        """The first try, before agents start; one that fails or takes long is only logged."""
        try:
            await self._try()
        except LampError as error:
            log.get().warning("beads.not_ready", error=error.message, hint=error.hint)

    def phase(self) -> Phase:
        return Phase("bead store", self.tick, at_most_every=AGAIN)

    async def tick(self) -> None:
        """Try again unless it is ready; with `bd` also link the formulas. Raises what stands in the way."""
        await self._try()

    async def _try(self) -> None:
        if self._trying is None:
            self._trying = spawn(self._tried(), name="bead store")
        task = self._trying
        done, _ = await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
        if not done:
            raise Unavailable(
                "The bead store is not ready yet; agents and automations run without it.",
                hint="Look at the program that [beads] provider in city.toml names.",
            )
        self._trying = None
        error = task.result()
        if error is not None:
            raise error

    async def _tried(self) -> LampError | None:
        try:
            await asyncio.to_thread(self._make_ready)
        except LampError as error:
            return error
        return None

    def _make_ready(self) -> None:
        if not self._ready:
            try:
                open_beads(self._city)
            finally:
                self._city.close()
            self._ready = True
        if bead_provider(self._city) == "bd":
            link_formulas(self._city.config.city)
