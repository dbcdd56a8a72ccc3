"""A server on this machine that answers as GitHub's REST API does: ETags, pages, a limit of requests, wishes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lamplighter.testing.http_server import Quiet, served

START = datetime(2026, 11, 18, 5, 0, tzinfo=UTC)
RESET = timedelta(minutes=30)
_ANSWERED = 200


@dataclass
class Hub:
    """One repository. `left` requests may be made that are answered with 200; `status` other than 200 answers all."""

    url: str = ""
    token: str = "gh-token"  # noqa: S105  of a server on loopback
    now: datetime = START
    left: int = 5000
    wish: int = 60
    """What X-Poll-Interval says."""
    status: int = _ANSWERED
    answers: list[tuple[str, int]] = field(default_factory=list)
    """The part that was asked for and the status of each answer."""
    lists: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {"events": [], "issues": [], "pulls": []})
    _number: int = 0

    def event(self, kind: str, **payload: Any) -> str:
        """Something happened; the newest comes first. Its id."""
        made = {
            "id": str(self._next()), "type": kind, "actor": {"login": "ada"}, "repo": {"id": 7, "name": "acme/web"},
            "payload": payload, "created_at": self._time(),
        }  # fmt: skip
        self.lists["events"].insert(0, made)
        return str(made["id"])

    def open(self, part: str, title: str) -> dict[str, Any]:
        """An issue or a pull request, which the events tell too."""
        number = self._next()
        made: dict[str, Any] = {
            "id": 1_000_000 + number, "number": number, "title": title, "state": "open", "user": {"login": "ada"},
            "created_at": self._time(), "updated_at": self._time(), "closed_at": None,
            "repository_url": f"{self.url}/repos/acme/web",
        }  # fmt: skip
        if part == "pulls":
            made |= {"merged_at": None, "head": {"ref": "work"}, "base": {"repo": {"full_name": "acme/web"}}}
            self.event("PullRequestEvent", action="opened", number=number, pull_request={"number": number})
        else:
            self.event("IssuesEvent", action="opened", issue=made)
        self.lists[part].append(made)
        return made

    def close(self, one: dict[str, Any]) -> None:
        one |= {"state": "closed", "closed_at": self._time(), "updated_at": self._time()}
        if "merged_at" in one:
            one["merged_at"] = self._time()

    def answer(self, target: str, token: str, etag: str) -> tuple[int, dict[str, str], bytes]:
        found = urlsplit(target)
        part = found.path.rpartition("/")[2]
        headers = {"date": format_datetime(self.now, usegmt=True), "x-ratelimit-limit": "5000"}
        headers |= {"x-ratelimit-reset": str(int((self.now + RESET).timestamp()))}
        status, body = self._status(found.path, token), b"{}"
        if status == _ANSWERED:
            body = json.dumps(self._page(part, parse_qs(found.query))).encode()
            own = f'W/"{sha256(body).hexdigest()[:20]}"'
            headers |= {"etag": own} | ({"x-poll-interval": str(self.wish)} if part == "events" else {})
            status, body = (304, b"") if etag == own else (_ANSWERED, body)
        self.left -= status == _ANSWERED
        headers["x-ratelimit-remaining"] = str(max(self.left, 0))
        self.answers.append((part, status))
        return status, headers, body

    def _status(self, path: str, token: str) -> int:
        if token != f"Bearer {self.token}":
            return 401
        if self.left <= 0:
            return 403
        return self.status if path.startswith("/repos/acme/web/") else 404

    def _page(self, part: str, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        items = list(self.lists[part])
        if part != "events":
            items.sort(key=lambda one: one["updated_at"], reverse=query.get("direction") == ["desc"])
            items = [one for one in items if one["updated_at"] >= query.get("since", [""])[0]]
        size, page = int(query["per_page"][0]), int(query.get("page", ["1"])[0])
        return items[size * (page - 1) : size * page]

    def _time(self) -> str:
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _next(self) -> int:
        self._number += 1
        return self._number


@contextmanager
def serving() -> Iterator[Hub]:
    hub = Hub()

    class Handler(Quiet):
        def do_GET(self) -> None:  # noqa: N802  as the library has it
            etag, token = self.headers.get("if-none-match", ""), self.headers.get("authorization", "")
            status, headers, body = hub.answer(self.path, token, etag)
            self.send_response_only(status)
            for name, value in (headers | {"content-length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    with served(Handler) as hub.url:
        yield hub
