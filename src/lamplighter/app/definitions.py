"""What operations of commands need beforehand: the configuration in force, and the files' definitions in the store."""

from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app.automations import definitions_of, rules_of
from lamplighter.app.formulas import FormulasOfCity
from lamplighter.app.wiring import OpenCity
from lamplighter.services.context import Configured
from lamplighter.services.declared import Declared, write_declared
from lamplighter.services.operation import Need


def configured(city: OpenCity) -> Configured:
    return Configured(city.config.city, rules_of(city.config.city, city.settings.env), FormulasOfCity(city))


def prepare(city: OpenCity, need: Need) -> Configured:
    """Write the files' definitions into the store if the operation needs them and no daemon runs that does it itself.

    A copied city's store may be the original's: nothing is written to it.
    """
    found = configured(city)
    if need is Need.DEFINITIONS and controller_pid(city.paths.lock) is None and city.original is None:
        declared = Declared(found.city.configurations, definitions_of(found.city), found.rules)
        city.store.transact(write_declared, declared, ctx=city.context())
    return found
