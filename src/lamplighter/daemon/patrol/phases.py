"""The phases that look after agents, in the order of a tick."""

from datetime import timedelta

from lamplighter.daemon.patrol.loop import Patrol
from lamplighter.daemon.ticks import Phase
from lamplighter.kit import log
from lamplighter.kit.errors import Unavailable
from lamplighter.services import beads, sessions

TEND_EVERY = timedelta(minutes=1)
HOURLY = timedelta(hours=1)


def agent_phases(patrol: Patrol) -> list[Phase]:
    """The phases for the patrol's present configuration; new beads wake the pool checks, not a look at all sessions."""
    phases = [Phase("agents", patrol.tick, topics=(sessions.TOPIC,))]
    if patrol.roster.pools:

        async def ask() -> None:
            patrol.demand.refresh(patrol.roster.loaded, patrol.roster.pools, patrol.roster.city.daemon.patrol_interval)

        phases.append(Phase("pools", ask, topics=(beads.TOPIC,)))
    phases.append(Phase("sessions", lambda: _cleanup(patrol), at_most_every=TEND_EVERY))
    keep = patrol.roster.city.retention.events
    if keep:
        phases.append(Phase("starts", lambda: _prune(patrol, keep), at_most_every=HOURLY))
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
    pruned = await patrol.patrol_history.store.transact(sessions.prune, before=patrol.clock.now() - keep)
    if pruned:
        log.get().info("sessions.pruned", count=pruned)
    return pruned
