"""Runs that speak into a conversation that exists: which one the definition of an automation names."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lamplighter.domain.automations.model import AgentAction, Automation
from lamplighter.domain.city.model import City
from lamplighter.domain.city.planners import not_spoken_to
from lamplighter.domain.runs.completion import run_id
from lamplighter.domain.runs.model import Run
from lamplighter.services.automations import snapshots
from lamplighter.store.tx import Tx

MOST_LOOKED_AT = 5000


def run_of_session(tx: Tx, name: str) -> str | None:
    """A run of the conversation that a session or a run belongs to; None if there is none."""
    found = run_id(name)
    if found is None:
        session = tx.sessions.get(name)
        found = None if session is None else session.run
    return found if found is not None and tx.runs.get(found) is not None else None


def no_conversation(tx: Tx, name: str) -> str:
    """Why that session or run has no conversation to go on with; empty if it has."""
    found = run_of_session(tx, name)
    run = None if found is None else tx.runs.get(found)
    if run is not None:
        if run.action != AgentAction.kind:
            return f"run `{found}` is no agent's, so it has no conversation"
        told = speaks_to(run)
        return "" if told is None else f"run `{found}` was told to the agent `{told}`; name that as `agent`"
    session = tx.sessions.get(name)
    if session is not None and session.agent is not None:
        return f"`{name}` is a session of the agent `{session.agent}`; name that as `agent`"
    return f"there is no session or run `{name}`; `lamp session list --all` shows the sessions there were"


def speaks_to(run: Run) -> str | None:
    """The agent of the city that the run was told to; None if it has a program of its own."""
    return snapshots.read(json.dumps(run.definition)).speaks_to


def led_nowhere(tx: Tx, city: City) -> list[str]:
    """What automations name of agents that `city` does not have, and of sessions that are gone, a sentence each."""
    found = []
    for row in tx.automations.page(limit=MOST_LOOKED_AT):
        if row.definition is None:
            continue
        automation = snapshots.of_row(row)
        if automation.speaks_to is not None and (why := not_spoken_to(city, automation.speaks_to, automation.rig)):
            found.append(f"automation {row.scoped_name}: agent.agent: {why}")
        if automation.session is not None and (why := no_conversation(tx, automation.session)):
            found.append(f"automation {row.scoped_name}: agent.session: {why}")
    return found


def into(before: Run, automation: Automation, own: Mapping[str, Any]) -> Mapping[str, Any]:
    """The definition of a run that speaks into the conversation of `before`: where and with what that works, and what
    the automation itself asks and bounds. `own` is the automation's, which is returned where nothing differs.
    """
    action, other = automation.action, snapshots.read(json.dumps(before.definition))
    if not isinstance(action, AgentAction) or not isinstance(other.action, AgentAction):
        return own
    theirs = other.action
    made = replace(
        theirs,
        prompt=action.prompt,
        prompt_file=action.prompt_file,
        includes=action.includes,
        session=action.session,
        agent=None,
        model=action.model or theirs.model,
        mode=action.mode or theirs.mode,
        effort=action.effort or theirs.effort,
    )
    env = {**other.policies.env, **automation.policies.env}
    both = replace(automation, action=made, rig=other.rig, policies=replace(automation.policies, env=env))
    return json.loads(snapshots.written(both))  # type: ignore[no-any-return]  # what was written as one
