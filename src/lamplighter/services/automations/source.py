"""Where an automation of a file is defined: the file, its text, and the line at which the definition begins."""

import asyncio
from dataclasses import dataclass

from lamplighter.domain.access import Verb
from lamplighter.kit.errors import NotFound
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.services.automations import editing
from lamplighter.services.automations.definitions import FILE
from lamplighter.services.automations.queries import NamedAutomation
from lamplighter.services.context import Context
from lamplighter.services.host import Host
from lamplighter.services.operation import Http, Need, effect


@record
class ShowSource(NamedAutomation):
    """The file that defines it, as people wrote it, and the line at which its definition begins."""


@dataclass(frozen=True, kw_only=True)
class SourceView:
    scoped_name: str
    path: str
    line: int | None = given("The line of its table `[automation]`, or that at which the file is wrong.")
    text: str


class NotOfAFile(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"No file defines {name}: it is kept in the store.",
            hint=f"`lamp automation export {name}` prints the file that would say the same.",
        )


async def show_source(host: Host, ask: ShowSource, _ctx: Context) -> SourceView:
    """Raises AutomationUnknown, NotOfAFile, NotFound for a file that is gone."""
    row = await host.store.read(editing.get, ask.scoped_name)
    if row.source != FILE or row.path is None:
        raise NotOfAFile(row.scoped_name)
    found = await asyncio.to_thread(host.files.automation_text, row.path)
    mask = await host.secrets.mask()
    return SourceView(scoped_name=row.scoped_name, path=row.path, line=found.line, text=mask(found.text))


SOURCE = effect("automation.source", Verb.READ, ShowSource, SourceView, show_source, needs=Need.DEFINITIONS,
                http=Http("GET", "/automations/{name}/source"))  # fmt: skip
