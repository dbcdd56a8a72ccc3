"""The phases that look after agents, in the order of a tick."""

from datetime import timedelta

from lamplighter.daemon.patrol.loop import Patrol
from lamplighter.daemon.ticks import Phase
from lamplighter.kit import log
from lamplighter.kit.errors import Unavailable
from lamplighter.services import retention, sessions
from lamplighter.services.beads import changes as beads

TEND_EVERY = timedelta(minutes=1)
BATCHES_A_TICK = 20


def agent_phases(patrol: Patrol) -> list[Phase]:
    """The phases for the patrol's present configuration; new beads wake the pool checks, not a look at all sessions."""
    phases = [Phase("agents", patrol.tick, topics=(sessions.TOPIC,))]
    if patrol.roster.pools:

        async def ask() -> None:
            patrol.demand.refresh(patrol.roster.loaded, patrol.roster.pools, patrol.roster.city.daemon.patrol_interval)

        phases.append(Phase("pools", ask, topics=(beads.TOPIC,)))
    phases.append(Phase("sessions", lambda: _cleanup(patrol), at_most_every=TEND_EVERY))
    settings = patrol.roster.city.retention
    if settings.events:
        pause = retention.pause(settings)
        phases.append(Phase("starts", lambda: _prune(patrol, settings.events), at_most_every=pause))
    return phases


async def _cleanup(patrol: Patrol) -> None:
    try:
        await patrol.provider.cleanup()
    except OSError as error:
        raise Unavailable(
            f"The outputs of sessions cannot be kept short: {error.filename}: {error.strerror}.",
            hint="Check the disk and the owner of .gc; agents run on.",
        ) from error


async def _prune(patrol: Patrol, keep: timedelta) -> int:
    pruned, before = 0, patrol.clock.now() - keep
    for _ in range(BATCHES_A_TICK):
        count = await patrol.patrol_history.store.transact(sessions.prune, before=before)
        pruned += count
        if count < sessions.PRUNE_AT_ONCE:
            break
    if pruned:
        log.get().info("sessions.pruned", count=pruned)
    return pruned
