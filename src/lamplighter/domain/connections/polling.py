"""Asking GitHub what happened: what its answers tell as deliveries, and when to ask again."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

from lamplighter.domain.connections.reading import EVENT_ID, occasion

GITHUB = "https://api.github.com"
PARTS = ("events", "issues", "pulls")
AT_ONCE = 100
"""Items of a page, the most that GitHub gives."""
MOST_PAGES: Mapping[str, int] = {"events": 3, "issues": 10, "pulls": 10}
OVERLAP = timedelta(minutes=2)
"""So far back is read again: what is changed at the same time may become visible late."""
INTERVAL = timedelta(minutes=1)
LONGEST_WAIT = timedelta(minutes=15)
LONGEST_LIMIT = timedelta(hours=1)
SPARED = 10
"""Requests that are left to others who use the same token."""
MOST_SEEN = 300
_REPO = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")
_NAMES = {"PullRequestReviewEvent": "pull_request_review"}
_BY_LIST = frozenset({"IssuesEvent", "PullRequestEvent"})
_TOLD_BY_LIST = frozenset({"opened", "closed"})
_DIGITS = re.compile(r"[0-9]{1,12}")
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class Polled:
    """One thing that happened, as a webhook would have told it."""

    event: str
    external_id: str
    payload: Mapping[str, Any]


def wrong_repo(repo: str) -> str:
    return "" if _REPO.fullmatch(repo) else "write OWNER/NAME, such as acme/web"


def wrong_url(url: str) -> str:
    """Why a token must not be sent there; empty if it may."""
    try:
        found = urlsplit(url)
        host = found.hostname or ""
    except ValueError:
        return "it is no address"
    if found.username or found.password or found.query or found.fragment:
        return "write only scheme, host and path"
    if found.scheme == "https" and host:
        return ""
    if found.scheme == "http" and host in {"127.0.0.1", "localhost", "::1"}:
        return ""
    return "it must begin with https://, because a token is sent there"


def address(url: str, repo: str, part: str, since: datetime | None, page: int = 1) -> str:
    """What is asked for. Issues come oldest change first from `since` on, pull requests newest change first."""
    query: dict[str, object] = {"per_page": AT_ONCE}
    if part != "events":
        query |= {"state": "all", "sort": "updated", "direction": "asc" if part == "issues" else "desc"}
    if part == "issues" and since is not None:
        query["since"] = write_time(since)
    if page > 1:
        query["page"] = page
    return f"{url.rstrip('/')}/repos/{repo}/{part}?{urlencode(query)}"


def is_last(part: str, items: Sequence[Any], since: datetime, seen: frozenset[str]) -> bool:
    """Whether a page is the last that has something new."""
    if len(items) < AT_ONCE:
        return True
    if part == "events":
        return any(_event_id(one) in seen for one in items)
    return part == "pulls" and (_time(items[-1], "updated_at") or since) < since


def of_events(items: Sequence[Any], repo: str, seen: frozenset[str]) -> list[Polled]:
    """What the events tell that was not seen before, oldest first; without what the lists tell in full."""
    found: list[Polled] = []
    for one in reversed([one for one in items if isinstance(one, Mapping)]):
        kind, own = str(one.get("type", "")), _map(one.get("payload"))
        if not _event_id(one) or _event_id(one) in seen or not kind.endswith("Event"):
            continue
        if kind in _BY_LIST and str(own.get("action")) in _TOLD_BY_LIST:
            continue
        name = _NAMES.get(kind) or _WORD.sub("_", kind.removesuffix("Event")).lower()
        payload = dict(own) | _about(str(_map(one.get("repo")).get("name") or repo), one.get("actor"))
        if name == "pull_request_review" and payload.get("action") == "created":
            payload["action"] = "submitted"
        if name == "push" and "head" in payload:
            payload["after"] = payload["head"]
        found.append(Polled(name, occasion(name, payload) or f"{EVENT_ID}{_event_id(one)}", payload))
    return found


def of_list(part: str, items: Sequence[Any], repo: str, since: datetime) -> list[Polled]:
    """The issues or pull requests that were opened or closed from `since` on, oldest first."""
    found: list[tuple[datetime, Polled]] = []
    event, key = ("pull_request", "pull_request") if part == "pulls" else ("issues", "issue")
    for one in items:
        if not isinstance(one, Mapping) or (part == "issues" and "pull_request" in one):
            continue
        thing = dict(one) | ({"merged": one.get("merged_at") is not None} if part == "pulls" else {})
        name = str(_map(_map(one.get("base")).get("repo")).get("full_name") or _named(one) or repo)
        for action, at, who in (
            ("opened", _time(one, "created_at"), one.get("user")),
            ("closed", _time(one, "closed_at"), one.get("closed_by")),
        ):
            if at is None or at < since:
                continue
            payload = {"action": action, "number": one.get("number"), key: thing} | _about(name, who)
            known = occasion(event, payload)
            if known:
                found.append((at, Polled(event, known, payload)))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def newest(items: Sequence[Any], before: datetime, now: datetime) -> datetime:
    """The time of the last change among them, if it is later; none is later than the server's `now`."""
    times = [at for at in (_time(one, "updated_at") for one in items) if at is not None and at <= now]
    return max([before, *times])


