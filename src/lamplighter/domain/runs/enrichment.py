"""Enrichment: the payload a run gets from the event that fired it. Deterministic, without network or model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lamplighter.kit.errors import LampError

VERSION = 1
LONGEST_TITLE = 300
BLOCKS = ("linear", "sentry", "github", "posthog", "gmail", "slack")
URL_KEYS: Mapping[str, tuple[str, ...]] = {
    "linear": ("issueUrl",),
    "sentry": ("issueUrl",),
    "github": ("issueUrl", "prUrl", "compareUrl", "workflowUrl"),
    "posthog": ("eventUrl",),
}

_SHOWN_EVENTS = 3
_OWN_TITLES = {
    "cooldown": "Run after a pause",
    "cron": "Scheduled run",
    "schedule": "Scheduled run",
    "condition": "Condition came true",
    "manual": "Manual run",
    "message": "Message to a run",
}


class EnrichmentFailed(LampError):
    """The run fails for good; `reason` becomes the recorded reason of its state."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message, hint="The trigger event keeps what was delivered; `lamp run retry` tries again.")
        self.reason = reason


@dataclass(frozen=True)
class Occasion:
    """Why a run was fired. `parsed` is a delivery as its provider's parser read it; None for built-in triggers."""

    automation: str
    kind: str
    provider: str = ""
    event_type: str | None = None
    external_id: str | None = None
    slot: str | None = None
    note: str = ""
    events: Sequence[Mapping[str, Any]] = ()
    parsed: Mapping[str, Any] | None = field(default=None)


def enrich(occasion: Occasion | None) -> dict[str, Any]:
    """The payload. Raises EnrichmentFailed: `missing_context` if the occasion no longer exists, `enrichment_failed` if
    it has no context or no title.
    """
    if occasion is None:
        raise EnrichmentFailed("missing_context", "The automation, the trigger or its event is gone.")
    context = occasion.parsed if occasion.parsed is not None else own_context(occasion)
    if not isinstance(context, Mapping):
        raise EnrichmentFailed("enrichment_failed", "What the trigger delivered has no context to read.")
    title = _line(context.get("title"))
    if not title:
        raise EnrichmentFailed("enrichment_failed", f"The {_provider(occasion)} event has no title.")
    return {
        "version": VERSION,
        "provider": _provider(occasion),
        "summary": {"title": title, "description": _text(context.get("description"))},
        "source": {
            "url": source_url(context),
            "external_id": occasion.external_id,
            "event_type": occasion.event_type,
        },
        "related_files": _texts(_either(context, "relatedFiles")),
        "suggested_rig": _text(_either(context, "suggestedRig")),
        "provider_context": provider_context(context),
        "automation_context": {"automation": occasion.automation, "trigger": occasion.kind, "slot": occasion.slot},
    }


def own_context(occasion: Occasion) -> Mapping[str, Any] | None:
    """The context of built-in triggers; None for a webhook delivery, whose context comes only from its parser."""
    if occasion.kind == "webhook":
        return None
    if occasion.kind == "event":
        return {"title": _events_title(occasion.events), "description": _events_told(occasion.events)}
    title = _OWN_TITLES.get(occasion.kind)
    return {"title": title and f"{title} of {occasion.automation}", "description": occasion.note or occasion.slot}


def source_url(context: Mapping[str, Any]) -> str | None:
    for block, keys in URL_KEYS.items():
        inside = context.get(block)
        if isinstance(inside, Mapping):
            for key in keys:
                if found := _text(_either(inside, key)):
                    return found
    return None


def provider_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the first provider block in the context; empty if there is none."""
    blocks = (context.get(name) for name in BLOCKS)
    return next((dict(block) for block in blocks if isinstance(block, Mapping)), {})


def _provider(occasion: Occasion) -> str:
    return occasion.provider or occasion.kind


def _events_title(events: Sequence[Mapping[str, Any]]) -> str:
    types = list(dict.fromkeys(_line(event.get("type")) for event in events if event.get("type")))
    if not types:
        return ""
    if len(events) == 1:
        said = _line(events[0].get("message")) or _line(events[0].get("subject"))
        return f"{types[0]}: {said}" if said else types[0]
    more = ", …" if len(types) > _SHOWN_EVENTS else ""
    return f"{len(events)} events: {', '.join(types[:_SHOWN_EVENTS])}{more}"


def _events_told(events: Sequence[Mapping[str, Any]]) -> str | None:
    """The first few events as text; the trigger file has all of them."""
    told = [f"{_line(event.get('type'))} {_line(event.get('message'))}".strip() for event in events[:_SHOWN_EVENTS]]
    return "\n".join(told) or None


def _either(table: Mapping[str, Any], camel: str) -> Any:
    """The value under its camel-case key or else under its snake-case key, which our own parsers write."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in camel)
    return table[camel] if camel in table else table.get(snake)


def _line(value: Any) -> str:
    return " ".join(value.split())[:LONGEST_TITLE] if isinstance(value, str) else ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []
