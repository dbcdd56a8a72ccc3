"""Slack, as `lamp doctor` finds it: whether it is reached, and what its conversations name."""

from collections.abc import Iterator

from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.access import owner
from lamplighter.services import configurations
from lamplighter.services.context import Context
from lamplighter.services.doctor import Finding, Level
from lamplighter.services.slack.installing import InstallationView, ListSlack, list_slack

CHECK = "slack"


def slack(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001  one shape for all checks
    ctx = Context(owner("lamp"), city.clock.now(), city.ids)
    found = city.store.read(lambda tx: list_slack(tx, ListSlack(), ctx))
    known = city.store.read(configurations.known) if found else {}
    runs = bool(found) and controller_pid(city.paths.lock) is not None
    for one in found:
        if runs and one.connected is False and "socket" in one.ways:
            yield _not_connected(one)
        gone = [name for name in one.configurations if name not in known]
        if gone:
            told = (
                f"Conversations in {one.name} ({one.team}) name configurations that are not there: {', '.join(gone)}."
            )
            yield Finding(CHECK, Level.PROBLEM, told, "Make them, or install the app again with others.")
        yield from _lacks(one)


def _lacks(one: InstallationView) -> Iterator[Finding]:
    """What keeps conversations from being as they could be: they go on, with what Slack lets the app do."""
    mend = f"Bring the app up to `lamp slack manifest`, install it to the workspace, then `lamp slack test {one.team}`."
    if one.lacks:
        yield Finding(CHECK, Level.NOTE, f"The app in {one.name} lacks scopes: {', '.join(one.lacks)}.", mend)
    elif one.lacks is None:
        told = f"Slack was not asked yet what the app in {one.name} may do."
        yield Finding(CHECK, Level.NOTE, told, f"`lamp slack test {one.team}` asks.")
    if one.unstreamed:
        told = f"Answers in {one.name} are told by messages that are edited: Slack refused to stream one"
        told += f" ({one.unstreamed})."
        yield Finding(CHECK, Level.NOTE, told, mend)


def _not_connected(one: InstallationView) -> Finding:
    why = f": {one.error}" if one.error else "."
    told = f"No socket to Slack is open for {one.name} ({one.team}){why}"
    return Finding(CHECK, Level.PROBLEM, told, f"`lamp slack test {one.team}` says whether its tokens work.")
