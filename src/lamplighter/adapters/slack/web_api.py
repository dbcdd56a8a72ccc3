"""Slack's Web API over HTTP."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from lamplighter.adapters.slack.socket_mode import can_listen
from lamplighter.kit import json_text
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.limits import TimeLimit
from lamplighter.ports.messenger import NotTaken
from lamplighter.ports.slack import Method, SlackLimited, SlackRefused

VARIABLE = "LAMP_SLACK_API_URL"
"""The variable of the environment with another address of the Web API, as of a proxy."""
ADDRESS = "https://slack.com/api/"
HOST = "slack.com"
SECONDS = 10.0
FETCHED, MOST_REDIRECTS = 60.0, 4
SCOPES = "x-oauth-scopes"
_FINE = 200
LONGEST_WAIT = timedelta(minutes=5)
_FORMS = frozenset({Method.HISTORY, Method.REPLIES, Method.USER})
"""What Slack takes as a form only."""
_ERROR = re.compile(r"[a-z][a-z0-9_]{1,99}")
_TOO_MANY = 429
_FAULTS, _AWAY = 500, 503
_UNSURE = frozenset({"fatal_error", "internal_error"})
"""Refusals after which, as Slack says, a part of the call may have been carried out."""


@dataclass(frozen=True)
class SlackWebApi:
    """`address` ends with a slash."""

    address: str = ADDRESS
    seconds: float = SECONDS

    @staticmethod
    def of(env: Mapping[str, str]) -> "SlackWebApi":
        return SlackWebApi(f"{(env.get(VARIABLE) or ADDRESS).rstrip('/')}/")

    def can_listen(self) -> bool:
        return can_listen()

    async def call(self, method: str, token: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        import httpx2  # takes long to import, and few processes send anything

        headers = {"authorization": f"Bearer {token}", "user-agent": "lamplighter"}
        given: dict[str, Any] = {"data": dict(args)} if method in _FORMS else {"json": dict(args)}
        try:
            async with (
                TimeLimit(self.seconds),  # the client's own limit is for each read: a slow drip has none
                httpx2.AsyncClient(timeout=self.seconds, follow_redirects=False) as client,
            ):
                answer = await client.post(f"{self.address}{method}", headers=headers, **given)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise NotTaken(f"Slack cannot be reached: {error}.", hint="Check the city's way out.") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            told = f"Slack gave no answer to {method}: {type(error).__name__}."
            raise Unavailable(told, hint="It is not known whether it was taken.") from error
        if answer.status_code == _TOO_MANY:
            raise SlackLimited(method, _wait(answer.headers.get("retry-after", "")))
        if answer.status_code == _AWAY:  # that is how a server says that it does not handle the request at all
            raise NotTaken(f"Slack is away: it answered {method} with {_AWAY}.", hint="It is tried again.")
        if answer.status_code >= _FAULTS:
            told = f"Slack answered {method} with {answer.status_code}."
            raise Unavailable(told, hint="It is not known whether it was taken.")
        found = _read(method, answer.status_code, answer.text)
        if method == Method.AUTH_TEST:
            return {**found, "scopes": answer.headers.get(SCOPES, "")}
        return found

    async def fetch(self, url: str, token: str, *, most: int, size: int = 0) -> bytes:
        import httpx2

        if not self._is_slack(url):
            raise NotTaken("It is not kept by Slack.")
        headers = {"authorization": f"Bearer {token}", "user-agent": "lamplighter"}
        try:
            async with TimeLimit(FETCHED), httpx2.AsyncClient(timeout=self.seconds, follow_redirects=False) as client:
                for _ in range(MOST_REDIRECTS):
                    async with client.stream("GET", url, headers=headers) as answer:
                        if not answer.has_redirect_location:
                            return await _bytes(answer, most, size)
                        url = str(answer.url.join(answer.headers["location"]))
                        headers.pop("authorization", None)
                    if not url.startswith(("https://", "http://127.0.0.1:" if self._is_local else "https://")):
                        raise NotTaken("Slack sends to a place that is not safe.")
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            raise NotTaken(f"Slack did not give it: {type(error).__name__}.") from error
        raise NotTaken("Slack sends from place to place.")

    @property
    def _is_local(self) -> bool:
        return urlsplit(self.address).hostname == "127.0.0.1"

    def _is_slack(self, url: str) -> bool:
        """Whether the token may be shown there: to Slack's own hosts, and to what stands in for them."""
        parts, own = urlsplit(url), urlsplit(self.address)
        host = parts.hostname or ""
        if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
            return True
        return parts.scheme == "https" and (host == HOST or host.endswith(f".{HOST}")) and parts.username is None


async def _bytes(answer: Any, most: int, size: int) -> bytes:
    if answer.status_code != _FINE:
        raise NotTaken(f"Slack answered {answer.status_code}.")
    is_page = answer.headers.get("content-type", "").startswith("text/html")
    if is_page and not size:
        raise NotTaken("Slack gave a web page: either it asks to sign in, and the app needs the scope `files:read`, or "
                       "the file is one, and Slack did not say how long it is.")  # fmt: skip
    found = b""
    async for part in answer.aiter_bytes():
        found += part
        if len(found) > most:
            raise NotTaken(f"it has more than {most >> 20} MB.")
    if is_page and len(found) != size:
        raise NotTaken("Slack asks to sign in: the app needs the scope `files:read`.")
    return found


def _read(method: str, status: int, text: str) -> Mapping[str, Any]:
    try:
        found = json_text.parse(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unavailable(f"What answered {method} with {status} is not Slack's API.", hint=f"Check {VARIABLE}.")
    if found.get("ok") is not True:
        error = str(found.get("error", status))
        if not _ERROR.fullmatch(error):  # nothing of what else may stand there is repeated: a token might
            error = "an error that is none of Slack's"
        if error in _UNSURE:
            raise Unavailable(f"Slack answered {method} with {error}.", hint="It is not known whether it was taken.")
        raise SlackRefused(method, error)
    return found


def _wait(text: str) -> timedelta:
    seconds = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 30
    return min(timedelta(seconds=max(seconds, 1)), LONGEST_WAIT)
