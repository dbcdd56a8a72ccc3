"""What a delivery says: its type, id, title, author, what it is about, and the fields that triggers filter by."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from lamplighter.domain.connections.signatures import SENT_AT, is_signed
from lamplighter.domain.delivery_fields import Provider

LONGEST_TITLE = 300
LONGEST_TEXT = 4000
LONGEST_ID = 200
TEST = "lamplighter_test"
"""The key of a payload that `lamp connection test` sends; it fires nothing."""
_PLACE = re.compile(r"\{([A-Za-z0-9_.-]{1,200})\}")


@dataclass(frozen=True)
class Reading:
    """`entity` is what it is about, by which deliveries are gathered. `ignored` says why it fires nothing."""

    event_type: str
    title: str
    author: str = ""
    entity: str = ""
    description: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    block: Mapping[str, Any] = field(default_factory=dict)
    """What an agent is told under the provider's name, with the address of what it is about."""
    ignored: str = ""
    occasion: str = ""
    """What happened, by the provider's own ids, the same however it was told; empty where that cannot be known."""
    alike: str = ""
    """What happened, where no id tells it: the same however it was told, and also when it happens once more."""

    def context(self, provider: Provider) -> dict[str, Any]:
        told: dict[str, Any] = {"title": self.title, "description": self.description or None}
        return told | ({provider.value: dict(self.block)} if self.block else {})


def delivery_id(provider: Provider, headers: Mapping[str, str], payload: Any, body: bytes) -> str | None:
    """What a delivery is known by when it is sent again; None if it has nothing of the kind.

    Where the signature is over the body alone, this comes from the body alone: whoever has seen one delivery could
    send it again under another id.
    """
    names: tuple[str, ...] = ()
    match provider:
        case Provider.STANDARD:
            names = ("webhook-id",)
        case Provider.BEARER:
            names = ("webhook-id", "idempotency-key", "x-request-id")
        case Provider.POSTHOG:
            own = _text(_at(payload, "event", "uuid")) or _text(_at(payload, "uuid"))
            if own or is_signed(provider, headers):
                return own[:LONGEST_ID] or _digest(body)
            names = ("webhook-id",)
        case Provider.LINEAR:  # it sends the same again with another time
            rest = {key: value for key, value in payload.items() if key != SENT_AT}
            return _digest(json.dumps(rest, sort_keys=True).encode())
        case _:
            return _digest(body)
    found = next((headers[name] for name in names if headers.get(name)), None)
    return None if found is None else found[:LONGEST_ID]


def _digest(body: bytes) -> str:
    return f"sha256:{sha256(body).hexdigest()}"


def read(provider: Provider, headers: Mapping[str, str], payload: Any, template: str = "") -> Reading:
    """Never fails: what is not there is left out, and every delivery has a title."""
    body = payload if isinstance(payload, Mapping) else {}
    found = _READERS[provider](headers, body)
    title = (titled(template, body) if template else "") or _line(found.title) or f"{provider} delivery"
    ignored = "it is a test" if TEST in body else found.ignored
    given = {key: value for key, value in found.fields.items() if value not in (None, "", [])}
    return Reading(
        found.event_type[:LONGEST_ID] or "delivery", _line(title), found.author, found.entity or found.event_type,
        found.description[:LONGEST_TEXT], given, {key: value for key, value in found.block.items() if value}, ignored,
        found.occasion, found.alike,
    )  # fmt: skip


def titled(template: str, payload: Mapping[str, Any]) -> str:
    """The template with `{path}` replaced by what the payload has there; empty if it has none of them."""
    said: list[str] = []

    def place(found: re.Match[str]) -> str:
        value = _at(payload, *found[1].split("."))
        text = "" if isinstance(value, Mapping | list) or value is None else str(value)
        said.append(text)
        return text

    line = _line(_PLACE.sub(place, template))
    return line if any(said) or not said else ""


def wrong_template(template: str) -> str:
    left = _PLACE.sub("", template)
    return "a brace stands alone; write `{data.title}`" if "{" in left or "}" in left else ""