def seen_after(items: Sequence[Any], seen: Sequence[str]) -> list[str]:
    """The ids of the events that are known from now on, newest first."""
    return list(dict.fromkeys([*filter(None, map(_event_id, items)), *seen]))[:MOST_SEEN]


def server_time(headers: Mapping[str, str], now: datetime) -> datetime:
    """What the server's clock says; ours where it does not say."""
    try:
        return parsedate_to_datetime(headers["date"]).astimezone(UTC)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError):
        return now.replace(microsecond=0)


def next_round(headers: Mapping[str, str], now: datetime) -> datetime:
    """When to ask again after an answer: as the provider wishes, and not while few requests are left."""
    wait = max(INTERVAL, _seconds(headers.get("x-poll-interval")) or timedelta(0))
    left = _number(headers.get("x-ratelimit-remaining"))
    if left is not None and left <= SPARED:
        wait = max(wait, _until_reset(headers, now))
    return now + wait


@dataclass(frozen=True)
class Refused:
    """An answer that tells nothing: why, and when to ask again."""

    why: str
    again: datetime


def refused(status: int, headers: Mapping[str, str], repo: str, failures: int, now: datetime) -> Refused | None:
    """None for an answer that can be used. `failures` counts those before it."""
    if status in (200, 304):
        return None
    pause = backed_off(failures)
    limited = headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers
    if status == 429 or (status == 403 and limited):
        asked = _seconds(headers.get("retry-after"))
        wait = asked if asked is not None else _until_reset(headers, now)
        return Refused("the limit of requests is reached", now + max(pause, min(wait, LONGEST_LIMIT)))
    match status:
        case 401:
            why = "the token is not accepted"
        case 403:
            why = f"the token may not read {repo}"
        case 404:
            why = f"there is no repository {repo} that the token may read"
        case 301 | 302 | 307 | 308:
            why = f"{repo} has moved; make a connection with its new name"
        case _:
            why = f"it answered {status}"
    return Refused(why, now + pause)


def backed_off(failures: int) -> timedelta:
    """How long to wait after so many failures, one after another."""
    return min(INTERVAL * (1 << min(failures, 10)), LONGEST_WAIT)


def _until_reset(headers: Mapping[str, str], now: datetime) -> timedelta:
    """By the server's clock, for ours may differ."""
    reset = _number(headers.get("x-ratelimit-reset"))
    if reset is None:
        return INTERVAL
    wait = reset - server_time(headers, now).timestamp()
    return timedelta(seconds=min(max(wait, 0), LONGEST_LIMIT.total_seconds()) + 1)


def _seconds(text: str | None) -> timedelta | None:
    found = _number(text)
    return None if found is None else min(timedelta(seconds=min(found, 86_400)), LONGEST_LIMIT)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and _DIGITS.fullmatch(text) else None


def _about(repo: str, who: Any) -> dict[str, Any]:
    login = _map(who).get("login")
    sender = {"sender": {"login": login}} if isinstance(login, str) else {}
    return {"repository": {"full_name": repo}} | sender


def _named(one: Mapping[str, Any]) -> str:
    return str(one.get("repository_url") or "").rpartition("/repos/")[2]


def _event_id(one: Any) -> str:
    return str(_map(one).get("id") or "")


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _time(one: Any, key: str) -> datetime | None:
    return read_time(_map(one).get(key))


def read_time(text: Any) -> datetime | None:
    """A time as GitHub writes it."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None


def write_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
