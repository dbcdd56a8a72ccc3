"""Who sent a delivery is proved by its bytes and a secret, and by nothing else."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from lamplighter.domain.connections.signatures import new_secret, signed, unverified, wrong_secret
from lamplighter.domain.delivery_fields import Provider

NOW = datetime(2026, 11, 18, 8, 15, 42, tzinfo=UTC)
BODY = b'{"lamp": "lit"}'
CHANCE = bytes(range(32))


def headers(provider: Provider, secret: str, body: bytes = BODY, at: datetime = NOW) -> dict[str, str]:
    return signed(provider, secret, "msg_1", body, at)


@pytest.mark.parametrize("provider", list(Provider))
def test_what_is_signed_is_verified_and_nothing_else_is(provider: Provider) -> None:
    secret, other = new_secret(provider, CHANCE), new_secret(provider, CHANCE[::-1])
    assert not wrong_secret(provider, secret)
    made = headers(provider, secret)
    assert unverified(provider, [secret], made, BODY, NOW) == ""
    assert unverified(provider, [other, secret], made, BODY, NOW) == "", "a secret that was rotated still holds"
    assert unverified(provider, [other], made, BODY, NOW)
    assert unverified(provider, [], made, BODY, NOW)
    assert unverified(provider, [secret], {}, BODY, NOW)
    if provider is not Provider.BEARER:
        assert unverified(provider, [secret], made, BODY + b" ", NOW)
    for name in made:
        for value in ("", "sha256=", "v1,", "é", "x" * 1000):
            if name != "webhook-id" or provider is Provider.STANDARD:
                assert unverified(provider, [secret], made | {name: value}, BODY, NOW), (name, value)


@given(body=st.binary(max_size=300), chance=st.binary(min_size=24, max_size=64))
def test_standard_webhooks_agree_with_their_own_library(body: bytes, chance: bytes) -> None:
    secret, now = new_secret(Provider.STANDARD, chance), datetime.now(UTC)
    text = body.decode("latin-1")  # the library takes texts only
    oracle = Webhook(secret)
    assert unverified(Provider.STANDARD, [secret], _by(oracle, text, now), text.encode(), now) == ""
    made = headers(Provider.STANDARD, secret, text.encode(), now)
    assert made["webhook-signature"] == oracle.sign("msg_1", now, text)


def _by(oracle: Webhook, text: str, now: datetime) -> dict[str, str]:
    signature = f"v1a,ignored v1,{base64.b64encode(b'other').decode()} {oracle.sign('msg_1', now, text)}"
    return {"webhook-id": "msg_1", "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}


@pytest.mark.parametrize("ago", [timedelta(minutes=6), timedelta(minutes=-6)])
def test_an_old_or_a_coming_standard_webhook_is_refused(ago: timedelta) -> None:
    secret = new_secret(Provider.STANDARD, CHANCE)
    told = unverified(Provider.STANDARD, [secret], headers(Provider.STANDARD, secret, at=NOW - ago), BODY, NOW)
    assert "not within 5 minutes" in told


def test_github_signs_as_its_documentation_says() -> None:
    """The example of GitHub's own page about validating deliveries."""
    secret, body = "It's a Secret to Everybody", b"Hello, World!"
    given_by_github = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert unverified(Provider.GITHUB, [secret], {"x-hub-signature-256": given_by_github}, body, NOW) == ""


def test_posthog_may_show_a_token_instead_of_signing() -> None:
    for shown in ({"authorization": f"Bearer {'t' * 20}"}, {"x-posthog-token": "t" * 20}):
        assert unverified(Provider.POSTHOG, ["t" * 20], shown, BODY, NOW) == ""
        assert unverified(Provider.POSTHOG, ["u" * 20], shown, BODY, NOW)
    mac = hmac.new(b"t" * 20, BODY, hashlib.sha256).hexdigest()
    both = {"authorization": f"Bearer {'t' * 20}", "x-posthog-signature": mac[::-1]}
    assert unverified(Provider.POSTHOG, ["t" * 20], both, BODY, NOW), "a wrong signature is not made good by a token"


@pytest.mark.parametrize("secret", ["", "short", "with a space in it", "ü" * 20, "x" * 15 + "\n"])
def test_a_secret_that_no_header_can_have_is_refused(secret: str) -> None:
    assert wrong_secret(Provider.BEARER, secret)
    assert wrong_secret(Provider.STANDARD, secret)
