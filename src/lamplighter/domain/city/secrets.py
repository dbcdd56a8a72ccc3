"""The secrets that the city's own files refer to."""

from collections.abc import Collection, Iterator, Mapping

from lamplighter.domain.city.model import City
from lamplighter.domain.secrets import references
from lamplighter.kit.nearest import did_you_mean


def unknown_secrets(city: City, known: Collection[str]) -> list[str]:
    """A sentence for each variable that refers to a secret that is not there."""
    return [
        f"{place}: env.{variable}: there is no secret `{secret}`{did_you_mean(secret, known)}"
        for place, env in _environments(city)
        for variable, secret in references(env).items()
        if secret not in known
    ]


def _environments(city: City) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield from ((f"provider {name}", one.env) for name, one in city.providers.items())
    yield from ((f"agent {one.qualified_name}", one.env) for one in city.agents)
    yield from ((f"configuration {one.name}", one.env) for one in city.configurations)
