"""Records the configuration in force for the next start, and for the status of the city once it is stopped."""

from dataclasses import dataclass

from lamplighter.adapters.files.last_good import ConfigFiles
from lamplighter.app.kept_for_status import keep_with_automations
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.wanted import roster


@dataclass(frozen=True)
class CityConfigRecord:
    files: ConfigFiles
    city: OpenCity

    def accepted(self, loaded: LoadedCity) -> None:
        self.files.accepted(loaded)
        keep_with_automations(self.city, roster(loaded))

    def rejected(self, reason: str, *, readable: bool) -> None:
        self.files.rejected(reason, readable=readable)