# ── providers ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _github(headers: Mapping[str, str], body: Mapping[str, Any]) -> Reading:
    event, action = headers.get("x-github-event", ""), _text(body.get("action"))
    repo, author = _text(_at(body, "repository", "full_name")), _text(_at(body, "sender", "login"))
    kind = next((name for name in _GITHUB_THINGS if isinstance(body.get(name), Mapping)), "")
    thing: Mapping[str, Any] = body[kind] if kind else {}
    number = _at(body, "issue", "number") or _at(body, "pull_request", "number")
    branch = (
        _text(_at(body, "pull_request", "head", "ref")) or _text(thing.get("head_branch"))
        or _text(_at(thing, "check_suite", "head_branch")) or _text(body.get("ref")).removeprefix("refs/heads/")
    )  # fmt: skip
    labels = _names(_at(body, "issue", "labels") or _at(body, "pull_request", "labels"))
    if isinstance(body.get("label"), Mapping) and action == "labeled":
        labels = sorted({*labels, _text(body["label"].get("name"))})
    conclusion = _text(thing.get("conclusion"))
    said = _text(thing.get("title")) or _text(thing.get("name")) or _text(_at(body, "head_commit", "message"))
    where = f"{repo}#{number}" if number else f"{repo}@{branch}" if branch else repo
    verb = conclusion or action or event
    commits = body.get("commits")
    if event == "push" and isinstance(commits, list):
        verb = f"{len(commits)} commit{'' if len(commits) == 1 else 's'}"
    block = {"event": event, "action": action, "repo": repo, "number": number, "branch": branch, "author": author}
    urls = {
        "issueUrl": _text(_at(body, "issue", "html_url")),
        "prUrl": _text(_at(body, "pull_request", "html_url")),
        "compareUrl": _text(body.get("compare")),
        "workflowUrl": _text(thing.get("html_url")) if kind in {"check_run", "workflow_run"} else "",
    }
    return Reading(
        event_type=f"{event}.{action}" if action else event,
        title=" ".join(filter(None, (where, f"{verb}:" if said else verb, said.splitlines()[0] if said else ""))),
        author=author,
        entity=where,
        description=_text(_at(body, "comment", "body")) or _text(thing.get("body")),
        fields={
            "repo": repo, "author": author, "action": action, "number": number, "branch": branch, "labels": labels,
            "merged": _at(body, "pull_request", "merged"), "draft": _at(body, "pull_request", "draft"),
            "conclusion": conclusion,
        },
        block=block | urls,
        ignored="it only greets" if event == "ping" else "",
        occasion=occasion(event, body),
        alike=_alike(event, body),
    )  # fmt: skip


def occasion(event: str, body: Mapping[str, Any]) -> str:
    """Which single happening at GitHub this tells of, by ids that are never used again; empty where there are none.

    A webhook and an answer to a poll then name it alike. A push has no such id: the same commits may be pushed twice,
    and what they have in common is told by `_alike`.
    """
    action = _text(body.get("action"))
    thing = body.get({"issues": "issue", "pull_request": "pull_request"}.get(event, ""))
    if isinstance(thing, Mapping) and _text(thing.get("id")):
        if action == "opened":
            return f"{event}.opened:{_text(thing['id'])}"
        if action == "closed" and _text(thing.get("closed_at")):
            return f"{event}.closed:{_text(thing['id'])}:{_text(thing['closed_at'])}"
    for name, key, done in _ONCE:
        own = _text(_at(body, key, "id"))
        if event == name and action in done and own:
            return f"{event}.{done[0]}:{own}"
    return ""


def _alike(event: str, body: Mapping[str, Any]) -> str:
    """What a webhook and an answer to a poll have in common about a push, a branch, a tag, an edit, a label.

    Empty where they need not have it: polls tell some things with few fields.
    """
    repo, ref = _text(_at(body, "repository", "full_name")), _text(body.get("ref"))
    if event == "push":
        before, after = _text(body.get("before")), _text(body.get("after"))
        return f"push:{repo}:{ref}:{before}:{after}" if ref and before and after else ""
    if event in {"create", "delete"}:
        return f"{event}:{repo}:{_text(body.get('ref_type'))}:{ref}" if ref else ""
    action, key = _text(body.get("action")), next((one for one in _EDITED if isinstance(body.get(one), Mapping)), "")
    own, at = _text(_at(body, key, "id")), _text(_at(body, key, "updated_at"))
    what = _text(_at(body, "label", "name")) or _text(_at(body, "assignee", "login"))
    return f"{event}.{action}:{own}:{at}:{what}" if action and own and at and not occasion(event, body) else ""


_ONCE = (
    ("issue_comment", "comment", ("created",)),
    ("commit_comment", "comment", ("created",)),
    ("pull_request_review_comment", "comment", ("created",)),
    ("pull_request_review", "review", ("submitted",)),
    ("release", "release", ("published",)),
)
_EDITED = ("comment", "review", "issue", "pull_request", "release")
EVENT_ID = "event:"
"""What the id of a polled delivery begins with that is known only by the id of its event."""
_GITHUB_THINGS = ("pull_request", "issue", "workflow_run", "check_run", "check_suite", "release", "discussion")


