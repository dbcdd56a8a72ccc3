"""The page about configurations knows every key and every route."""

from pathlib import Path

from lamplighter.domain.city.keys import keys_of
from lamplighter.domain.city.model import Configuration
from lamplighter.services.configurations import Configurations
from lamplighter.web.api.configurations import routes

PAGE = (Path(__file__).parents[2] / "docs/reference/configurations.md").read_text()


def test_every_key_is_on_the_page() -> None:
    assert [key for key in keys_of(Configuration) if f"| `{key}` |" not in PAGE] == []


def test_every_route_is_on_the_page() -> None:
    service = Configurations.__new__(Configurations)
    for route in routes(service):
        for method in (route.methods or set()) - {"HEAD"}:
            assert f"`{method} {route.path}`" in PAGE
