"""Deliveries over HTTP: what is not verified, too large or no JSON is refused, and costs next to nothing."""

import asyncio
import base64
import hashlib
import hmac
import json
import sys
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
import structlog
from served import Served
from standardwebhooks.webhooks import Webhook

from lamplighter.domain.secrets import KeyUnusable, SecretLocked
from lamplighter.kit import log
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.services.deliveries.receiving import Receiver, Source
from lamplighter.web import bodies, rates

BODY = b'{"type": "lamp.lit", "title": "The lamp is lit"}'


async def connect(city: Served, name: str = "shop", **keys: Any) -> str:
    made = await city.call("POST", "/api/v1/connections", headers=city.owner, body={"name": name} | keys)
    assert made.status_code == 201, made.text
    assert made.headers["location"].endswith(f"/connections/{name}")
    secret: str = made.json()["secret"]
    return secret


def signed(secret: str, body: bytes = BODY, message: str = "msg_1") -> dict[str, str]:
    now = datetime.now(UTC)
    told = {"webhook-id": message, "webhook-timestamp": str(int(now.timestamp())), "content-type": "application/json"}
    return told | {"webhook-signature": Webhook(secret).sign(message, now, body.decode())}


async def send(city: Served, headers: dict[str, str], body: bytes = BODY, name: str = "shop") -> httpx2.Response:
    return await city.call("POST", f"/hooks/{name}", headers=headers, raw=body)


async def kept(city: Served) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await city.call("GET", "/api/v1/deliveries", headers=city.owner)).json()["data"]
    return found


async def test_a_signed_delivery_is_kept_once_and_needs_no_token(city: Served) -> None:
    secret = await connect(city)
    headers = signed(secret)
    first, again = await send(city, headers), await send(city, headers)
    assert (first.status_code, again.status_code) == (202, 202)
    assert (first.json()["repeated"], again.json()) == (False, {"id": first.json()["id"], "repeated": True})
    (found,) = await kept(city)
    assert (found["id"], found["verified"], found["repeats"]) == (first.json()["id"], True, 1)
    shown = await city.call("GET", f"/api/v1/deliveries/{found['id']}", headers=city.owner)
    assert "webhook-signature" not in shown.json()["headers"]
    assert secret not in (await city.call("GET", "/api/v1/connections/shop", headers=city.owner)).text


