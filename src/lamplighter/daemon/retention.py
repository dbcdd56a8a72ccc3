"""Retention of what runs leave behind: session outputs, artifacts, worktrees and the ledger of side effects."""

from dataclasses import dataclass
from datetime import timedelta

from lamplighter.daemon.pipeline.agent_sessions import AgentRuns
from lamplighter.daemon.ticks import Phase
from lamplighter.domain.city.model import City
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.ports.artifacts import ArtifactStore
from lamplighter.services import retention
from lamplighter.services.runs import artifacts
from lamplighter.services.worktrees import is_awaited, left_behind
from lamplighter.store.tx import Store

OUTPUTS_EVERY = timedelta(minutes=1)
WORKTREES_AT_ONCE = 20
MEASURED_AT_ONCE = 1000
SIZE_EVERY = timedelta(minutes=10)
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class RunRetention:
    store: Store
    clock: Clock
    agents: AgentRuns
    artifacts: ArtifactStore

    def phases(self, city: City) -> list[Phase]:
        """These come before the phase that prunes runs, because only a run's row names what the run left behind."""
        return [*self.of_node(city), *self.of_city(city)]

    def of_node(self, city: City) -> list[Phase]:
        """Phases for files, which only the node that has them can prune."""
        found = [Phase("run_outputs", self._cleanup, at_most_every=OUTPUTS_EVERY)]
        kept = city.retention

        async def discard_worktrees() -> int:
            return await self.discard_worktrees(kept.artifacts or kept.runs)

        async def bound_worktrees() -> int:
            return await self.bound_worktrees(kept.worktrees_mb * MEGABYTE)

        if kept.artifacts or kept.runs:
            found.append(Phase("retention_worktrees", discard_worktrees, at_most_every=retention.pause(kept)))
        if kept.worktrees_mb:
            found.append(Phase("retention_worktree_size", bound_worktrees, at_most_every=SIZE_EVERY))
        return found

    def of_city(self, city: City) -> list[Phase]:
        kept = city.retention
        found = []

        async def prune_artifacts() -> int:
            return await self.prune_artifacts(kept.artifacts)

        async def prune_effects() -> int:
            return await self.prune_effects(kept.runs)

        if kept.artifacts:
            found.append(Phase("retention_artifacts", prune_artifacts, at_most_every=retention.pause(kept)))
        if kept.runs:
            found.append(Phase("retention_effects", prune_effects, at_most_every=retention.pause(kept)))
        return found

    async def prune_artifacts(self, keep: timedelta) -> int:
        """Delete each artifact before its record, so that a failed deletion is tried again."""
        old = await self.store.read(artifacts.old, before=self.clock.now() - keep)
        for row in old:
            await self.artifacts.delete(row.key)
            await self.store.transact(artifacts.forget, row)
        if old:
            log.get().info("artifacts.pruned", count=len(old))
        return len(old)

    async def prune_effects(self, keep: timedelta) -> int:
        return await self.store.transact(retention.prune_effects, before=self.clock.now() - keep)

    async def discard_worktrees(self, keep: timedelta) -> int:
        """Remove worktrees that this node's runs, ended at least `keep` ago, still have; returns how many were tried.

        Uncommitted changes are lost; commits stay on their branches.
        """
        before, node = self.clock.now() - keep, self.agents.me.node
        rows = await self.store.read(left_behind, node, before=before, limit=WORKTREES_AT_ONCE)
        for row in rows:
            try:
                await self.agents.places.discard(row)
            except LampError as error:
                log.get().warning("worktree.not_discarded", run=row.id, error=error.message)
        return len(rows)

    async def bound_worktrees(self, most: int) -> int:
        """Bring the worktrees of this node's ended runs to `most` bytes together; returns how many were changed.

        Of the oldest first goes what a setup makes anew, then the worktree: uncommitted changes are lost, commits stay
        on their branches. Those that wait for an answer are left as they are.
        """
        now, node = self.clock.now(), self.agents.me.node
        rows = await self.store.read(left_behind, node, before=now, limit=MEASURED_AT_ONCE)
        sizes = {row.id: await self.agents.places.size(row) for row in rows if not is_awaited(row)}
        total, changed = sum(sizes.values()), 0
        for make_smaller in (self.agents.places.shed, self.agents.places.discard):
            for row in (row for row in rows if row.id in sizes):
                if total <= most:
                    return changed
                try:
                    await make_smaller(row)
                except LampError as error:
                    log.get().warning("worktree.not_discarded", run=row.id, error=error.message)
                    continue
                now_has = await self.agents.places.size(row)
                changed += now_has != sizes[row.id]
                total, sizes[row.id] = total - sizes[row.id] + now_has, now_has
        return changed

    async def _cleanup(self) -> None:
        try:
            await self.agents.sessions.cleanup()
        except OSError as error:
            raise Unavailable(f"Outputs of runs cannot be kept short: {error.filename}: {error.strerror}.") from error
