"""How a run is carried out, read anew from the configuration that is in force."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.run_tokens import NOT_OPENED, RunTokens
from lamplighter.domain.city.run_plan import CannotRun, RunPlan
from lamplighter.domain.runs.model import Run
from lamplighter.domain.secrets import SecretLocked, SecretUnknown
from lamplighter.kit import log
from lamplighter.ports.run_workshop import RunWorkshop
from lamplighter.services.runs import planning, review
from lamplighter.store.tx import Store


@dataclass(frozen=True)
class RunPlans:
    store: Store
    active: ActiveConfig
    workshop: RunWorkshop

    async def plan(self, row: Run, *, instead: bool = False) -> RunPlan:
        """The run's plan, its secrets opened, with the fallback `instead` of what is named first.

        Raises CannotRun, also for a secret that is not there or cannot be opened.
        """
        chosen = None if row.configuration is None else await self.store.read(planning.chosen, row)
        # In a thread: it searches PATH for programs, and PATH may include slow disks.
        try:
            plan = await asyncio.to_thread(
                planning.plan_of, self.active.city, row, chosen, self.workshop.installed, instead=instead
            )
        except CannotRun as error:
            if error.reason != "program_missing":
                raise
            raise CannotRun(
                error.reason, f"{error.message} {error.hint}"
            ) from error  # trying again alone mends nothing
        tokens = {} if plan.speaks_to else await self._tokens(row)
        return replace(plan, env={**tokens, **await self._opened(plan.env)})

    async def in_full(self, plan: RunPlan, env: Mapping[str, str]) -> dict[str, str]:
        """The environment of a session with the secrets that its program's own declaration refers to.

        What comes from the plan is opened already, and is left as it is. Raises CannotRun.
        """
        left = {name: value for name, value in env.items() if plan.env.get(name) != value}
        return {**env, **await self._opened(left)}

    async def _opened(self, env: Mapping[str, str]) -> dict[str, str]:
        """Raises CannotRun for a secret that is not there or cannot be opened."""
        try:
            return await self.active.secrets.opened(env)
        except (SecretUnknown, SecretLocked) as error:
            raise CannotRun(error.reason, error.message, hint=error.hint) from error

    async def _tokens(self, row: Run) -> dict[str, str]:
        """Raises CannotRun."""
        try:
            return await RunTokens(self.store, self.active).env(review.snapshots_of(row))
        except NOT_OPENED as error:
            raise CannotRun(error.reason, error.message, hint=error.hint) from error

    async def plan_if_any(self, row: Run) -> RunPlan | None:
        """None if the run can no longer be planned: its session goes on even if its configuration changed meanwhile."""
        try:
            return await self.plan(row)
        except CannotRun as error:
            log.get().warning("run.plan_gone", run=row.id, error=error.message)
            return None
