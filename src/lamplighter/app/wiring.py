"""Builds a city's parts and hands them down; the one place that names adapters and services together."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lamplighter.adapters.files.city import CityPaths, city_at, find_city
from lamplighter.app.settings import Settings
from lamplighter.domain.acts import Act
from lamplighter.kit import toml_text
from lamplighter.kit.clock import Clock, SystemClock
from lamplighter.kit.errors import NotFound
from lamplighter.kit.ids import IdSource
from lamplighter.store.place import Place, open_direct, parse_place
from lamplighter.store.tx import DirectStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.beads.formulas import Formula
    from lamplighter.domain.city.loaded import LoadedCity
    from lamplighter.ports.beads import BeadStore


@dataclass(frozen=True)
class OpenCity:
    """A city as a command sees it: everything is opened when first asked for, so that short commands stay short."""

    settings: Settings
    paths: CityPaths
    clock: Clock
    ids: IdSource

    @cached_property
    def config(self) -> "LoadedCity":
        return self.load_config()

    @cached_property
    def place(self) -> Place:
        return parse_place(self._store_url(), self.paths.runtime)

    @cached_property
    def store(self) -> DirectStore:
        return open_direct(self.place, self.paths.city_id())

    @cached_property
    def beads(self) -> "BeadStore":
        from lamplighter.app.beads import bead_store

        return bead_store(self)

    def load_config(self, *, strict: bool = False) -> "LoadedCity":
        """Read anew. Raises ConfigInvalid with every problem; `strict` counts notes among them."""
        from lamplighter.adapters.files.layers import load_city

        return load_city(self.paths.root, env=self.settings.env, strict=strict)

    def act(self, actor: str | None = None) -> Act:
        return Act(actor=actor or self.settings.actor, at=self.clock.now(), run=self.settings.run)

    def prefix(self, rig: str | None = None) -> str:
        """The prefix of bead ids: the rig's, or the city's own."""
        wanted = rig or self.settings.env.get("LAMP_RIG") or self.settings.env.get("GC_RIG")
        if not wanted:
            return self.config.city.prefix
        found = self.config.city.rig(wanted)
        if found is None:
            raise NotFound(f"There is no rig `{wanted}`.", hint="`lamp rig list` shows those there are.")
        return found.prefix

    def formula_layers(self, rig: str | None = None) -> Sequence[Path]:
        layers = self.config.city.layers
        return layers.of(rig) if rig else layers.city

    def formula(self, name: str, rig: str | None = None) -> "Formula":
        from lamplighter.adapters.files.formulas import read_formula

        return read_formula(name, self.formula_layers(rig))

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()

    def _store_url(self) -> str:
        """The store's URL without reading the whole configuration, where city.toml alone can say it."""
        from_env = self.settings.env.get("LAMP_STORE_URL")
        if from_env:
            return from_env
        try:
            tree = toml_text.parse(self.paths.config.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError):
            return self.config.city.store.url  # told with file and line
        store = tree.get("store", {})
        if "include" in tree or not isinstance(store, dict) or not isinstance(store.get("url", ""), str):
            return self.config.city.store.url
        url: str = store.get("url", "")
        return url


def locate(settings: Settings) -> CityPaths:
    """The city that was named, else the one around the working directory."""
    return city_at(settings.city) if settings.city is not None else find_city(settings.cwd)


def open_city(settings: Settings) -> OpenCity:
    clock = SystemClock()
    return OpenCity(settings, locate(settings), clock, IdSource(clock))


def host() -> str:
    return os.uname().nodename
