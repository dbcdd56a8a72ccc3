"""What `[oidc]` needs, and what it may not have."""

import pytest

from lamplighter.domain.city.check import check_city
from lamplighter.domain.city.decode import build, read
from lamplighter.domain.city.model import City
from lamplighter.domain.city.tree import Findings, Origin, Place

ROOT = Place(Origin("city", "city.toml"))
SOUND = {"issuer": "https://accounts.example.org/realms/town", "client_id": "town"}


def told(row: dict[str, object]) -> str:
    found = Findings()
    table = read(City, {"workspace": {"name": "town"}, "oidc": row}, ROOT, found)
    city = build(table, found)
    if not found.problems:
        check_city(city, table, found)
    return " ".join(str(one) for one in found.problems)


@pytest.mark.parametrize(
    "more", [{}, {"client_secret": "secret:OIDC", "domains": ["example.org"]}, {"issuer": "http://127.0.0.1:5556/dex"}]
)
def test_what_is_sound_is_accepted(more: dict[str, object]) -> None:
    assert told(SOUND | more) == ""


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({}, "without `issuer`"),
        ({"issuer": SOUND["issuer"]}, "without `client_id`"),
        (SOUND | {"issuer": "http://accounts.example.org"}, "no https address"),
        (SOUND | {"issuer": "https://a.example.org/?x=1"}, "more than scheme, host and path"),
        (SOUND | {"issuer": "accounts"}, "not a web address"),
        (SOUND | {"client_secret": "abc"}, "lamp secret set"),
        (SOUND | {"domains": ["@example.org"]}, "not the domain"),
        (SOUND | {"domains": ["localhost"]}, "not the domain"),
        (SOUND | {"isuer": "x"}, "did you mean `issuer`"),
    ],
)
def test_what_cannot_work_is_refused(row: dict[str, object], why: str) -> None:
    assert why in told(row)
