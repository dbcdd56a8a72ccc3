"""The configuration in force for an operation of a command, loaded when the operation first uses it."""

from functools import cached_property

from lamplighter.app.wiring import OpenCity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.city.model import City
    from lamplighter.ports.formulas import FormulaFiles
    from lamplighter.services.rules import Rules


class ConfiguredOnDemand:
    def __init__(self, opened: OpenCity) -> None:
        self._opened = opened

    @property
    def city(self) -> "City":
        return self._opened.config.city

    @property
    def formulas(self) -> "FormulaFiles":
        from lamplighter.app.formulas import FormulasOfCity

        return FormulasOfCity(self._opened)

    @cached_property
    def rules(self) -> "Rules":
        from lamplighter.app.automations import rules_of

        return rules_of(self.city, self._opened.settings.env)
