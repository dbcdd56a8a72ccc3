"""Selects a configuration by asking a model through OpenAI's or Anthropic's protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

import httpx2

from lamplighter.domain.runs.selection import CALL_FAILED, answer, instructions, question
from lamplighter.domain.runs.target import NO_CANDIDATES, Candidate, NotSelected, Selection
from lamplighter.kit import json_text
from lamplighter.kit.limits import TimeLimit
from lamplighter.kit.masking import masked

LIMIT = timedelta(seconds=15)
MOST_TOKENS = 256
LARGEST_ANSWER = 1 << 20
ANTHROPIC_VERSION = "2023-06-01"
_LONGEST_REASON = 200


class Speaks(StrEnum):
    OPENAI = "openai"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True)
class Endpoint:
    """`url` is the service's base: `/v1/messages` or `/v1/chat/completions` is added to it."""

    speaks: Speaks
    url: str
    model: str
    key: str = field(default="", repr=False)


def endpoint_of(env: Mapping[str, str]) -> Endpoint | None:
    """The endpoint that `env` names; None without `LAMP_SELECTOR_MODEL`.

    URL and key default to the variables that agent programs use too, such as `ANTHROPIC_API_KEY`.
    """
    model = env.get("LAMP_SELECTOR_MODEL", "")
    if not model:
        return None
    named = env.get("LAMP_SELECTOR_PROTOCOL", "").lower()
    speaks = (
        Speaks.OPENAI if named == "openai" or (not named and not env.get("ANTHROPIC_API_KEY")) else Speaks.ANTHROPIC
    )
    if speaks is Speaks.ANTHROPIC:
        known = (env.get("ANTHROPIC_BASE_URL"), "https://api.anthropic.com", env.get("ANTHROPIC_API_KEY"))
    else:
        known = (env.get("OPENAI_BASE_URL"), "https://api.openai.com", env.get("OPENAI_API_KEY"))
    url = env.get("LAMP_SELECTOR_URL") or known[0] or known[1] or ""
    return Endpoint(speaks, url, model, env.get("LAMP_SELECTOR_KEY") or known[2] or "")


class ModelSelector:
    def __init__(self, endpoint: Endpoint | None, *, limit: timedelta = LIMIT) -> None:
        self._endpoint = endpoint
        self._limit = limit

    async def select(self, payload: Mapping[str, Any], candidates: Sequence[Candidate]) -> Selection:
        if not candidates:
            return NotSelected(NO_CANDIDATES)
        if self._endpoint is None:
            return NotSelected(f"{CALL_FAILED}: no model is configured; set LAMP_SELECTOR_MODEL")
        try:
            async with TimeLimit(self._limit.total_seconds()):
                said = await _asked(self._endpoint, instructions(candidates), question(payload))
        except TimeoutError:
            return NotSelected(f"{CALL_FAILED}: no answer within {self._limit.total_seconds():g} s")
        except Exception as error:  # noqa: BLE001  on any failure the run continues with its fallback
            return NotSelected(f"{CALL_FAILED}: {_told(error)}")
        return answer(said, candidates)


class CallFailed(Exception):
    """The service answered, but not with what was asked for."""


async def _asked(endpoint: Endpoint, system: str, user: str) -> str | None:
    path, headers, body = _request(endpoint, system, user)
    url = endpoint.url.rstrip("/").removesuffix("/v1") + path
    # trust_env=False: proxies and keys in this process's environment are not meant for this call.
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=None) as client,
        client.stream("POST", url, headers=headers, json=body) as response,
    ):
        data = await _bounded(response)
    if response.status_code != 200:
        raise CallFailed(f"HTTP {response.status_code}")
    return _text(endpoint.speaks, json_text.parse(data))


def _request(endpoint: Endpoint, system: str, user: str) -> tuple[str, dict[str, str], dict[str, Any]]:
    said = {"role": "user", "content": user}
    common = {"model": endpoint.model, "temperature": 0, "max_tokens": MOST_TOKENS}
    match endpoint.speaks:
        case Speaks.ANTHROPIC:
            headers = {"x-api-key": endpoint.key, "anthropic-version": ANTHROPIC_VERSION}
            return "/v1/messages", headers, {**common, "system": system, "messages": [said]}
        case Speaks.OPENAI:
            headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
            messages = [{"role": "system", "content": system}, said]
            return "/v1/chat/completions", headers, {**common, "messages": messages}


async def _bounded(response: httpx2.Response) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > LARGEST_ANSWER:
            raise CallFailed("the answer is too large")
    return bytes(data)


def _text(speaks: Speaks, body: Any) -> str | None:
    """The model's text; None when the body holds none."""
    try:
        match speaks:
            case Speaks.ANTHROPIC:
                return "".join(block.get("text", "") for block in body["content"] if block.get("type") == "text")
            case Speaks.OPENAI:
                found = body["choices"][0]["message"]["content"]
                return found if isinstance(found, str) else None
    except (KeyError, IndexError, TypeError, AttributeError):
        return None


def _told(error: Exception) -> str:
    said = " ".join(masked(str(error)).split())
    return (f"{type(error).__name__}: {said}" if said else type(error).__name__)[:_LONGEST_REASON]
