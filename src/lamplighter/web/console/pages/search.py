"""Going anywhere and doing things by a few letters: pages, automations, agents, runs, and what can be done."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from starlette.responses import Response

from lamplighter.services.agents.queries import LIST as AGENTS
from lamplighter.services.agents.queries import ListAgents
from lamplighter.services.finding import FIND, FindThings, Kind
from lamplighter.web.console.visit import NAV, Visit, together

OF_EACH = 8


@dataclass(frozen=True)
class Hit:
    """Something to go to, or with `operation` something to do."""

    kind: str
    label: str
    href: str
    detail: str = ""
    operation: str = ""


_DOINGS = (
    Hit("do", "Pause the city", "/settings/pause", "nothing fires until it is resumed", "city.pause"),
    Hit("do", "Resume the city", "/settings/resume", "lifts pause and suspension", "city.resume"),
    Hit("page", "New automation", "/automations/new"),
    Hit("page", "What needs you, one at a time", "/inbox/focus"),
    Hit("page", "Cost of agents by day, automation and model", "/cost"),
    Hit("page", "Doctor: look the city over", "/settings/doctor"),
)


def _fits(words: Sequence[str], text: str) -> bool:
    return all(word in text.casefold() for word in words)


async def search(visit: Visit) -> Response:
    text = visit.query["q"][:200]
    words = text.casefold().split()
    found, agents, _ = await together(
        visit.ask(FIND, FindThings(text, OF_EACH)), visit.ask(AGENTS, ListAgents()), visit.look()
    )
    hits = [Hit("page", label, href) for href, label, _ in NAV if _fits(words, label)]
    hits += [one for one in _DOINGS if _fits(words, one.label)]
    for one in [] if found.error else found.value:
        is_run = one.kind is Kind.RUN
        where = f"/{'runs' if is_run else 'automations'}/{quote(one.name, safe=':')}"
        hits.append(Hit(one.kind.value, one.name, where, one.detail))
        if not is_run and words:
            hits.append(Hit("do", f"Run {one.name} now", f"{where}/run", "its schedule stays", "automation.run"))
    if words and not agents.error:
        named = [one for one in agents.value if _fits(words, one.name)][:OF_EACH]
        hits += [Hit("agent", one.name, f"/agents/{quote(one.name, safe='/:')}", one.state) for one in named]
    return await visit.page("search.html", hits=hits, text=text, found=found, agents=agents)


PAGES = (("GET", "/search", search),)
