"""The tokens that an automation's runs get of the connections that it may use."""

from collections.abc import Mapping
from dataclasses import dataclass

from lamplighter.domain.automations.model import Automation
from lamplighter.domain.automations.references import token_variable
from lamplighter.kit.errors import NotFound
from lamplighter.store.tx import Tx

ONLY_SIGNS = "it has only the secret that its sender signs with"
OF_GH = "it asks with the login of `gh` on this machine, which runs may use anyway"


class NoToken(NotFound):
    """A connection that an automation lists has no token, any more."""

    reason = "connection_missing"

    def __init__(self, connection: str) -> None:
        super().__init__(
            f"Connection `{connection}` has no token that this run could be given.",
            hint="Take it out of `connections` of the automation, or make it anew with a token.",
        )


@dataclass(frozen=True)
class Token:
    """`secret` is the city's secret that holds it. `listed` says that the automation names the connection itself."""

    connection: str
    secret: str
    listed: bool

    @property
    def variable(self) -> str:
        return token_variable(self.connection)


def tokens_of(tx: Tx, automation: Automation) -> list[Token]:
    """Connections of triggers that have no token are left out. Raises NoToken for one that the automation lists."""
    listed = automation.policies.connections or ()
    found = []
    for name in automation.connections:
        poll = tx.polls.get(name)
        if poll is not None and poll.token:
            found.append(Token(name, poll.token, name in listed))
        elif name in listed:
            raise NoToken(name)
    return found


def useless(tx: Tx) -> Mapping[str, str]:
    """Why a connection has nothing that a run could use, for those that have nothing."""
    polls = {row.connection: row for row in tx.polls.all()}
    found = {}
    for row in tx.connections.all():
        poll = polls.get(row.name)
        if poll is None:
            found[row.name] = ONLY_SIGNS
        elif not poll.token:
            found[row.name] = OF_GH
    return found
