"""Builds the loops that fire and run a city's automations, and the loop that asks providers what happened."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lamplighter.adapters.files.formulas import read_formula
from lamplighter.adapters.github.api import GitHub
from lamplighter.adapters.processes.memory import available_memory
from lamplighter.adapters.slack.attachments import Attachments
from lamplighter.adapters.slack.socket_mode import SlackDial, can_listen
from lamplighter.adapters.slack.web_api import SlackWebApi
from lamplighter.app.agent_runs import agents_of
from lamplighter.app.automations import command_parent, command_runner, rules_of
from lamplighter.app.fronts import with_fronts
from lamplighter.app.notices import messenger_of
from lamplighter.app.open_beads import bead_store
from lamplighter.app.secrets import box_of
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.automation_loops import AutomationLoops, Outside
from lamplighter.daemon.pipeline.agent_sessions import at_once
from lamplighter.daemon.pipeline.slack import SlackOutside
from lamplighter.daemon.polls import Polls
from lamplighter.daemon.traces import Handing
from lamplighter.domain.beads.formulas import Formula
from lamplighter.domain.city.model import City
from lamplighter.domain.runs.tracing import senders
from lamplighter.ports.traces import SpanSink
from lamplighter.services.runs import review
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.services.slack.workspaces import Workspaces
from lamplighter.store.tx import Store


@dataclass(frozen=True)
class Tools:
    """Where the tools of agents are served, None for nowhere; `ready` returns once they are, without any delay.

    `sink` is where the spans of runs go, if anywhere.
    """

    url: Callable[[], str | None] = lambda: None
    ready: Callable[[], Awaitable[None]] = at_once
    sink: SpanSink | None = None


def loops_of(
    opened: OpenCity,
    city: City,
    *,
    store: Store,
    me: review.Worker,
    only: str | None = None,
    tools: Tools | None = None,
) -> AutomationLoops:
    """The loops of one process of the city; `me` owns its leases."""
    given = tools or Tools()
    secrets = StoredSecrets(store, box_of(opened))
    workspaces = Workspaces(store, secrets)
    outside = Outside(
        runner=command_runner(opened.paths, opened.clock, opened.ids),
        formula=lambda name, rig: _formula(loops.active.city, name, rig),
        beads=lambda: bead_store(opened),
        env=command_parent(with_fronts(opened, city)),
        agents=agents_of(opened, city, given.url, given.ready),
        messenger=messenger_of(
            opened,
            lambda: command_parent(with_fronts(opened, city)),
            secrets,
            workspaces,
            lambda: loops.active.city,
        ),
        secrets=secrets,
        memory=available_memory,
        slack=SlackOutside(
            workspaces,
            SlackWebApi.of(opened.settings.env),
            SlackDial() if can_listen() else None,
            Attachments(opened.paths.runtime / "slack", opened.clock).keep,
        ),
        handed=senders if given.sink is None else Handing(given.sink),
    )
    loops = AutomationLoops.build(
        city, rules_of(city, opened.settings.env), outside,
        store=store, clock=opened.clock, ids=opened.ids, me=me, only=only,
    )  # fmt: skip
    return loops


def _formula(city: City, name: str, rig: str | None) -> Formula:
    return read_formula(name, city.layers.of(rig) if rig else city.layers.city)


def polls_of(opened: OpenCity, store: Store) -> Polls:
    source = GitHub(opened.paths.root, command_parent(opened.settings.env))
    return Polls(store, opened.clock, opened.ids, source, StoredSecrets(store, box_of(opened)))