def _linear(headers: Mapping[str, str], body: Mapping[str, Any]) -> Reading:
    data: Mapping[str, Any] = body["data"] if isinstance(body.get("data"), Mapping) else {}
    kind, action = _text(body.get("type")) or headers.get("linear-event", ""), _text(body.get("action"))
    number, url = _text(data.get("identifier")), _text(body.get("url")) or _text(data.get("url"))
    author = _text(_at(body, "actor", "name"))
    said = _text(data.get("title")) or _text(data.get("name")) or _text(data.get("body"))
    state, team = _text(_at(data, "state", "name")), _text(_at(data, "team", "key"))
    return Reading(
        event_type=f"{kind}.{action}" if action else kind,
        title=" ".join(filter(None, (number or kind, f"{action}:" if said else action, said))),
        author=author,
        entity=_text(data.get("issueId")) or _text(data.get("id")) or number,
        description=_text(data.get("description")) or _text(data.get("body")),
        fields={
            "team": team, "author": author, "action": action, "number": number, "state": state,
            "priority": data.get("priority"), "labels": _names(data.get("labels")),
            "assignee": _text(_at(data, "assignee", "name")), "project": _text(_at(data, "project", "name")),
        },
        block={"type": kind, "action": action, "identifier": number, "state": state, "team": team, "issueUrl": url},
    )  # fmt: skip


def _sentry(headers: Mapping[str, str], body: Mapping[str, Any]) -> Reading:
    resource, action = headers.get("sentry-hook-resource", ""), _text(body.get("action"))
    data: Mapping[str, Any] = body["data"] if isinstance(body.get("data"), Mapping) else {}
    thing = next((data[name] for name in ("issue", "event", "error") if isinstance(data.get(name), Mapping)), data)
    listed = thing.get("tags")
    pairs = [one for one in listed if isinstance(one, list) and len(one) == 2] if isinstance(listed, list) else []
    tags = {str(name): value for name, value in pairs}
    project = _text(_at(thing, "project", "slug")) or _text(thing.get("project_slug")) or _text(data.get("project"))
    number = _text(thing.get("shortId")) or _text(thing.get("issue_id")) or _text(thing.get("id"))
    level = _text(thing.get("level")) or _text(tags.get("level"))
    url = _text(thing.get("web_url")) or _text(thing.get("permalink"))
    author = _text(_at(body, "actor", "name"))
    environment = _text(thing.get("environment")) or _text(tags.get("environment"))
    said = _text(thing.get("title")) or _text(data.get("description_title"))
    return Reading(
        event_type=f"{resource}.{action}" if action else resource,
        title=" ".join(filter(None, (number or resource, f"{action}:" if said else action, said))),
        author=author,
        entity=_text(thing.get("issue_id")) or _text(thing.get("id")) or number,
        description=_text(thing.get("culprit")) or _text(data.get("description_text")),
        fields={
            "project": project, "author": author, "action": action, "number": number, "level": level,
            "environment": environment,
        },
        block={"resource": resource, "action": action, "project": project, "level": level, "issueUrl": url},
    )  # fmt: skip


def _posthog(_headers: Mapping[str, str], body: Mapping[str, Any]) -> Reading:
    thing: Mapping[str, Any] = body["event"] if isinstance(body.get("event"), Mapping) else body
    event = _text(thing.get("event"))
    author = _text(thing.get("distinct_id")) or _text(_at(body, "person", "distinct_id"))
    return Reading(
        event_type=event,
        title=" ".join(filter(None, (event, f"by {author}" if author else ""))),
        author=author,
        entity=author or event,
        fields={"event": event, "author": author},
        block={"event": event, "distinct_id": author, "eventUrl": _text(thing.get("url"))},
    )


def _generic(_headers: Mapping[str, str], body: Mapping[str, Any]) -> Reading:
    data: Mapping[str, Any] = body["data"] if isinstance(body.get("data"), Mapping) else {}
    kind = _text(body.get("type")) or _text(body.get("event"))
    said = [one.get(name) for one in (body, data) for name in ("title", "subject", "message", "name")]
    title = next((_text(one) for one in said if _text(one)), "")
    return Reading(
        event_type=kind,
        title=f"{kind}: {title}" if kind and title else title or kind,
        entity=_text(body.get("subject")) or _text(data.get("id")),
        description=_text(body.get("description")) or _text(data.get("description")),
    )


_READERS = {
    Provider.STANDARD: _generic,
    Provider.GITHUB: _github,
    Provider.LINEAR: _linear,
    Provider.SENTRY: _sentry,
    Provider.POSTHOG: _posthog,
    Provider.BEARER: _generic,
}


def _at(value: Any, *steps: str) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    """A text, or a number as one; empty for anything else."""
    if isinstance(value, bool):
        return ""
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _names(value: Any) -> list[str]:
    return [_text(one.get("name")) for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_TITLE]
