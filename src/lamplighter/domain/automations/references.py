"""What an automation names outside its own definition: configurations, a preset, a formula, a pool, a rig."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field

from lamplighter.domain.automations.model import AgentAction, Automation, Formula, Webhook
from lamplighter.domain.automations.reading import Problem
from lamplighter.domain.delivery_fields import Provider, filters_of
from lamplighter.domain.secrets import references
from lamplighter.kit.kept_back import CONNECTION
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.records import record


@record
class Known:
    """What there is to be named. `formula` says why an action's formula cannot be cooked in a rig; else empty."""

    configurations: Collection[str]
    presets: Collection[str]
    rigs: Collection[str]
    pools: Collection[str]
    formula: Callable[[Formula, str | None], str]
    connections: Mapping[str, Provider] = field(default_factory=dict)
    """Where deliveries come in, each with its provider."""
    useless: Mapping[str, str] = field(default_factory=dict)
    """Why a connection has nothing that a run could use, for those that have nothing."""
    secrets: Collection[str] = ()
    cannot_plan: Callable[[AgentAction], str] = lambda _action: ""
    """Why the agent program of an action cannot make a plan to be approved; empty if it can, or is not known yet."""
    session: Callable[[str], str] = lambda _name: ""
    """Why a session or run has no conversation to go on with; empty if it has."""
    agent: Callable[[str, str | None], str] = lambda _name, _rig: ""
    """Why nothing can be told to the agent of that name, as a rig sees it; empty if it can."""
    mode_refused: Callable[[AgentAction], str] = lambda _action: ""
    """Why the agent program of an action cannot complete a run in its mode; empty if it can, or is not known yet."""


def unknown_names(automation: Automation, known: Known) -> list[Problem]:
    """What no run of the automation could work with, each with the key of the file that names it."""
    return list(_unknown(automation, known))


def unknown_pool(automation: Automation, known: Known) -> Problem | None:
    """A pool that no agent of the city is: its wisps wait until something else takes them by their label."""
    pool = automation.pool
    if pool is None or pool in known.pools:
        return None
    return Problem("pool", f"no agent of the city is the pool `{pool}`{did_you_mean(pool, known.pools)}")


def _unknown(automation: Automation, known: Known) -> Iterator[Problem]:
    rig, action = automation.rig, automation.action
    if rig is not None and rig not in known.rigs:
        yield Problem("rig", f"there is no rig `{rig}`{did_you_mean(rig, known.rigs)}")
        return
    if isinstance(action, Formula):
        wrong = known.formula(action, rig)
        if wrong:
            yield Problem("formula", wrong)
    elif isinstance(action, AgentAction):
        yield from _unknown_of_agent(action, rig, known)
        if automation.policies.approve is not None and (why := known.cannot_plan(action)):
            yield Problem("approve", why)
    for variable, secret in references(automation.policies.env).items():
        if secret not in known.secrets:
            near = did_you_mean(secret, known.secrets)
            yield Problem(f"env.{variable}", f"there is no secret `{secret}`{near}")
    yield from _useless_connections(automation, known)
    for trigger in automation.triggers:
        if isinstance(trigger.gate, Webhook):
            yield from _unknown_of_hook(trigger.gate, known)


def _useless_connections(automation: Automation, known: Known) -> Iterator[Problem]:
    listed = automation.policies.connections or ()
    variables: dict[str, str] = {}
    for name in listed:
        if name not in known.connections:
            near = did_you_mean(name, known.connections)
            yield Problem("connections", f"there is no connection `{name}`{near}")
            continue
        if name in known.useless:
            yield Problem("connections", f"`{name}` has nothing that a run could use: {known.useless[name]}")
        other = variables.setdefault(token_variable(name), name)
        if other != name:
            yield Problem("connections", f"the tokens of `{other}` and `{name}` would be the same variable")


def token_variable(connection: str) -> str:
    """The variable in which a run's programs find the token of that connection."""
    return f"{CONNECTION}{re.sub('[^A-Z0-9]', '_', connection.upper())}_TOKEN"


def _unknown_of_hook(gate: Webhook, known: Known) -> Iterator[Problem]:
    provider = known.connections.get(gate.connection)
    if provider is None:
        near = did_you_mean(gate.connection, known.connections)
        told = f"there is no connection `{gate.connection}`, so nothing can be delivered to it{near}"
        yield Problem("connection", told)
        return
    offered = filters_of(provider)
    for name in gate.filter:
        if name not in offered:
            kept = ", ".join(sorted(offered)) or "none; use `match`"
            yield Problem(f"filter.{name}", f"deliveries of {provider} have no such field; there are {kept}")


def _unknown_of_agent(action: AgentAction, rig: str | None, known: Known) -> Iterator[Problem]:
    named = [("configuration", action.configuration), ("fallback", action.fallback)]
    named += [("configurations", one) for one in action.configurations]
    for key, name in named:
        if name is not None and name not in known.configurations:
            near = did_you_mean(name, known.configurations)
            yield Problem(f"agent.{key}", f"there is no configuration `{name}`{near}")
    for key, name in (("preset", action.preset), ("fallback_preset", action.fallback_preset)):
        if name is not None and name not in known.presets:
            near = did_you_mean(name, known.presets)
            yield Problem(f"agent.{key}", f"there is no preset `{name}`{near}")
    if why := known.mode_refused(action):
        yield Problem("agent.mode", why)
    if action.session is not None and (why := known.session(action.session)):
        yield Problem("agent.session", why)
    if action.agent is not None and (why := known.agent(action.agent, rig)):
        yield Problem("agent.agent", why)
