"""`lamp inbox`: what needs a person."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.operations import Show, Subject
from lamplighter.cli.output import Col

if TYPE_CHECKING:
    from lamplighter.services.inbox.operations import AnswerItem, SeenAll, SnoozeItem
    from lamplighter.services.inbox.queries import ItemView, ListInbox

COLUMNS = {
    "ITEM": Col("id", "word"), "WHEN": Col("last_at", "when"), "WHAT": Col("sentence", wraps=True),
    "TRY": Col("fix", below=True),
    "CLAIMED BY": Col("claimed_by", spare=2),
}  # fmt: skip

SETTLED_COLUMNS = {
    "ITEM": Col("id", "word"), "SETTLED": Col("settled_at", "when"), "WHAT": Col("sentence", wraps=True),
    "HOW": Col("how", below=True), "BY": Col("settled_by", spare=2),
}  # fmt: skip


def _list(items: "list[ItemView]", ask: "ListInbox") -> None:
    if ask.state.value == "settled":
        _list_settled(items)
        return
    rows = [
        {"id": item.id, "last_at": item.last_at, "sentence": _asked(item),
         "fix": output.command(words.shortened(item.fix)), "claimed_by": item.claimed_by}
        for item in items
    ]  # fmt: skip
    output.table(rows, COLUMNS, empty=_EMPTY[ask.state.value])


def _list_settled(items: "list[ItemView]") -> None:
    rows = [
        {"id": item.id, "settled_at": item.settled_at, "sentence": item.sentence, "settled_by": item.settled_by,
         "how": f"{item.settled_how}: {item.settled_why}" if item.settled_why else item.settled_how}
        for item in items
    ]  # fmt: skip
    output.table(rows, SETTLED_COLUMNS, empty=_EMPTY["settled"])


def _asked(item: "ItemView") -> str:
    """The sentence, with the answers that a question proposes: `Which one? (lamp or watchman)`."""
    choices = item.question.choices if item.question is not None else ()
    return f"{item.sentence} ({words.listed(choices, last='or')})" if choices else item.sentence


_EMPTY = {
    "open": "Nothing needs you.",
    "snoozed": "Nothing is snoozed.",
    "settled": "Nothing is on record as settled.",
}


def _show(item: "ItemView", _ask: Any) -> None:
    click.echo(output.plain(item.sentence))
    output.fields(
        {},
        {
            "Item": item.id,
            "State": _state(item),
            "Kind": item.kind.value,
            "About": item.subject,
            "First": output.local_time(item.first_at),
            "Last": output.local_time(item.last_at) if item.last_at != item.first_at else None,
            "Times": item.count if item.count > 1 else None,
            "Claimed by": item.claimed_by,
            "Runs": list(item.runs) or None,
            "Question": item.question.text if item.question is not None else None,
            "Choices": (list(item.question.choices) or None) if item.question is not None else None,
            "Without answer": item.question.without_answer if item.question is not None else None,
            "Try": output.command(item.fix) if item.state.value != "settled" else None,
        },
    )


def _state(item: "ItemView") -> str:
    if item.state.value == "snoozed":
        return f"snoozed until {output.local_time(item.snoozed_until)}"
    if item.state.value == "settled":
        why = f" ({item.settled_why})" if item.settled_why else ""
        return f"settled at {output.local_time(item.settled_at)} by {item.settled_by}: {item.settled_how}{why}"
    return "open"


def _done(text: str) -> Show:
    def show(item: "ItemView", _ask: Any) -> None:
        left = (
            f"; {item.count} of its runs are left" if text in {"Resolved", "Retried"} and item.state == "open" else ""
        )
        click.echo(output.plain(f"{text}: {item.sentence}{left}"))

    return show


def _snoozed(item: "ItemView", ask: "SnoozeItem") -> None:
    until: datetime | None = item.snoozed_until
    again = f"until it happens {_times(item.snoozed_times)} more" if item.snoozed_times else ""
    limit = f"until {output.local_time(until)}" if ask.until is not None else ""
    click.echo(output.plain(f"Snoozed {', or '.join(filter(None, (again, limit)))}: {item.sentence}"))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _seen_all(done: "SeenAll", _ask: Any) -> None:
    click.echo(f"{done.seen} were new to you." if done.seen else "Nothing was new to you.")


def _answered(item: "ItemView", ask: "AnswerItem") -> None:
    from lamplighter.services.runs.questions import not_a_choice

    note = None if item.question is None else not_a_choice(item.question.choices, ask.text)
    if note is not None:
        output.note(note)
    _done("Answered")(item, ask)


class Inbox(Subject):
    """`lamp inbox` alone lists."""

    def __init__(self) -> None:
        shown: dict[str, Show] = {
            "list": _list, "show": _show, "snooze": _snoozed, "claim": _done("Claimed"), "unclaim": _done("Let go"),
            "answer": _answered, "approve": _done("Approved"), "amend": _done("Amended"),
            "reject": _done("Rejected"), "resolve": _done("Resolved"), "retry": _done("Retried"),
            "dismiss": _done("Dismissed"), "reopen": _done("Opened again"),
            "unsnooze": _done("Shown again"), "see": _done("Seen"), "see-all": _seen_all,
        }  # fmt: skip
        super().__init__("inbox", "What needs a person; alone it lists what is open.", shown)
        self.no_args_is_help = False
        self.invoke_without_command = True

    def invoke(self, ctx: click.Context) -> Any:
        if not ctx._protected_args and not ctx.args:  # noqa: SLF001  click's own `invoke` looks there too
            command = self.get_command(ctx, "list")
            assert command is not None  # noqa: S101  it is in the table
            with command.make_context("list", [], parent=ctx) as asked:
                return command.invoke(asked)
        return super().invoke(ctx)


inbox = Inbox()


def command_for(_name: str) -> click.Command:
    return inbox
