"""The logins of runs: whether a run may start while one does not work, and what a run's end says about its login."""

import asyncio
from dataclasses import dataclass, replace

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.run_plans import RunPlans
from lamplighter.domain.city.run_plan import CannotRun, RunPlan
from lamplighter.domain.runs.model import Run
from lamplighter.domain.sessions import logins
from lamplighter.domain.sessions.logins import GiveUp, Go, Login, LoginState, Wait, Waiting
from lamplighter.domain.sessions.presets.troubles import Heard, TroubleKind, recognise
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError
from lamplighter.ports.run_workshop import LoginSeen, RunWorkshop
from lamplighter.services.logins import sign_in
from lamplighter.services.runs import review
from lamplighter.store.tx import Store


@dataclass(frozen=True)
class Admission:
    """What becomes of a run before its start, and whether it is started with the fallback that is named for it."""

    decision: logins.Decision
    fallback: bool = False


class NotSignedIn(LampError):
    """A program that says before its start that it has no login."""

    def __init__(self, title: str, login: Login) -> None:
        super().__init__(f"{title} is not signed in ({login.key.home}).", hint=sign_in(login.key.preset))
        self.login = login


@dataclass(frozen=True)
class RunLogins:
    store: Store
    clock: Clock
    active: ActiveConfig
    me: review.Worker
    workshop: RunWorkshop
    plans: RunPlans

    async def admission(self, row: Run, waiting: Waiting, known: tuple[Login, ...]) -> Admission:
        """Whether a run may start while these logins do not work."""
        try:
            plan = await self.plans.plan(row)
        except CannotRun:
            return Admission(Go())  # its start fails, and tells why
        first = await self._by_login(plan, waiting, known)
        limited = not isinstance(first, Go) and first.why.state is LoginState.LIMITED
        if limited and plan.fallback:
            try:
                other = await self.plans.plan(row, instead=True)
            except CannotRun as error:
                log.get().warning("run.no_fallback", run=row.id, error=error.message)
            else:
                second = await self._by_login(other, waiting, known)
                if isinstance(second, Go):
                    return Admission(second, fallback=True)
        return Admission(first)

    async def counted_as(self, row: Run, *, fallback: bool) -> tuple[str, str]:
        """The preset and the login that the run would work with; nothing for one that cannot be planned."""
        try:
            plan = await self.plans.plan(row, instead=fallback)
        except CannotRun:
            return "", ""  # its start fails, and tells why
        seen = await self._login(plan)
        login = "" if seen is None else f"{seen.key.home} {seen.key.account} {seen.key.node}"
        return plan.preset.name, login

    async def _by_login(self, plan: RunPlan, waiting: Waiting, known: tuple[Login, ...]) -> logins.Decision:
        """A refused login is tried by a run only if the program, where it can be asked, does not deny it."""
        seen = await self._login(plan)
        held = None if seen is None else logins.in_the_way(known, seen.key, plan.model)
        now = self.clock.now()
        decision = logins.decide(held, "" if seen is None else seen.marks, waiting, now)
        if not isinstance(decision, Go) or decision.tries is None or seen is None or waiting.by_hand:
            return decision
        if await asyncio.to_thread(self.workshop.asked, self.active.city, plan) is not False:
            return decision
        await self.store.transact(lambda tx: tx.logins.looked(seen.key, seen.marks, now))
        if now >= waiting.give_up_at:
            return GiveUp(decision.tries)
        return Wait(min(now + logins.CHECK_EVERY, waiting.give_up_at), decision.tries)

    async def must_be_signed_in(self, plan: RunPlan) -> None:
        """Raises NotSignedIn if the program, asked before its first run with this login, says that it is not."""
        if plan.preset.login is None or not plan.preset.login.ask:
            return
        seen = await self._login(plan)
        known = await self.store.read(lambda tx: tx.logins.all())
        if seen is None or any(one.key == seen.key for one in known):
            return  # it worked before, or a run tries it on purpose
        if await asyncio.to_thread(self.workshop.asked, self.active.city, plan) is False:
            raise NotSignedIn(plan.preset.title, self._refused(seen, "It is not signed in."))

    async def explained(self, row: Run, ending: review.Ending, tail: str, heard: Heard | None) -> review.Ending:
        """The ending with its reason, if the program says that its login or a limit kept it from working.

        `heard` has followed all that it printed; `tail` is the end of it.
        """
        plan = await self.plans.plan_if_any(row)
        if plan is None:
            return ending
        now, zone = self.clock.now(), self.active.rules.zone
        trouble = None if heard is None else heard.trouble(now, zone)
        trouble = trouble or recognise(plan.preset, tail, ending.exit_code, now, zone)
        seen = None if trouble is None else await self._login(plan)
        if trouble is None or seen is None:
            return ending
        found = self._refused(seen, trouble.message)
        if trouble.kind is TroubleKind.LIMIT:
            found = replace(
                found, state=LoginState.LIMITED, until=trouble.lifts_at, model=plan.model, looked_at=None, marks=""
            )
        return replace(ending, reason=trouble.kind.value, error=trouble.message, login=found)

    async def _login(self, plan: RunPlan) -> LoginSeen | None:
        return await asyncio.to_thread(self.workshop.login, self.active.city, plan, self.me.node)

    def _refused(self, seen: LoginSeen, detail: str) -> Login:
        return Login(seen.key, LoginState.REFUSED, self.clock.now(), detail=detail, marks=seen.marks)
