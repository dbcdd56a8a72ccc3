"""Configurations as commands use them: synced with city.toml first, then listed, shown and changed."""

from collections.abc import Mapping
from typing import Any

from lamplighter.app.inline_run import daemon_runs
from lamplighter.app.wiring import OpenCity
from lamplighter.services import configurations


def listed(city: OpenCity) -> list[dict[str, Any]]:
    in_step(city)
    return city.store.read(configurations.every)


def shown(city: OpenCity, name: str) -> dict[str, Any]:
    in_step(city)
    return city.store.read(configurations.show, name)


def create(city: OpenCity, body: Mapping[str, Any]) -> dict[str, Any]:
    in_step(city)
    row = city.store.transact(configurations.create, body, source="cli", city=city.config.city, act=city.act())
    return city.store.read(configurations.show, row.name)


def edit(city: OpenCity, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    in_step(city)
    city.store.transact(configurations.edit, name, changes, city=city.config.city, act=city.act())
    return city.store.read(configurations.show, name)


def delete(city: OpenCity, name: str) -> None:
    in_step(city)
    city.store.transact(configurations.delete, name, act=city.act())


def in_step(city: OpenCity) -> None:
    """Sync the store's configurations with city.toml, unless a daemon runs, which does so itself."""
    if not daemon_runs(city):
        city.store.transact(configurations.sync, city.config.city.configurations, city.clock.now())
