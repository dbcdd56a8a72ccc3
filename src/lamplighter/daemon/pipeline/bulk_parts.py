"""Works off the parts of bulk actions, run by run."""

from collections.abc import Callable
from dataclasses import dataclass

from lamplighter.domain.delivery.outbox import Item, NotClaimed
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.kit.records import changed
from lamplighter.services.bulk import working
from lamplighter.services.context import Configured, Context, acting
from lamplighter.store.errors import StoreCorrupt, StoreNewer
from lamplighter.store.tx import Store


@dataclass(frozen=True)
class BulkParts:
    store: Store
    clock: Clock
    ids: IdSource
    actor: str
    configured: Callable[[], Configured]
    """The configuration in force, which operations such as a retry look at."""

    async def work(self, item: Item) -> None:
        """May be repeated: a run that is done is not tried again. Raises NotClaimed, StoreUnavailable."""
        for number in await self.store.read(working.waiting, item):
            crash_point(CrashPoint.BULK_BEFORE_RUN)
            if not await self._one(item, number):
                break
            crash_point(CrashPoint.BULK_AFTER_RUN)
        await self.store.transact(working.finish, item, ctx=self._context())

    async def _one(self, item: Item, number: int) -> bool:
        """False if the bulk action was aborted. What refuses one run, also a bug, does not keep it from the others."""
        try:
            return await self.store.transact(working.carry_out, item, number, ctx=self._context())
        except (NotClaimed, Unavailable, StoreCorrupt, StoreNewer):
            raise
        except LampError as error:
            reason = error.message
        except Exception as error:  # noqa: BLE001  it is kept as the result of that run
            log.get().error("bulk.failed", item=item.id, number=number, exc_info=error)
            reason = f"It failed by a defect of Lamplighter: {type(error).__name__}: {error}"
        await self.store.transact(working.refuse, item, number, reason, ctx=self._context())
        return True

    def _context(self) -> Context:
        return changed(acting(self.actor, self.clock.now(), self.ids), configured=self.configured())
