"""The inbox: what needs a person, one item in full, and one at a time by single keys."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from lamplighter.domain.inbox.items import Kind, Shown
from lamplighter.kit.errors import UsageError
from lamplighter.services.agents.answering import QUESTION, ShowQuestion
from lamplighter.services.inbox.operations import (
    AMEND,
    ANSWER,
    APPROVE,
    CLAIM,
    DISMISS,
    REJECT,
    REOPEN,
    RESOLVE,
    RETRY,
    SEE,
    SEE_ALL,
    SNOOZE,
    UNCLAIM,
    UNSNOOZE,
    AmendItem,
    AnswerItem,
    ApproveItem,
    ClaimItem,
    DismissItem,
    RejectItem,
    ReopenItem,
    ResolveItem,
    RetryItem,
    SeeAll,
    SeeItem,
    SnoozeItem,
    UnclaimItem,
    UnsnoozeItem,
)
from lamplighter.services.inbox.queries import LIST, SHOW, ItemView, ListInbox, ShowItem
from lamplighter.services.operation import Operation
from lamplighter.services.runs.operations import Resolved
from lamplighter.services.runs.queries import SHOW_RUN, ShowRun
from lamplighter.web.console.ansi import lines_of
from lamplighter.web.console.numbers import whole
from lamplighter.web.console.visit import Given, Page, Visit, back, own_path, together

PAGE = 100
EVIDENCE = 15
"""So many of the last lines of a run's output are shown with an item."""
REASONS = ("mended by hand", "known, being worked on", "a hiccup outside", "not worth mending", "expected")
"""What people mostly say; a digit picks one."""
_BUTTONS: Mapping[str, tuple[Operation[Any, Any], Callable[[str], Any], str, str]] = {
    "claim": (CLAIM, ClaimItem, "It is yours now; others see that.", "unclaim"),
    "unclaim": (UNCLAIM, UnclaimItem, "Nobody looks after it now.", "claim"),
    "retry": (RETRY, RetryItem, "Each of its runs is started again.", ""),
    "reopen": (REOPEN, ReopenItem, "It is open again.", ""),
    "unsnooze": (UNSNOOZE, UnsnoozeItem, "It is shown again.", ""),
    "see": (SEE, SeeItem, "", ""),
}
"""A button's operation and request, what is said when it is done, and the button that takes it back."""


async def inbox(visit: Visit) -> Response:
    state = _state(visit.query.get("state"))
    found, _ = await together(visit.ask(LIST, ListInbox(state, limit=PAGE)), visit.look())
    return await visit.page(
        "inbox.html", found=found, state=state.value, states=[one.value for one in Shown], most=PAGE
    )


def _state(text: str | None) -> Shown:
    try:
        return Shown.OPEN if text is None else Shown(text)
    except ValueError:
        raise UsageError(
            f"There is no state `{text}` of inbox items.", hint="Those there are: open, snoozed, settled."
        ) from None


async def item(visit: Visit) -> Response:
    """Raises ItemUnknown, ItemAmbiguous."""
    shown = await visit.do(SHOW, ShowItem(visit.path["item"]))
    if not shown.seen:
        await visit.ask(SEE, SeeItem(shown.id))
    return await _shown(visit, shown, focus=False, left=0, passed=[])


async def focus(visit: Visit) -> Response:
    """The most urgent item that the person has not passed over; `after` names those."""
    passed = visit.query.get("after", "").split(",") if visit.query.get("after") else []
    found, _ = await together(visit.ask(LIST, ListInbox(limit=PAGE)), visit.look())
    if found.error:
        raise found.error
    left = [one for one in found.value if one.id not in passed]
    if not left:
        return await visit.page("item.html", one=None, passed=passed)
    return await _shown(visit, left[0], focus=True, left=len(left), passed=passed)


