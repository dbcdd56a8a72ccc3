"""Which bead store a city uses, by `[beads] provider`."""

from lamplighter.app.wiring import OpenCity
from lamplighter.ports.beads import BeadStore
from lamplighter.services.own_beads import OwnBeads


def bead_store(city: OpenCity) -> BeadStore:
    return OwnBeads(city.store, ids=city.ids, prefix=city.prefix, act=city.act)
