"""Agents: all of them by rig, and one with its screen, its starts, and what can be done to it."""

from collections.abc import Callable, Mapping, Sequence
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from lamplighter.domain.beads.model import BeadStatus
from lamplighter.domain.inbox.items import Kind
from lamplighter.kit.errors import UsageError
from lamplighter.services.agents.answering import ANSWER, QUESTION, AnswerAgent, ShowQuestion
from lamplighter.services.agents.explaining import EXPLAIN, ExplainAgent
from lamplighter.services.agents.operations import (
    DRAIN,
    NUDGE,
    RESTART,
    RESUME,
    SUSPEND,
    UNDRAIN,
    UNQUARANTINE,
    DrainAgent,
    NudgeAgent,
    RestartAgent,
    ResumeAgent,
    SuspendAgent,
    UndrainAgent,
    UnquarantineAgent,
)
from lamplighter.services.agents.queries import LIST, PEEK, SHOW, ListAgents, PeekAgent, ShowAgent
from lamplighter.services.agents.views import AgentView
from lamplighter.services.beads.queries import LIST as BEADS
from lamplighter.services.beads.queries import ListBeads
from lamplighter.services.inbox.queries import LIST as INBOX
from lamplighter.services.inbox.queries import ListInbox
from lamplighter.services.operation import Operation
from lamplighter.web.console import words
from lamplighter.web.console.ansi import lines_of
from lamplighter.web.console.visit import HEADERS, HERE, Page, Visit, back, own_path, together
from lamplighter.web.server import sockets_are_there

LINES = 200
HELD = 500
"""So many of the beads in progress are looked at for those that agents hold."""
HELD_SHOWN = 5
SCREENS = 12
"""So many of the agents that run are shown with the last line of their screen."""
LAST_LINES = 12
ALIVE = frozenset({"running", "draining", "starting"})
ACTIONS: Mapping[str, tuple[Operation[Any, Any], Callable[[str], Any], str]] = {
    "drain": (DRAIN, DrainAgent, "Asked to finish; it gets a fresh session when it has."),
    "undrain": (UNDRAIN, UndrainAgent, "It goes on as before."),
    "restart": (RESTART, RestartAgent, "Restarted: a fresh session runs."),
    "suspend": (SUSPEND, SuspendAgent, "Suspended: it is stopped, and not started until it is resumed."),
    "resume": (RESUME, ResumeAgent, "Resumed: it is started again."),
    "unquarantine": (UNQUARANTINE, UnquarantineAgent, "Its crashes are forgotten: it is started again at once."),
}
"""What a button of an agent does, and what is said when it is done."""


def by_rig(agents: Sequence[AgentView]) -> list[tuple[str | None, list[AgentView]]]:
    """Those without a rig first."""
    found: dict[str | None, list[AgentView]] = {}
    for one in sorted(agents, key=lambda agent: (agent.rig or "", agent.name)):
        found.setdefault(one.rig, []).append(one)
    return list(found.items())


async def agents(visit: Visit) -> Response:
    found, beads, asking, _ = await together(
        visit.ask(LIST, ListAgents()), visit.ask(BEADS, ListBeads(status=BeadStatus.IN_PROGRESS, limit=HELD)),
        visit.ask(INBOX, ListInbox(kind=Kind.WAITING, limit=HELD)), visit.look(),
    )  # fmt: skip
    held = {} if beads.error else {one.assignee: one for one in reversed(beads.value) if one.assignee}
    living = [one.name for one in found.found or () if one.state in ALIVE][:SCREENS]
    screens = await together(*(visit.ask(PEEK, PeekAgent(name, LAST_LINES)) for name in living))
    says = {name: words.last_line(one.value.output) for name, one in zip(living, screens, strict=True) if one.found}
    return await visit.page(
        "agents.html", found=found, says=says, rigs=[] if found.error else by_rig(found.value), held=held,
        asking={one.subject: one for one in asking.found or ()}, asking_error=asking.error,
    )  # fmt: skip


async def agent(visit: Visit) -> Response:
    """Raises NotFound."""
    name = visit.path["name"]
    shown = await visit.do(SHOW, ShowAgent(name))
    screen, why, beads, asked, _ = await together(
        visit.ask(PEEK, PeekAgent(name, LINES)), visit.ask(EXPLAIN, ExplainAgent(name)),
        visit.ask(BEADS, ListBeads(status=BeadStatus.IN_PROGRESS, assignee=shown.name, limit=HELD_SHOWN)),
        visit.ask(QUESTION, ShowQuestion(name)), visit.look(),
    )  # fmt: skip
    lines = [] if screen.error else lines_of(screen.value.output)[0]
    alive = shown.state in ALIVE
    without = why_no_terminal() if shown.terminal else ""
    nonce = token_urlsafe(16)
    answer = await visit.page(
        "agent.html",
        one=shown,
        why=why,
        held=[] if beads.error else beads.value,
        asked=asked.found if alive else None,
        screen=screen,
        lines=lines,
        alive=alive,
        terminal=shown.terminal and not without and alive,
        without_terminal=without,
        nonce=nonce,
    )
    if shown.terminal and not without and alive:
        answer.headers["Content-Security-Policy"] = with_nonce(nonce)
    return answer


def why_no_terminal() -> str:
    """Why this installation shows no terminal, in a sentence; nothing if it does."""
    if not sockets_are_there():
        return "Its terminal can be shown here and typed into once `pip install 'lamplighter[terminal]'` is done."
    if not (HERE / "static" / "xterm.mjs").is_file():
        return "Its terminal is not shown: this package was built without npm, which its files come from."
    return ""


def with_nonce(nonce: str) -> str:
    """The policy of a page with a terminal, which makes style sheets of its own."""
    return HEADERS["Content-Security-Policy"].replace("style-src 'self'", f"style-src 'self' 'nonce-{nonce}'")


def _page_of(name: str) -> str:
    return f"/agents/{quote(name, safe='/:')}"


async def nudge(visit: Visit) -> Response:
    message = (await visit.form()).get("message", "").strip()
    if not message:
        raise UsageError("There is nothing to say to the agent.", hint="Write a message first.")
    name = visit.path["name"]
    await visit.do(NUDGE, NudgeAgent(name, message))
    return back(_page_of(name), "Sent.")


async def answer(visit: Visit) -> Response:
    """Raises AsksNothing where somebody was first, or its program went on."""
    form, name = await visit.form(), visit.path["name"]
    done = await visit.do(ANSWER, AnswerAgent(name, form["choice"], form.get("question") or None))
    return back(own_path(form["next"] or _page_of(name)), f"Answered {name}: {done.answer}")


def _button(action: str) -> Page:
    operation, request, said = ACTIONS[action]

    async def press(visit: Visit) -> Response:
        name = visit.path["name"]
        await visit.do(operation, request(name))
        return back(_page_of(name), said)

    return press


PAGES = (
    ("GET", "/agents", agents),
    ("POST", "/agents/{name:path}/nudge", nudge),
    ("POST", "/agents/{name:path}/answer", answer),
    *(("POST", f"/agents/{{name:path}}/{action}", _button(action)) for action in ACTIONS),
    ("GET", "/agents/{name:path}", agent),
)
