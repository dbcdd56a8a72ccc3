"""The page about configurations knows every key and every route."""

from pathlib import Path

from lamplighter.domain.city.keys import keys_of
from lamplighter.domain.city.model import Configuration
from lamplighter.services import table
from lamplighter.services.operation import ROOT

PAGE = (Path(__file__).parents[2] / "docs/reference/configurations.md").read_text()


def test_every_key_is_on_the_page() -> None:
    assert [key for key in keys_of(Configuration) if f"| `{key}` |" not in PAGE] == []


def test_every_route_is_on_the_page() -> None:
    routes = [operation.http for operation in table.every() if operation.subject == "configuration" and operation.http]
    assert len(routes) == 5
    for route in routes:
        assert f"`{route.method} {ROOT}{route.path}`" in PAGE
