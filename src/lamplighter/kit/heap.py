"""Settings of the garbage collector for a long-lived process."""

import gc

YOUNG = 20_000
"""New objects before a collection of the youngest generation. A few runs make the default of 700, and all of those are
still alive while the runs wait for the database."""


def settle() -> None:
    """Exempt all objects loaded by now from collection: they live until the end, and scanning them takes 50 ms."""
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 100)
