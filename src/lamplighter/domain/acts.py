"""The act behind every change to the city: who makes it, when, and within which run."""

from datetime import datetime
from typing import Any

from lamplighter.domain.events import NewEvent
from lamplighter.kit.records import record


@record
class Act:
    actor: str
    at: datetime
    run: str | None = None
    """The run that caused it, if any."""

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
