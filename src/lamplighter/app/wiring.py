"""`OpenCity`: a located city whose configuration and store are opened when first used."""

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lamplighter.adapters.files.city import CityPaths, city_at, find_city
from lamplighter.adapters.files.city_id import CopiedCity, original_of
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app.read_only import ReadOnlyStore
from lamplighter.app.settings import Settings
from lamplighter.domain.access import owner
from lamplighter.kit import toml_text
from lamplighter.kit.clock import Clock, SystemClock
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.services.context import Context
from lamplighter.store.tx import DirectStore
from lamplighter.store.url import Place, PostgresUrl, open_direct, parse_store_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.app.config_in_force import InForce
    from lamplighter.domain.city.loaded import LoadedCity
    from lamplighter.store.patience import Patience


def _say_nothing(_note: str) -> None:
    return


@dataclass(frozen=True)
class OpenCity:
    """A city as a command sees it: everything is opened when first used, so that short commands stay fast.

    `warn` gets one line for what the person should know beside the answer, such as that city.toml is broken.
    """

    settings: Settings
    paths: CityPaths
    clock: Clock
    ids: IdSource
    warn: Callable[[str], None] = _say_nothing
    progress: Callable[[str], None] = _say_nothing
    """Gets a line now and then about how far long work has come."""
    patience: "Patience | None" = None
    """How long the store waits for an unreachable database; None does not wait."""

    @cached_property
    def config(self) -> "LoadedCity":
        """The configuration in force: the last good one while the files cannot be used."""
        return self.in_force.config

    @cached_property
    def in_force(self) -> "InForce":
        from lamplighter.app.config_in_force import in_force, refused

        found = in_force(self.paths.root, self.settings.env, refused=refused(self.paths))
        if found.note is not None:
            self.warn(found.note)
        return found

    def use(self, found: "InForce") -> None:
        """Use a configuration that was loaded already."""
        self.__dict__.update({"config": found.config, "in_force": found})

    def forget_config(self) -> None:
        """Load the files again at the next use."""
        for name in ("config", "in_force"):
            self.__dict__.pop(name, None)

    def look_for_problems(self) -> None:
        """Warn of a rejected configuration also in commands that do not use the configuration."""
        if self.is_questioned:
            with contextlib.suppress(LampError):  # raised again when it is needed
                self.in_force  # noqa: B018  reading it warns

    @property
    def is_questioned(self) -> bool:
        """Whether single settings must be read from the configuration in force instead of from city.toml.

        That is so if it is loaded already, or if the daemon has rejected the files.
        """
        return "in_force" in self.__dict__ or os.path.exists(self.paths.rejected)  # noqa: PTH110  false for what may not be read

    @cached_property
    def place(self) -> Place:
        return parse_store_url(self._store_url(), self.paths.runtime)

    @cached_property
    def store(self) -> DirectStore:
        """Read-only for a copied city, because the rows may be the original's."""
        city_id = self.paths.city_id()  # first: raises before anything is created in a directory that is no city
        opened = self._direct(city_id)
        if self.original is None:
            return opened
        return ReadOnlyStore(opened, CopiedCity(self.paths.root, self.original), self.warn_of_copy)

    @cached_property
    def original(self) -> Path | None:
        """The directory of the city that this one is a copy of; None if it is not a copy, or is a node of that city.

        A node has its city's id but a `.gc` of its own; all nodes of a city share a PostgreSQL database.
        """
        found = original_of(self.paths.root, host())
        if found is None or (isinstance(self.place, PostgresUrl) and not found.same_node):
            return None
        return found.root

    @property
    def is_kept(self) -> bool:
        """Whether a controller runs the city."""
        return controller_pid(self.paths.lock) is not None

    def warn_of_copy(self) -> None:
        if self.original is not None:
            refusal = CopiedCity(self.paths.root, self.original)
            self.warn(f"{refusal.message} {refusal.hint}")

    def need_own(self) -> None:
        """Raises CopiedCity for a copy, which must not start, stop or signal the agents of its original."""
        if self.original is not None:
            raise CopiedCity(self.paths.root, self.original)

    def _direct(self, city_id: str) -> DirectStore:
        if self.patience is None:
            return open_direct(self.place, city_id)
        from lamplighter.store.patience import PatientStore

        return PatientStore(lambda: open_direct(self.place, city_id), self.patience)

    def context(self, actor: str | None = None) -> Context:
        return Context(owner(actor or self.settings.actor, self.settings.run), self.clock.now(), self.ids)

    def formula_layers(self, rig: str | None = None) -> Sequence[Path]:
        layers = self.config.city.layers
        return layers.of(rig) if rig else layers.city

    def close(self) -> None:
        """Close the store; it is opened again at the next use."""
        store: DirectStore | None = self.__dict__.pop("store", None)
        if store is not None:
            store.close()

    def _store_url(self) -> str:
        """The store URL, without loading the whole configuration if city.toml alone decides it."""
        from_env = self.settings.env.get("LAMP_STORE_URL")
        if self.is_questioned:
            try:
                return self.config.city.store.url
            except LampError:
                if not from_env:
                    raise
        if from_env:
            return from_env
        try:
            tree = toml_text.parse(self.paths.config.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError):
            return self.config.city.store.url  # raises the error with file and line
        store = tree.get("store", {})
        if "include" in tree or not isinstance(store, dict) or not isinstance(store.get("url", ""), str):
            return self.config.city.store.url
        url: str = store.get("url", "")
        return url


def locate(settings: Settings) -> CityPaths:
    """The city named by flag or environment, else the one around the working directory."""
    return city_at(settings.city) if settings.city is not None else find_city(settings.cwd)


def open_city(
    settings: Settings, *, warn: Callable[[str], None] | None = None, patience: "Patience | None" = None
) -> OpenCity:
    clock = SystemClock()
    return OpenCity(settings, locate(settings), clock, IdSource(clock), warn or _say_nothing, patience=patience)


def host() -> str:
    return os.uname().nodename
