"""GitHub's REST API, as far as it is read; and the token of its command `gh`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from lamplighter.adapters.processes.child import Call, run_child
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.limits import TimeLimit
from lamplighter.ports.polling import Fetched

SECONDS = 20.0
WHOLE_SECONDS = 120.0
"""For a whole answer: the limit above is for each read, and a slow drip has none."""
LARGEST = 32 << 20
GH_LIMIT = timedelta(seconds=20)
_SHORT = 4096


@dataclass(frozen=True)
class GitHub:
    root: Path
    env: Mapping[str, str]
    within: float = WHOLE_SECONDS

    async def fetch(self, address: str, token: str, etag: str) -> Fetched:
        import httpx2  # takes long to import, and few cities poll

        headers = {
            "accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28",
            "authorization": f"Bearer {token}", "user-agent": "lamplighter",
        } | ({"if-none-match": etag} if etag else {})  # fmt: skip
        host = urlsplit(address).netloc
        try:
            async with (
                TimeLimit(self.within),
                httpx2.AsyncClient(timeout=SECONDS, follow_redirects=False) as client,
                client.stream("GET", address, headers=headers) as answer,
            ):
                found = {key.lower(): value for key, value in answer.headers.items()}
                if answer.status_code != 200:
                    return Fetched(answer.status_code, found)
                body = bytearray()
                async for piece in answer.aiter_bytes():
                    body += piece
                    if len(body) > LARGEST:
                        raise Unavailable(f"{host} sent more than {LARGEST} bytes.")
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            raise Unavailable(f"{host} gave no answer: {type(error).__name__}.") from error
        try:
            items = json.loads(body)
        except (ValueError, RecursionError):
            items = None
        if not isinstance(items, list):
            raise Unavailable(f"{host} answered with something that is no list.", hint="Check the address of its API.")
        return Fetched(200, found, items)

    async def default_token(self, url: str) -> str:
        host = urlsplit(url).hostname or ""
        name = "github.com" if host == "api.github.com" else host
        call = Call(
            ("gh", "auth", "token", "--hostname", name), self.root, dict(self.env), GH_LIMIT,
            longest_output=_SHORT, ends_helpers=True,
        )  # fmt: skip
        hint = "Sign in with `gh auth login`, or make the connection with `--token-secret NAME`."
        try:
            ended = await run_child(call)
        except LampError as error:
            raise Unavailable("`gh auth token` could not be run.", hint=hint) from error
        token = ended.output.decode(errors="replace").strip()
        if ended.exit_code or not token or len(token.split()) != 1:
            raise Unavailable(f"`gh` has no token for {name}.", hint=hint)
        return token
