"""Who does something, when, and within which run: what every change to the city carries."""

from datetime import datetime
from typing import Any

from lamplighter.domain.events import NewEvent
from lamplighter.kit.records import record


@record
class Act:
    actor: str
    at: datetime
    run: str | None = None
    """The run that caused it, where one did."""

    def event(
        self, event_type: str, *, subject: str | None = None, message: str | None = None, payload: Any = None
    ) -> NewEvent:
        return NewEvent(
            type=event_type,
            at=self.at,
            actor=self.actor,
            subject=subject,
            message=message,
            payload=payload,
            run=self.run,
        )