async def test_what_is_not_verified_is_refused_and_not_kept(city: Served) -> None:
    secret = await connect(city)
    other = f"whsec_{base64.b64encode(b'o' * 32).decode()}"
    wrong = [
        {}, signed(other), signed(secret) | {"webhook-id": "msg_2"}, signed(secret, b"{}"),
        {"authorization": f"Bearer {secret}"}, city.owner,
    ]  # fmt: skip
    answers = [await send(city, headers) for headers in wrong]
    assert [one.status_code for one in answers] == [401] * len(wrong)
    answers.append(await send(city, signed(secret), name="nothing"))
    told = [one.json() | {"instance": ""} for one in answers]
    assert told == [told[0]] * len(told), "a stranger learns no name and no reason"
    assert "shop" not in answers[0].text
    large = [await send(city, {}, b" " * (bodies.LARGEST + 1), name) for name in ("shop", "nothing")]
    assert [one.status_code for one in large] == [413, 413]
    assert (await city.call("GET", "/hooks/shop", headers=city.owner)).status_code == 405
    assert await kept(city) == []


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("No space is left on /var/city.", hint="df"),
        SecretLocked("s", "no key k-7", "h"),
        KeyUnusable("The key file /k is torn."),
    ],
)
async def test_a_city_that_cannot_take_deliveries_tells_strangers_nothing_of_itself(
    city: Served,
    error: LampError,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    log.set_up(sys.stderr)
    request.addfinalizer(structlog.reset_defaults)

    async def source(_self: Receiver, _name: str) -> Source:
        raise error

    monkeypatch.setattr(Receiver, "source", source)
    answer = await send(city, {})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["detail"] == "The delivery cannot be taken now."
    logged = capsys.readouterr().err
    assert "hooks.failed" in logged
    assert error.message in logged


@pytest.mark.parametrize(
    "body",
    [
        b"", b"not json", b"[]", b'"text"', b"{" * 5000, b'{"a":' * 200 + b"1" + b"}" * 200, b'{"a": NaN}',
        b"\xff\xfe{}", b'{"a": "\\u0000"}', b'{"a": "\\ud800"}', b'{"a": 1}\x00',
    ],
)  # fmt: skip
async def test_a_body_that_cannot_be_kept_is_refused(city: Served, body: bytes) -> None:
    token = await connect(city, "plain", provider="bearer")
    answer = await send(city, {"authorization": f"Bearer {token}"}, body, "plain")
    assert answer.status_code == 400, answer.text
    assert await kept(city) == []


async def test_a_body_that_is_too_large_is_refused_before_it_is_read_whole(city: Served) -> None:
    token = await connect(city, "plain", provider="bearer")
    most = b'{"a": "' + b"x" * (bodies.LARGEST - 9) + b'"}'
    headers = {"authorization": f"Bearer {token}"}
    assert (await send(city, headers, most, "plain")).status_code == 202
    assert (await send(city, headers, most + b" ", "plain")).status_code == 413
    assert len(await kept(city)) == 1


async def test_github_may_send_a_form(city: Served) -> None:
    secret = await connect(city, "gh", provider="github")
    body = urlencode({"payload": json.dumps({"action": "opened", "sender": {"login": "ada"}})}).encode()
    mac = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"content-type": "application/x-www-form-urlencoded", "x-hub-signature-256": f"sha256={mac}"}
    assert (await send(city, headers | {"x-github-delivery": "d-1"}, body, "gh")).status_code == 202
    empty = b"other=1"
    wrong = headers | {"x-hub-signature-256": "sha256=" + hmac.new(secret.encode(), empty, hashlib.sha256).hexdigest()}
    assert (await send(city, wrong, empty, "gh")).status_code == 400