async def _shown(visit: Visit, one: ItemView, **more: Any) -> Response:
    """With the last that its newest run printed, which is what a person decides by."""
    run = await visit.ask(SHOW_RUN, ShowRun(one.runs[0])) if one.runs else None
    lines = lines_of(run.value.output_tail or "", most=EVIDENCE)[0] if run is not None and not run.error else []
    asks = one.kind is Kind.WAITING and one.state is not Shown.SETTLED
    asked = (await visit.ask(QUESTION, ShowQuestion(one.subject))) if asks else None
    if asked is not None and asked.found is not None:
        lines = lines_of(asked.value.screen, most=EVIDENCE)[0]
    return await visit.page("item.html", one=one, run=run, lines=lines, reasons=REASONS, asked=asked, **more)


async def resolve(visit: Visit) -> Response:
    form = await visit.form()
    outcome = Resolved.FAILED if form.get("outcome") == "failed" else Resolved.SUCCEEDED
    name = visit.path["item"]
    await visit.do(RESOLVE, ResolveItem(name, outcome, _reason(form), form.get("comment", "")))
    return _back(form, f"Resolved as {outcome.value}.")


async def dismiss(visit: Visit) -> Response:
    form, name = await visit.form(), visit.path["item"]
    await visit.do(DISMISS, DismissItem(name, _reason(form)))
    return _back(form, "Dismissed; the next of its kind opens a new item.", f"/inbox/{name}/reopen")


def _reason(form: Given) -> str:
    """The reason that was picked, with what was written besides."""
    return ": ".join(part for part in (form["why"].strip(), form["reason"].strip()) if part)


async def see_everything(visit: Visit) -> Response:
    form = await visit.form()
    done = await visit.do(SEE_ALL, SeeAll(form["subject"] or None))
    return _back(form, f"{done.seen} marked as seen." if done.seen else "You had seen them all.")


async def answer(visit: Visit) -> Response:
    form = await visit.form()
    await visit.do(ANSWER, AnswerItem(visit.path["item"], form.get("text", "")))
    return _back(form, "Answered; a new run continues the work.")


async def approve(visit: Visit) -> Response:
    form = await visit.form()
    await visit.do(APPROVE, ApproveItem(visit.path["item"], form.get("text", "")))
    return _back(form, "Approved; a run carries the plan out.")


async def amend(visit: Visit) -> Response:
    form = await visit.form()
    await visit.do(AMEND, AmendItem(visit.path["item"], form.get("text", "")))
    return _back(form, "A run makes a new plan.")


async def reject(visit: Visit) -> Response:
    form = await visit.form()
    await visit.do(REJECT, RejectItem(visit.path["item"], form.get("reason", "")))
    return _back(form, "Rejected; nothing of it is done.")


async def snooze(visit: Visit) -> Response:
    form = await visit.form()
    name, times = visit.path["item"], form["times"]
    if times:
        count = whole(times) or 0
        await visit.do(SNOOZE, SnoozeItem(name, times=count))
        said = "It comes back when it has happened " + ("again." if count == 1 else f"{count} times more.")
    else:
        await visit.do(SNOOZE, SnoozeItem(name, form["until"] or "1h"))
        said = f"Snoozed for {form['until'] or '1h'}; it comes back by itself."
    return _back(form, said, f"/inbox/{name}/unsnooze")


def _back(form: Given, said: str, undo: str = "") -> Response:
    return back(own_path(form.get("next")), said, undo=undo)


def _button(verb: str) -> Page:
    operation, request, said, undone_by = _BUTTONS[verb]

    async def press(visit: Visit) -> Response:
        form, name = await visit.form(), visit.path["item"]
        await visit.do(operation, request(name))
        return _back(form, said, f"/inbox/{name}/{undone_by}" if undone_by else "")

    return press


PAGES = (
    ("GET", "/inbox", inbox),
    ("GET", "/inbox/focus", focus),
    ("GET", "/inbox/{item}", item),
    ("POST", "/inbox/see-all", see_everything),
    ("POST", "/inbox/{item}/resolve", resolve),
    ("POST", "/inbox/{item}/dismiss", dismiss),
    ("POST", "/inbox/{item}/answer", answer),
    ("POST", "/inbox/{item}/approve", approve),
    ("POST", "/inbox/{item}/amend", amend),
    ("POST", "/inbox/{item}/reject", reject),
    ("POST", "/inbox/{item}/snooze", snooze),
    *(("POST", f"/inbox/{{item}}/{verb}", _button(verb)) for verb in _BUTTONS),
)
