"""Decides about a wanted session that is not alive: start it, or say why not yet."""

from lamplighter.domain.sessions.actions import (
    Action,
    AgentState,
    Decision,
    NoteEnd,
    Quarantine,
    Start,
    StartReason,
    Verdict,
)
from lamplighter.domain.sessions.crashes import next_start, quarantine_reason, quarantined_until, starts_in_window
from lamplighter.domain.sessions.model import Seen
from lamplighter.domain.sessions.outlook import Outlook, WantedAgent


def decide(outlook: Outlook, agent: WantedAgent, zombie: Seen | None) -> Decision:
    """Record the end first; then start the session unless quarantine, the relight delay or a dependency forbids it."""
    noted = _noted_end(outlook, agent, zombie)
    history = outlook.past(agent.session)
    if noted:
        history = history.ended(outlook.now, wished=outlook.has_drained(agent.session))
    until = quarantined_until(history, outlook.wanted.limit, outlook.now)
    if until is not None:
        starts = len(starts_in_window(history, outlook.wanted.limit, outlook.now))
        told = () if history.quarantine_noted == until else (Quarantine(agent.session, agent.agent, starts, until),)
        reason = quarantine_reason(history, outlook.wanted.limit, outlook.now)
        return Decision(Verdict(agent.agent, AgentState.QUARANTINED, reason, until), noted + told)
    due = next_start(history, outlook.now)
    if due > outlook.now:
        return Decision(Verdict(agent.agent, AgentState.CRASHED, "waits before it is started again", due), noted)
    if former := outlook.former_session(agent):
        return Decision(Verdict(agent.agent, AgentState.STOPPED, f"waits for the end of its session {former}"), noted)
    if awaited := outlook.waits_for(agent):
        return Decision(Verdict(agent.agent, AgentState.STOPPED, f"waits for {awaited}"), noted)
    reason = _reason(outlook, agent, zombie)
    start = Start(agent.session, agent.agent, reason)
    return Decision(Verdict(agent.agent, AgentState.STARTING, reason), (*noted, start))


def _noted_end(outlook: Outlook, agent: WantedAgent, zombie: Seen | None) -> tuple[Action, ...]:
    history = outlook.past(agent.session)
    open_life = bool(history.lives) and history.lives[-1].ended_at is None
    new_zombie = zombie is not None and history.crash_noted != zombie.session_id
    if not open_life and not new_zombie:
        return ()
    session_id = zombie.session_id if zombie else ""
    status = zombie.exit_status if zombie else None
    drained = outlook.has_drained(agent.session)
    return (NoteEnd(agent.session, agent.agent, session_id, status, has_output=zombie is not None, drained=drained),)


def _reason(outlook: Outlook, agent: WantedAgent, zombie: Seen | None) -> StartReason:
    lives = outlook.past(agent.session).lives
    open_life = bool(lives) and lives[-1].ended_at is None
    if outlook.has_drained(agent.session) and (open_life or zombie is not None):
        return StartReason.DRAINED
    if zombie is not None or (lives and not lives[-1].wished):
        return StartReason.CRASH_RECOVERY
    if agent.is_pool:
        return StartReason.SCALE_UP
    return StartReason.WANTED_AGAIN if lives else StartReason.INITIAL
