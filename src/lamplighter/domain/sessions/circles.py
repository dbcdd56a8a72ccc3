"""Going round in circles: an agent that makes the same call of a tool, with the same result, again and again."""

from collections.abc import Iterable, Mapping
from dataclasses import field

from lamplighter.domain.sessions.transcript import SessionEvent, ToolEnded, ToolStarted
from lamplighter.kit.records import record

QUOTED = 300
"""How many characters of a call, and of its result, are quoted."""
MOST_OPEN = 100


@record
class Call:
    """A call of a tool and its result, as far as the program tells them."""

    name: str
    asked: str
    ok: bool
    gave: str

    @property
    def is_told(self) -> bool:
        """Whether the program says anything by which two calls could be told apart."""
        return bool(self.asked or self.gave)


@record
class Circle:
    """How often the last call was made in a row; `started` are the calls that have not ended."""

    last: Call | None = None
    times: int = 0
    started: Mapping[str, ToolStarted] = field(default_factory=dict)

    def told(self, after: int) -> str:
        """The call in words, once it was made `after` times in a row; else, and with 0, nothing."""
        if not after or self.last is None or self.times < after:
            return ""
        asked = f" ({_quoted(self.last.asked)})" if self.last.asked else ""
        gave = "the same result" if self.last.ok else "the same failure"
        result = f": {_quoted(self.last.gave)}" if self.last.gave else ""
        return f"It called `{self.last.name}`{asked} {self.times} times in a row, each time with {gave}{result}"


def seen(circle: Circle, event: SessionEvent) -> Circle:
    """The circle after one more event. Only calls count: what the agent says between them changes nothing."""
    match event:
        case ToolStarted(tool_id):
            started = dict(circle.started) if len(circle.started) < MOST_OPEN else {}
            return Circle(circle.last, circle.times, started | {tool_id: event})
        case ToolEnded(tool_id, ok, gave) if tool_id in circle.started:
            began = circle.started[tool_id]
            left = {key: one for key, one in circle.started.items() if key != tool_id}
            call = Call(began.name, began.detail, ok, gave)
            if not call.is_told:
                return Circle(None, 0, left)
            return Circle(call, circle.times + 1 if call == circle.last else 1, left)
        case _:
            return circle


def circle_of(events: Iterable[SessionEvent], circle: Circle | None = None) -> Circle:
    found = circle or Circle()
    for event in events:
        found = seen(found, event)
    return found


def message(told: str) -> str:
    """What the program is told when it goes round in circles."""
    return (
        f"You are going round in circles. {told.replace('It called', 'You called', 1)}\n"
        "To do the same again changes nothing. Find another way; if there is none, report the end of the run, and say"
        " what keeps you from it. If you go on like this, the run is ended."
    )


def _quoted(text: str) -> str:
    said = " ".join(text.split())
    return said if len(said) <= QUOTED else f"{said[:QUOTED]}…"
