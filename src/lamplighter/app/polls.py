"""Builds the loop that asks providers what happened."""

from lamplighter.adapters.github.api import GitHub
from lamplighter.app.automations import command_parent
from lamplighter.app.secrets import box_of
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.polls import Polls
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.store.tx import Store


def polls_of(opened: OpenCity, store: Store) -> Polls:
    source = GitHub(opened.paths.root, command_parent(opened.settings.env))
    return Polls(store, opened.clock, opened.ids, source, StoredSecrets(store, box_of(opened)))
