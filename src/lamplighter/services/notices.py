"""Destinations and notices as every surface shows them, and the trial of a destination."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.policies import Notify
from lamplighter.domain.city.destination_kinds import DESTINATION_KINDS
from lamplighter.domain.city.sections import Destination
from lamplighter.domain.inbox.notices import Notice, NoticeState, What, link_of
from lamplighter.kit.errors import LampError, NotFound
from lamplighter.kit.masking import masked
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.records import changed, record
from lamplighter.kit.shapes import given
from lamplighter.ports.messenger import Gone, Message
from lamplighter.services.automations import snapshots
from lamplighter.services.context import Context
from lamplighter.services.inbox.telling import Telling, answer_of, disable, takes_notices, target_of
from lamplighter.services.operation import Http, Need, effect, read
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host
    from lamplighter.store.automations import AutomationRow
    from lamplighter.store.disabled_destinations import Disabled


PAGE = 500


class Health(StrEnum):
    UNUSED = "unused"
    GOOD = "good"
    FAILING = "failing"
    DISABLED = "disabled"


@record
class DestinationView:
    """A destination of the city; `target` is its url, its command, its addresses, or its place in Slack."""

    name: str
    kind: str
    target: str
    state: Health
    last_sent_at: datetime | None
    last_error: str | None
    last_answer: str | None


@record
class NoticeView:
    """One message to one destination; `item` is the inbox item, run or session that it is about; of a trial, itself.

    `doubts` counts tries whose answer was lost: it may have arrived more than once.
    """

    id: str
    destination: str
    item: str
    what: What
    state: NoticeState
    attempts: int
    doubts: int
    answer: str | None
    last_error: str | None
    created_at: datetime
    sent_at: datetime | None
    sentence: str


@record
class OwnRule:
    """What an automation with rules of its own tells, and whom."""

    automation: str
    to: list[str]
    on: list[str]
    after: int


@record
class RulesView:
    """Who is told what: the rules of the city, destinations with an `after` of their own, automations with rules.

    `quiet` is whether the quiet hours hold notices back now.
    """

    to: list[str]
    on: list[str]
    after: int
    recovery: bool
    quiet_hours: str | None
    zone: str
    quiet: bool
    destinations: Mapping[str, int]
    automations: list[OwnRule]


@record
class ShowRules:
    """Who is told what, and when: the rules of the city, and those of automations that have their own."""


@record
class NoticeSent:
    destination: str
    sent: bool = True


@record
class ListDestinations:
    """The destinations of city.toml, and whether they take notices."""


@record
class ListNotices:
    """Notices, newest first: what was sent, what waits, what could not be sent."""

    before: str | None = given(
        "Only notices older than this one: the next page.", default=None, metavar="ID", names="notice"
    )
    limit: int = given("At most so many.", default=50, least=1, most=1000)


@record
class TryDestination:
    """Send a notice for trial to a destination, at once."""

    name: str = given("The destination.", positional=True)


class DestinationUnknown(NotFound):
    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(
            f"There is no destination `{name}`{full_stop(name, known)}",
            hint="`[[notifications.destinations]]` of city.toml declares them; `lamp notify list` shows them.",
        )


def list_destinations(tx: Tx, _ask: ListDestinations, ctx: Context) -> list[DestinationView]:
    declared = ctx.city.notifications.every
    latest = tx.notices.latest(one.name for one in declared)
    disabled = {one.name: one for one in tx.disabled_destinations.all()}
    return [_shown(tx, one, latest.get(one.name), disabled.get(one.name)) for one in declared]


def _shown(tx: Tx, one: Destination, latest: Notice | None, disabled: "Disabled | None") -> DestinationView:
    state, error = _health(latest), "" if latest is None else latest.last_error
    if disabled is not None and disabled.target == target_of(one):
        state, error = Health.DISABLED, disabled.why
    target = masked(DESTINATION_KINDS[one.kind].target(one))
    return DestinationView(
        one.name, one.kind, target, state, tx.notices.last_sent(one.name), error or None,
        tx.notices.last_answer(one.name) or None,
    )  # fmt: skip


def _health(latest: Notice | None) -> Health:
    if latest is None:
        return Health.UNUSED
    return Health.FAILING if latest.last_error else Health.GOOD


def list_notices(tx: Tx, ask: ListNotices, _ctx: Context) -> list[NoticeView]:
    return [_noticed(one) for one in tx.notices.page(before=ask.before, limit=ask.limit)]


def _noticed(one: Notice) -> NoticeView:
    return NoticeView(
        one.id, one.destination, one.about, one.what, one.state, one.attempts, one.doubts, one.answer or None,
        one.last_error or None, one.created_at, one.sent_at, str(one.body.get("sentence", "")),
    )  # fmt: skip


def show_rules(tx: Tx, _ask: ShowRules, ctx: Context) -> RulesView:
    declared = ctx.city.notifications
    telling = Telling.of(ctx.city, ctx.rules.zone)
    own = []
    for row in _automations(tx):
        rule = None if row.definition is None else snapshots.of_row(row).policies.notify
        if rule is not None and rule != Notify():
            after = rule.after or declared.after
            own.append(OwnRule(row.scoped_name, list(rule.to or telling.to), sorted(rule.on), after))
    return RulesView(
        list(telling.to), sorted(telling.on), declared.after, declared.recovery, declared.quiet_hours or None,
        str(telling.zone), telling.is_quiet(ctx.now),
        {one.name: one.after for one in declared.destinations if one.after}, own,
    )  # fmt: skip


def _automations(tx: Tx) -> "Iterator[AutomationRow]":
    after = ""
    while page := tx.automations.page(after=after, limit=PAGE):
        yield from page
        after = page[-1].scoped_name


async def send_for_trial(host: "Host", ask: TryDestination, ctx: Context) -> NoticeSent:
    """Raises DestinationUnknown, NotTaken, Unavailable. A destination that takes it needs nobody any more.

    What became of it is kept among the notices.
    """
    city = host.roster.city
    destination = city.notifications.named(ask.name)
    if destination is None:
        raise DestinationUnknown(ask.name, [one.name for one in city.notifications.every])
    sentence = f"This is a test notice, sent by {ctx.actor.name}: {ask.name} takes notices."
    told = {"sentence": sentence, "subject": city.name}
    trial = ctx.ids.make("ntc")
    notice = Notice(trial, ask.name, trial, What.TEST, told, ctx.now, NoticeState.SENT, attempts=1, sent_at=ctx.now)
    link = link_of(city.api.public_url, {})
    message = Message(trial, What.TEST.value, ctx.now, city.name, told, link)
    try:
        result = await host.messenger.send(destination, message)
    except LampError as error:
        failed = changed(notice, state=NoticeState.FAILED, last_error=error.message, sent_at=None)
        await host.store.transact(_not_taken, failed, destination, error, ctx)
        raise
    await host.store.transact(_taken, notice, result, ctx)
    return NoticeSent(ask.name)


def _not_taken(tx: Tx, trial: Notice, destination: Destination, error: LampError, ctx: Context) -> None:
    tx.notices.add(trial)
    if isinstance(error, Gone):
        disable(tx, destination.name, target_of(destination), error.message, ctx=ctx)


def _taken(tx: Tx, trial: Notice, result: Mapping[str, Any], ctx: Context) -> None:
    tx.notices.add(changed(trial, answer=answer_of(result)))
    takes_notices(tx, trial.destination, ctx=ctx)


LIST = read(
    "notify.list", Verb.READ, ListDestinations, list[DestinationView], list_destinations,
    needs=Need.CONFIG, http=Http("GET", "/destinations"),
)  # fmt: skip
RULES = read(
    "notify.rules", Verb.READ, ShowRules, RulesView, show_rules, needs=Need.CONFIG, http=Http("GET", "/notices/rules"),
)  # fmt: skip
LOG = read("notify.log", Verb.READ, ListNotices, list[NoticeView], list_notices, http=Http("GET", "/notices"))
TEST = effect(
    "notify.test", Verb.WRITE_DESTINATIONS, TryDestination, NoticeSent, send_for_trial,
    within=60.0, http=Http("POST", "/destinations/{name}/test"),
)  # fmt: skip
