"""What an agent's program asks in its terminal, with the choices it offers, and pressing the keys of one of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from lamplighter.domain.access import Verb
from lamplighter.domain.sessions.asking import LINES_READ, Choice, asked_on, choices_on
from lamplighter.kit.errors import Conflict, UsageError
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.services.agents.queries import named
from lamplighter.services.context import Context
from lamplighter.services.operation import LOOK_S, Http, effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.sessions.model import SessionName
    from lamplighter.services.host import Host


@dataclass(frozen=True)
class ShowQuestion:
    """What its program asks in its terminal, and the choices it offers."""

    name: str = given("The agent.", positional=True, names="agent")


@dataclass(frozen=True)
class AnswerAgent:
    """Answer what its program asks in its terminal, by one of the choices it offers."""

    name: str = given("The agent.", positional=True, names="agent")
    choice: str = given("The choice: its number, or `y` or `n`.", positional=True)
    question: str | None = given(
        "Only if it still asks this, word for word; whatever it asks when left out.", default=None
    )


@dataclass(frozen=True, kw_only=True)
class ChoiceView:
    key: str = given("What `agent.answer` takes.")
    text: str


@record
class AskedView:
    """`question` is null where its program asks nothing that is known."""

    name: str
    question: str | None
    choices: Sequence[ChoiceView]
    screen: str


@record
class AnsweredView:
    name: str
    question: str
    answer: str = given("The text of the choice.")


class AsksNothing(Conflict):
    def __init__(self, name: str, asked: str) -> None:
        now = f"It asks now: {asked}" if asked else "It asks nothing now."
        super().__init__(f"{name} does not ask that any more, so no key was pressed. {now}",
                         hint=f"`lamp agent peek {name}` shows its screen.")  # fmt: skip


async def show_question(host: "Host", ask: ShowQuestion, ctx: Context) -> AskedView:
    """Raises NotFound."""
    who = await named(host, ask.name, ctx)
    screen = (await host.secrets.mask())(await host.sessions.peek(who.session, LINES_READ)) if who.session else ""
    choices = [ChoiceView(key=one.keys[0], text=one.text) for one in choices_on(screen)]
    return AskedView(who.name, asked_on(screen) or None, choices, screen)


async def answer_agent(host: "Host", ask: AnswerAgent, ctx: Context) -> AnsweredView:
    """Of two answers one wins: the other finds another question, or none.

    Raises NotFound, AsksNothing, UsageError for a choice that the program does not offer.
    """
    host.need_own()
    who = await named(host, ask.name, ctx)
    asked, choices = await _asked(host, who.session)
    if not asked or (ask.question is not None and ask.question != asked):
        raise AsksNothing(who.name, asked)
    chosen = next((one for one in choices if one.keys[0] == ask.choice), None)
    if chosen is None:
        told = ", ".join(f"{one.keys[0]} ({one.text})" for one in choices)
        offered = f"It offers {told}." if told else f"It offers none that is known; `lamp agent attach {who.name}`."
        raise UsageError(f"`{ask.choice[:40]}` is not a choice of what {who.name} asks.", hint=offered)
    for key in chosen.keys:
        await host.sessions.send_keys(who.session, key)
    if host.patrol is not None:
        host.patrol.look_soon()  # what it asked is settled as soon as the screen says so
    return AnsweredView(who.name, asked, chosen.text)


async def _asked(host: "Host", session: "SessionName") -> tuple[str, tuple[Choice, ...]]:
    """As the screen shows it, with the values of secrets masked, because that is what people were shown."""
    if not session:
        return "", ()
    screen = (await host.secrets.mask())(await host.sessions.peek(session, LINES_READ))
    return asked_on(screen), choices_on(screen)


QUESTION = effect(
    "agent.question", Verb.READ, ShowQuestion, AskedView, show_question, here_after=LOOK_S,
    http=Http("GET", "/agents/{name}/question"),
)  # fmt: skip
ANSWER = effect(
    "agent.answer", Verb.CONTROL_AGENTS, AnswerAgent, AnsweredView, answer_agent,
    http=Http("POST", "/agents/{name}/answer"),
)  # fmt: skip
