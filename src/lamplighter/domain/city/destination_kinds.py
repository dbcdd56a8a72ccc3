"""The kinds of destinations of notices, in one table: what each is called, needs, allows, and leads to."""

from collections.abc import Callable, Mapping
from typing import Any

from lamplighter.kit.records import record


@record
class DestinationKind:
    """`needs` are the keys that it cannot do without, `allows` the others that only some kinds have."""

    noun: str
    needs: tuple[str, ...]
    allows: tuple[str, ...]
    target: Callable[[Any], str]
    """Where a destination of the kind leads to, as people are shown it."""
    in_slack: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        return self.needs + self.allows


DESTINATION_KINDS: Mapping[str, DestinationKind] = {
    "command": DestinationKind("a command", ("command",), (), lambda one: one.command),
    "webhook": DestinationKind(
        "a webhook", ("url",), ("signing", "signing_env", "allow_private"), lambda one: one.url
    ),
    "email": DestinationKind(
        "email", ("host", "sender", "recipients"), ("port", "security", "user", "password"),
        lambda one: ", ".join(one.recipients),
    ),
    "ntfy": DestinationKind(
        "ntfy", ("url", "topic"), ("token", "priority"), lambda one: f"{one.url.rstrip('/')}/{one.topic}"
    ),
    "apprise": DestinationKind("apprise", ("service",), (), lambda one: one.service),
    "slack_channel": DestinationKind(
        "a slack_channel", ("channel",), ("team",), lambda one: one.channel, in_slack=True
    ),
    "slack_dm_user": DestinationKind("a slack_dm_user", ("user",), ("team",), lambda one: one.user, in_slack=True),
}  # fmt: skip
"""A key that several kinds have is said to be of the first of them."""
IN_SLACK = frozenset(kind for kind, one in DESTINATION_KINDS.items() if one.in_slack)
