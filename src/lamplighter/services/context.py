"""The context of whatever is asked of the city: who asks, with what right, at which time, and the source of new ids."""

from datetime import datetime
from typing import Any, Protocol

from lamplighter.domain.access import Actor, system
from lamplighter.domain.events import NewEvent
from lamplighter.kit.ids import At, IdSource
from lamplighter.kit.records import changed, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.city.model import City
    from lamplighter.ports.formulas import FormulaFiles
    from lamplighter.services.rules import Rules


@record
class Configured:
    """The configuration in force, as far as operations need it; without `formulas` nothing is said about formulas."""

    city: "City"
    rules: "Rules"
    formulas: "FormulaFiles | None" = None


class InForce(Protocol):
    """The configuration in force, which may be loaded only when it is used."""

    @property
    def city(self) -> "City": ...

    @property
    def rules(self) -> "Rules": ...

    @property
    def formulas(self) -> "FormulaFiles | None": ...


@record
class Context:
    actor: Actor
    now: datetime
    ids: IdSource
    surface: str = "daemon"
    """Where it was asked: `cli`, `api`, `tool` or `daemon`; recorded as the source of what is made."""
    configured: InForce | None = None
    """Set for operations that declare a need of it."""
    bulk: str | None = None
    """The bulk action of which it is a part, if it is one."""

    @property
    def city(self) -> "City":
        return self._needed().city

    @property
    def rules(self) -> "Rules":
        return self._needed().rules

    @property
    def formulas(self) -> "FormulaFiles | None":
        return self._needed().formulas

    def _needed(self) -> InForce:
        if self.configured is None:
            raise AssertionError("the operation does not declare that it needs the configuration")
        return self.configured

    @property
    def run(self) -> str | None:
        """The run that caused it, if any."""
        return self.actor.run

    def inside(self, run: str | None) -> "Context":
        """The same with `run` as its cause."""
        return changed(self, actor=changed(self.actor, run=run))

    def event(
        self, event_type: str, *, subject: str | None = None, message: str | None = None, payload: Any = None
    ) -> NewEvent:
        return NewEvent(
            type=event_type,
            at=self.now,
            actor=self.actor.name,
            subject=subject,
            message=message,
            payload=payload,
            run=self.actor.run,
        )


def acting(name: str, now: datetime, ids: IdSource | None = None) -> Context:
    """The context of a part of Lamplighter itself, such as the controller or a worker."""
    return Context(system(name), now, ids or IdSource(At(now)))
