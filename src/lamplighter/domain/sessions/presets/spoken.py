"""A run that is told to an agent of the city: no program is started for it."""

from lamplighter.domain.sessions.presets.lines import plain
from lamplighter.domain.sessions.presets.model import Invocation, Preset, Request


def _told(request: Request) -> Invocation:
    return Invocation((request.prompt,))


SPOKEN = Preset(
    name="agent",
    title="An agent of the city",
    program="",
    interactive=_told,
    headless=_told,
    parse=plain,
    has_mcp=False,
)