def signed_body(provider: str, secret: str, told: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    body = json.dumps(told).encode()
    header = {"github": "x-hub-signature-256", "posthog": "x-posthog-signature"}.get(provider, f"{provider}-signature")
    header = header.replace("sentry-", "sentry-hook-")
    return {header: hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}, body


def milliseconds(ago: float = 0) -> int:
    return int((datetime.now(UTC).timestamp() - ago) * 1000)


@pytest.mark.parametrize(
    ("provider", "id_header"),
    [
        ("github", "x-github-delivery"),
        ("sentry", "request-id"),
        ("linear", "linear-delivery"),
        ("posthog", "webhook-id"),
    ],
)
async def test_a_captured_delivery_under_another_id_is_the_same_delivery(
    city: Served, provider: str, id_header: str
) -> None:
    secret = await connect(city, "one", provider=provider)
    told = {"action": "opened", "webhookTimestamp": milliseconds(ago=60)}
    headers, body = signed_body(provider, secret, told)
    first, again = [await send(city, headers | {id_header: one}, body, "one") for one in ("d-1", "d-2")]
    assert (first.status_code, again.json()) == (202, {"id": first.json()["id"], "repeated": True})
    edited, other = signed_body(provider, secret, told | {"updated_at": "later"})
    assert (await send(city, edited | {id_header: "d-1"}, other, "one")).json()["repeated"] is False
    assert len(await kept(city)) == 2


async def test_linear_sends_the_same_again_with_a_new_time_and_an_old_time_is_refused(city: Served) -> None:
    secret = await connect(city, "one", provider="linear")

    async def sent(**keys: Any) -> httpx2.Response:
        return await send(city, *signed_body("linear", secret, {"action": "update"} | keys), "one")

    first, again = await sent(webhookTimestamp=milliseconds(60)), await sent(webhookTimestamp=milliseconds())
    assert again.json() == {"id": first.json()["id"], "repeated": True}
    wrong: list[dict[str, Any]] = [
        {},
        {"webhookTimestamp": milliseconds(400)},
        {"webhookTimestamp": milliseconds(-400)},
    ]
    wrong += [{"webhookTimestamp": one} for one in (True, None, str(milliseconds()), float(milliseconds()))]
    assert [(await sent(**keys)).status_code for keys in wrong] == [401] * len(wrong)


async def test_a_rotated_secret_holds_until_its_overlap_is_over(city: Served) -> None:
    old = await connect(city)
    rotated = await city.call("POST", "/api/v1/connections/shop/rotate", headers=city.owner, body={"overlap": "1h"})
    new = rotated.json()["secret"]
    assert old != new
    assert [(await send(city, signed(one, message=one[-6:]))).status_code for one in (old, new)] == [202, 202]
    last = await city.call("POST", "/api/v1/connections/shop/rotate", headers=city.owner, body={"overlap": "0s"})
    newest = last.json()["secret"]
    sent = [(await send(city, signed(one, message=f"x{one[-6:]}"))).status_code for one in (old, new, newest)]
    assert sent == [401, 401, 202]


async def test_a_connection_made_anew_takes_nothing_by_the_secret_of_the_old_one(city: Served) -> None:
    old = await connect(city, "plain", provider="bearer")
    assert (await send(city, {"authorization": f"Bearer {old}"}, name="plain")).status_code == 202
    assert (await city.call("DELETE", "/api/v1/connections/plain", headers=city.owner)).status_code == 204
    assert (await send(city, {"authorization": f"Bearer {old}"}, name="plain")).status_code == 401
    new = await connect(city, "plain", provider="bearer")
    sent = [(await send(city, {"authorization": f"Bearer {one}"}, name="plain")).status_code for one in (old, new, old)]
    assert sent == [401, 202, 401]


async def at_once(city: Served, sent: list[tuple[dict[str, str], bytes]]) -> list[httpx2.Response]:
    async with httpx2.AsyncClient(base_url=city.url, trust_env=False, timeout=120) as client:
        return await asyncio.gather(*(client.post("/hooks/plain", headers=one, content=body) for one, body in sent))


async def test_strangers_at_once_are_refused_and_the_sender_beside_them_is_not(city: Served) -> None:
    token = await connect(city, "plain", provider="bearer")
    good, wrong = ({"authorization": f"Bearer {one}"} for one in (token, "x" * 40))
    assert (await send(city, good, name="plain")).status_code == 202
    answers = await at_once(city, [(good if one % 4 == 0 else wrong, BODY) for one in range(24)])
    assert [one.status_code for one in answers] == [202 if one % 4 == 0 else 401 for one in range(24)]


async def test_many_senders_at_once_are_each_answered_with_their_own(city: Served) -> None:
    token = await connect(city, "plain", provider="bearer")
    headers = {"authorization": f"Bearer {token}"}
    sent = [(headers | {"webhook-id": f"m-{one % 20}"}, b'{"n": %d}' % one) for one in range(40)]
    answers = await at_once(city, sent)
    assert [one.status_code for one in answers] == [202] * 40
    ids = {one.json()["id"] for one in answers}
    found = await kept(city)
    assert {one["id"] for one in found} == ids
    assert sum(one["repeats"] for one in found) == 40 - len(ids)
    assert len({one.headers["x-request-id"] for one in answers}) == 40


async def test_more_than_the_rate_is_refused_with_a_time(city: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    token = await connect(city, "plain", provider="bearer")
    monkeypatch.setattr(rates.Rates, "count", _too_many)
    answer = await send(city, {"authorization": f"Bearer {token}"}, b"{}", "plain")
    assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (429, True)
    assert (await send(city, {}, b"{}", "plain")).status_code == 401, "a stranger does not use up the rate"


def _too_many(_self: rates.Rates, _who: str, _much: int = 1) -> None:
    from lamplighter.web.errors import TooMany

    raise TooMany(1, 60)


async def test_more_bytes_than_the_rate_are_refused_with_a_time(city: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    token = await connect(city, "plain", provider="bearer")
    counted = rates.Rates.count

    def narrow(self: rates.Rates, who: str, much: int = 1) -> None:
        counted(self, who, much << 20 if self.what == "bytes" else much)

    monkeypatch.setattr(rates.Rates, "count", narrow)
    body = b'{"a": "' + b"x" * 150 + b'"}'
    answers = [await send(city, {"authorization": f"Bearer {token}"}, body, "plain") for _ in range(2)]
    assert [one.status_code for one in answers] == [202, 429]
    assert "bytes" in answers[1].json()["detail"]
    assert int(answers[1].headers["retry-after"]) > 0


async def test_a_connection_in_use_stays_and_its_name_is_its_own(city: Served) -> None:
    await connect(city, "gh", provider="github")
    taken = await city.call("POST", "/api/v1/connections", headers=city.owner, body={"name": "gh"})
    assert taken.status_code == 409
    job = {"name": "fix", "exec": "true", "gate": "webhook", "connection": "gh"}
    assert (await city.call("POST", "/api/v1/automations", headers=city.owner, body=job)).status_code == 201
    used = await city.call("DELETE", "/api/v1/connections/gh", headers=city.owner)
    assert (used.status_code, "fix" in used.text) == (409, True)
    assert (await city.call("DELETE", "/api/v1/automations/fix", headers=city.owner)).status_code == 204
    assert (await city.call("DELETE", "/api/v1/connections/gh", headers=city.owner)).status_code == 204
    assert (await send(city, {}, b"{}", "gh")).status_code == 401


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"provider": "linear", "poll": True, "repo": "acme/web"}, "Only GitHub"),
        ({"provider": "github", "poll": True}, "repository"),
        ({"provider": "github", "poll": True, "repo": "acme/web/../x"}, "repository"),
        ({"provider": "github", "repo": "acme/web"}, "polling"),
        ({"provider": "github", "poll": True, "repo": "acme/web", "api_url": "http://ghe.example"}, "https"),
        ({"provider": "github", "poll": True, "repo": "acme/web", "api_url": "https://u:p@ghe.example"}, "only scheme"),
        ({"provider": "github", "poll": True, "repo": "acme/web", "token_secret": "GH"}, "GH"),
    ],
)
async def test_a_poll_that_cannot_work_is_refused(city: Served, keys: dict[str, Any], told: str) -> None:
    made = await city.call("POST", "/api/v1/connections", headers=city.owner, body={"name": "gh"} | keys)
    assert made.status_code in (400, 404), made.text
    assert told in made.text
    assert (await city.call("GET", "/api/v1/connections", headers=city.owner)).json()["data"] == []


async def test_a_connection_says_what_it_polls_and_its_secrets_are_in_no_answer(city: Served) -> None:
    kept = await city.call("PUT", "/api/v1/secrets/GH", headers=city.owner, body={"secret": "ghp-very-secret"})
    assert kept.is_success, kept.text
    await connect(city, "gh", provider="github", poll=True, repo="acme/web", token_secret="GH")  # noqa: S106  its name
    shown = await city.call("GET", "/api/v1/connections/gh", headers=city.owner)
    poll = shown.json()["poll"]
    assert (poll["repo"], poll["token_secret"], poll["api_url"]) == ("acme/web", "GH", "https://api.github.com")
    assert "ghp-very-secret" not in shown.text
    assert (await city.call("DELETE", "/api/v1/connections/gh", headers=city.owner)).status_code == 204
    assert city.opened.store.read(lambda tx: tx.polls.all()) == []
